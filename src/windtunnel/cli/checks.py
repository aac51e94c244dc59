"""What a study needs of the world before anything is submitted: its models' code, its raw files, its partitions."""

import os
import shutil
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

from windtunnel.errors import ClusterError, InputFileError, SettingsError, UserError
from windtunnel.identity import hash_user_code
from windtunnel.kernels.backend import choose_backend
from windtunnel.planner.space import list_combinations
from windtunnel.settings.study import PathSettings, PlanSettings, StudySettings, TrialSettings
from windtunnel.settings.template import list_keys


def hash_user_models(plan: PlanSettings, project: Path) -> dict[str, str]:
    """Hash of the user's code behind each model or program of a study.

    Raises SettingsError for a module or a file that is not there.
    """
    trials = {_name_code(trial): trial for _, trial in list_combinations(plan)}
    return {name: hash_user_code(trial, str(project)) for name, trial in sorted(trials.items())}


def check_programs(plan: PlanSettings) -> None:
    """Raise SettingsError for a program that this machine, which is to run it, does not have."""
    for _, trial in list_combinations(plan):
        program, cluster = (trial.workload.argv or ("",))[0], trial.cluster
        here = trial.workload.kind == "command" and cluster.kind == "local" and not cluster.container.image
        brought = "PATH" in trial.workload.environment or "/" in program or list_keys(program)
        if here and not brought and shutil.which(program) is None:
            raise SettingsError(
                f"workload.argv: there is no program {program!r} on PATH: install it, or give its path"
            )


def check_kernels(study: StudySettings, plan: PlanSettings) -> None:
    """Raise ClusterError for a backend of the kernels that this installation, which a job uses too, does not have."""
    backends = {study.kernels.backend} | {trial.kernels.backend for _, trial in list_combinations(plan)}
    for backend in sorted(backends):
        choose_backend(backend)


def _name_code(trial: TrialSettings) -> str:
    if trial.workload.kind == "train":
        return trial.model.target
    return " ".join((*trial.workload.argv, trial.workload.directory, *trial.workload.files))


def check_all(checks: Iterable[Callable[[], object]]) -> None:
    """Run every check. Raises the mistake that there is, or a SettingsError with a line for each of several."""
    mistakes: dict[str, UserError] = {}
    for check in checks:
        try:
            check()
        except UserError as error:
            mistakes[str(error)] = error
    if len(mistakes) > 1:
        raise SettingsError(f"{len(mistakes)} mistakes:\n" + "\n".join(mistakes))
    for mistake in mistakes.values():
        raise mistake


def check_paths(paths: PathSettings, project: Path) -> None:
    """Raise SettingsError unless results and store are, or can be made, folders that this user may write."""
    for name in ("results", "store"):
        given = getattr(paths, name)
        folder = (project / given).absolute()
        nearest = next(place for place in (folder, *folder.parents) if place.exists())
        if name == "results" and not given.strip():
            raise SettingsError("paths.results is empty, expected a folder: set it, such as paths.results=results")
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            why = "is no folder" if not nearest.is_dir() else "may not be written by this user"
            raise SettingsError(f"paths.{name}={given!r}: {nearest} {why}: name another one")


def check_data(study: StudySettings, project: Path) -> None:
    """Raise a UserError unless every raw file is there, of its source, and one of them is the reference."""
    from windtunnel.ingest.plan import find_source, plan_jobs

    located = tuple(str(locate_input(file, project)) for file in study.data.files)
    data = study.data.model_copy(update={"files": located})
    known = sorted({job.part.instrument for job in plan_jobs(data, find_source(data))})
    if study.features.reference not in known:
        raise SettingsError(
            f"features.reference={study.features.reference!r} is no instrument of dataset {study.data.dataset!r}:"
            f" set it to one of {', '.join(known)}, or add its file to data.files"
        )


def locate_input(file: str, project: Path) -> Path:
    """Where a raw file of the settings lies; raises InputFileError unless it is there, readable and not empty."""
    path = project / file
    if file.startswith("package:"):
        package, _, inside = file.removeprefix("package:").partition("/")
        if not package.isidentifier():  # find_spec would import what stands before a dot
            raise InputFileError(
                f"raw file {file!r}: {package!r} is no top-level package, expected package:<name>/<path>, such as"
                " package:arch/data/vix/vix.csv.gz: correct data.files"
            )
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise InputFileError(f"raw file {file!r}: package {package!r} is not installed: pip install {package}")
        path = Path(spec.submodule_search_locations[0]) / inside
    if not path.is_file():
        raise InputFileError(f"raw file {file!r} does not exist (looked for {path}): correct data.files")
    if not os.access(path, os.R_OK):
        raise InputFileError(f"raw file {path} cannot be read: give this user read permission")
    if path.stat().st_size == 0:
        raise InputFileError(f"raw file {path} is empty: fetch it again, or take it out of data.files")
    return path


def check_partitions(wanted: set[str]) -> None:
    """Raise ClusterError for a partition that this machine's Slurm does not have, or without any Slurm."""
    if not wanted:
        return
    if shutil.which("scontrol") is None:
        raise ClusterError(
            f"partition {', '.join(sorted(wanted))} is Slurm's, and this machine has no scontrol on PATH: start this"
            " on a login node of the cluster, or set cluster=local"
        )
    from windtunnel.slurm.scontrol import list_partitions

    known = list_partitions()
    unknown = ", ".join(repr(partition) for partition in sorted(wanted - set(known)))
    if unknown:
        raise ClusterError(
            f"partition {unknown} does not exist on this cluster (known: {', '.join(known) or 'none'}):"
            " set it in the site file, or cluster.partition"
        )
