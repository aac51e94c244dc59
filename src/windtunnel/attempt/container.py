"""A rank's command inside a container: what pyxis and apptainer want said. Pure.

Pyxis is told through srun's own options; apptainer is a command before the command.
"""

from collections.abc import Sequence
from pathlib import Path

from windtunnel.attempt.program import Program
from windtunnel.settings.container import ContainerSettings


def list_mounts(program: Program, container: ContainerSettings) -> tuple[str, ...]:
    """`source:target` of every folder that the program needs where it lies, then the user's own."""
    folders = dict.fromkeys(str(folder) for folder in (program.directory, *program.folders) if folder is not None)
    return (*(f"{folder}:{folder}" for folder in folders), *container.mounts)


def wrap_command(program: Program, container: ContainerSettings) -> tuple[str, ...]:
    """The command that a rank is started with: in `apptainer exec` where that is asked for."""
    if not container.image or container.kind != "apptainer":
        return program.argv
    binds = [word for mount in list_mounts(program, container) for word in ("--bind", mount)]
    place = ["--pwd", str(program.directory)] if program.directory is not None else []
    return ("apptainer", "exec", *binds, *place, *container.options, container.image, *program.argv)


def render_srun_options(program: Program, container: ContainerSettings) -> tuple[str, ...]:
    """srun's options for a pyxis container; none for any other."""
    if not container.image or container.kind != "pyxis":
        return ()
    mounts = ",".join(list_mounts(program, container))
    workdir = _workdir(program.directory)
    return (f"--container-image={container.image}", f"--container-mounts={mounts}", *workdir, *container.options)


def _workdir(directory: Path | None) -> Sequence[str]:
    return (f"--container-workdir={directory}",) if directory is not None else ()
