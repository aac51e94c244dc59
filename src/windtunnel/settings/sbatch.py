"""Values that end up in a batch script: text as it was written, and sbatch's own flags, less those that we set."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

_PARTITION = re.compile(r"[\w+@:=~][\w+@:=~.%^-]*")
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
# A job of somebody else's cannot write the trial's records, which alone tell how it stands.
_AS_YOURSELF = "whoever starts the sweep: start it as that user"
_OWNED = {
    "account": "cluster.account",
    "array": "the sweep itself, which makes the arrays",
    "clusters": "the login node that the sweep is started on",
    "constraint": "cluster.constraint",
    "cpus-per-task": "cluster.cpus_per_rank",
    "error": "the sweep itself, which reads the file",
    "gid": _AS_YOURSELF,
    "gpus-per-node": "cluster.gpus_per_rank and cluster.gpu_type",
    "input": "the sweep itself, whose jobs read no input",
    "job-name": "the sweep itself, which finds its jobs by it",
    "mem": "cluster.memory",
    "nodes": "parallelism.nodes",
    "ntasks": "parallelism.*",
    "ntasks-per-node": "parallelism.*",
    "open-mode": "the sweep itself",
    "output": "the sweep itself, which reads the file",
    "partition": "cluster.partition",
    "qos": "cluster.qos",
    "signal": "the sweep itself, which is told to stop by it",
    "time": "cluster.time",
    "uid": _AS_YOURSELF,
    **dict.fromkeys(
        ("help", "parsable", "quiet", "test-only", "usage", "version", "wait", "wrap"), "the sweep itself"
    ),
}
"""Flags that a setting, or the sweep, gives already."""

NEUTRAL_FLAGS = frozenset(
    {
        "begin",
        "comment",
        "deadline",
        "dependency",
        "exclude",
        "hold",
        "mail-type",
        "mail-user",
        "nice",
        "no-requeue",
        "priority",
        "requeue",
        "reservation",
        "time-min",
        "wckey",
    }
)
"""Flags that say who pays, waits or is told, and so are no part of a trial's id."""


def read_text(value: Any) -> Any:
    """A value as text: YAML reads an account such as `1234` as a number. Raises ValueError where digits were lost."""
    if isinstance(value, float):
        raise ValueError("YAML reads it as a number with a fraction: write it in quotes")
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str):
        _check_line(text)
    return text


def read_lines(value: Any) -> Any:
    """Shell lines: a list of them, or one text of several."""
    lines = value.splitlines() if isinstance(value, str) else value
    if isinstance(lines, list | tuple):
        for line in lines:
            _check_line(str(line))
    return lines


def read_flags(value: Any) -> Any:
    """Flags of sbatch by their long names, as text; True stands for a flag without a value, False for none.

    Raises ValueError for a name that is none, that another setting gives, or for an empty value.
    """
    if not isinstance(value, Mapping):
        return value
    flags: dict[str, str | bool] = {}
    mistakes = []
    for name, setting in value.items():
        try:
            flags[_read_name(str(name))] = _read_value(setting)
        except ValueError as error:
            mistakes.append(f"sbatch.{name}: {error}")
    if mistakes:
        raise ValueError("; ".join(mistakes))
    return flags


def read_partition(value: Any) -> Any:
    """A partition's name. Raises ValueError for one that could not be a folder's, where the facts of it lie."""
    text = read_text(value)
    if isinstance(text, str) and not _PARTITION.fullmatch(text):
        raise ValueError("write one partition, of letters, digits and _ . + : @ = ~ % ^ - alone")
    return text


Text = Annotated[str, BeforeValidator(read_text)]
Partition = Annotated[str, BeforeValidator(read_partition)]
Lines = Annotated[tuple[str, ...], BeforeValidator(read_lines)]
Flags = Annotated[dict[str, str | bool], BeforeValidator(read_flags)]


def _read_name(name: str) -> str:
    bare = name.removeprefix("--").replace("_", "-")
    if len(bare) < 2 or not set(bare) <= _NAME_CHARS:
        raise ValueError("this is no long name of a flag of sbatch, such as mail-user")
    if bare in _OWNED:
        raise ValueError(f"this comes from {_OWNED[bare]}")
    return bare


def _read_value(value: Any) -> str | bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    text = str(value) if isinstance(value, float) else read_text(value)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{value!r} is no value: give one, true for a flag without one, or false for none")
    return text


def _check_line(text: str) -> None:
    # A line break would end the #SBATCH line, and what follows would run as shell.
    strange = next((character for character in text if not character.isprintable()), None)
    if strange is not None and strange != "\t":
        raise ValueError(f"{text!r} holds the character {strange!r}: write it in one printable line")
