"""Settings of a workload: what a trial runs, our own trainer or any program of the user's."""

import re
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from windtunnel.settings.base import Settings
from windtunnel.settings.template import list_keys

BUILT_IN = (
    "attempt",
    "checkpoints",
    "features",
    "hosts",
    "metrics",
    "nodes",
    "project",
    "ranks",
    "ranks_per_node",
    "repeat",
    "seed",
    "settings",
    "trial_dir",
)
"""Keys of a template that every trial has."""
_PARAMETER = re.compile(r"[A-Za-z_][\w-]*")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


class WorkloadSettings(Settings):
    kind: Literal["train", "command"] = "train"
    """`train` is our own trainer; `command` runs `argv`, and reads its metrics from JSON lines (docs/command.md)."""
    name: str = Field(default="command", pattern=r"^[A-Za-z0-9_.-]+$")
    """Name of the program in rankings and plots."""
    argv: tuple[str, ...] = ()
    """The program and its arguments; `{key}` is a parameter, a setting (`{training.steps}`) or one of the built-in
    keys. `{{` and `}}` are braces."""
    start: Literal["ranks", "mpiexec", "once"] = "ranks"
    """How its ranks start: `ranks` starts each (by srun on Slurm), `mpiexec` leaves it to MPI's own launcher,
    `once` starts one process on the first node, which starts the others itself."""
    mpiexec: tuple[str, ...] = ("mpiexec", "-n", "{ranks}")
    """MPI's launcher and its options, with `start=mpiexec`. `{hosts}` is a file with the host of each rank."""
    srun_mpi: str = Field(default="none", pattern=r"^[A-Za-z0-9_]+$")
    """srun's `--mpi`, with `start=ranks`: `pmix` or `pmi2` for a program that calls MPI."""
    parameters: dict[str, Any] = {}
    """The program's own settings, by any name: `space.values` varies `workload.parameters.<name>`."""
    environment: dict[str, str] = {}
    """Environment variables of the program; values may hold `{key}`."""
    directory: str = ""
    """Working folder, relative to the project's; the project's folder when empty."""
    files: tuple[str, ...] = ()
    """Files and folders whose content is part of a trial's identity. The program's own file in the project is,
    without being named, and what a Python script imports beside it."""
    steps: int = Field(default=0, ge=0)
    """Steps after which a trial is done; 0 leaves it to the program's own `done` line."""
    data: bool = False
    """Whether the program reads the study's features (`{features}`): the workflow makes them first."""

    @field_validator("parameters")
    @classmethod
    def _leave_built_in_keys(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if not _PARAMETER.fullmatch(name):
                raise ValueError(f"parameter {name!r} is no name: expected letters, digits, _ and -")
            if name in BUILT_IN:
                raise ValueError(f"parameter {name!r} has the name of a built-in key: call it something else")
        return value

    @field_validator("environment")
    @classmethod
    def _name_variables(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not _VARIABLE.fullmatch(name) or name.startswith("WINDTUNNEL_"):
                raise ValueError(f"{name!r} is no name of a variable, or one that Windtunnel sets itself")
        return value

    @model_validator(mode="after")
    def _give_a_program(self) -> Self:
        if self.kind == "train":
            return self
        if not self.argv or not self.argv[0].strip():
            raise ValueError("workload.argv is empty: name the program and its arguments")
        if self.start == "mpiexec" and not self.mpiexec:
            raise ValueError("workload.mpiexec is empty: name MPI's launcher, such as [mpiexec, -n, '{ranks}']")
        for text in self.templates:
            list_keys(text)
            if "\0" in text:
                raise ValueError(f"workload: {text!r} holds a NUL character, which no argument can")
        return self

    @property
    def templates(self) -> tuple[str, ...]:
        """Every text that may hold keys."""
        launcher = self.mpiexec if self.start == "mpiexec" else ()
        return (*self.argv, *launcher, *self.environment.values())

    @property
    def needs_data(self) -> bool:
        """Whether a trial reads feature shards."""
        return self.kind == "train" or self.data


def find_unknown_key(workload: WorkloadSettings, settings: Mapping[str, Any]) -> str:
    """The first key of a template that neither a parameter, nor a setting, nor a built-in key is; else empty."""
    return next((key for text in workload.templates for key in list_keys(text) if not _knows(settings, key)), "")


def look_up(settings: Mapping[str, Any], key: str) -> Any:
    """A parameter, or a setting of the trial, by its dotted name; raises KeyError."""
    for root in (settings["workload"]["parameters"], settings):
        found: Any = root
        for part in key.split("."):
            found = found[part] if isinstance(found, Mapping) and part in found else _ABSENT
        if found is not _ABSENT:
            return found
    raise KeyError(key)


_ABSENT = object()


def _knows(settings: Mapping[str, Any], key: str) -> bool:
    if key in BUILT_IN:
        return key != "features" or bool(settings["workload"]["data"])
    try:
        look_up(settings, key)
    except KeyError:
        return False
    return True
