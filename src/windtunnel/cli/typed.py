"""The command that goes on with a study: what someone typed to start it."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from windtunnel.launch.overview import LEASES
from windtunnel.launch.place import COMMAND_ENV
from windtunnel.ledger.lease import read_live_holder


def read_typed_command(folder: Path) -> str:
    """What a stage of the study in `folder` says to type: what its driver was started with, if that can be told."""
    given = os.environ.get(COMMAND_ENV)
    if given:
        return given
    holder = read_live_holder(folder / LEASES[0])
    words = _read_words(holder.pid) if holder is not None and holder.host == os.uname().nodename else []
    return render_typed(words) or shlex.join(["windtunnel", "sweep", folder.resolve().name])


def render_typed(words: Sequence[str]) -> str:
    """A process's words as they were typed: without the interpreter; empty when it is no Snakemake."""
    rest = list(words[1:])
    if rest[:1] == ["-m"]:
        rest = rest[1:]
    if not rest or Path(rest[0]).name not in ("snakemake", "__main__.py"):
        return ""
    return shlex.join(["snakemake", *rest[1:]])


def _read_words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []
