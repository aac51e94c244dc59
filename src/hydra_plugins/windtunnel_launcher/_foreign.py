"""Jobs of a task function that is not ours: pickled by submitit, each run in a process of its own."""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import submitit
from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig
from pydantic import Field

from hydra_plugins.windtunnel_launcher._job import ForeignTask, run_foreign_job
from windtunnel.errors import CommandError, SettingsError
from windtunnel.launch.jobs import submit_calls, submit_local_call
from windtunnel.launch.shapes import render_parameters
from windtunnel.launch.slurmwatch import SlurmWatch
from windtunnel.ledger.reconcile import Phase
from windtunnel.ledger.tail import find_last_line
from windtunnel.records.plan import Shape
from windtunnel.settings.base import YEAR_S, Settings, parse_settings
from windtunnel.settings.cluster import ClusterSettings

_POLL_S = 0.1
_SLURM_POLL_S = 1.0
# A job whose end Slurm has told may still have its result on the way over a shared file system.
_RESULT_GRACE_S = 10.0


class _Limits(Settings):
    """The launcher's numbers that nothing else checks."""

    jobs_at_once: int = Field(ge=1)
    """Local processes at a time."""
    cpus: int = Field(ge=1)
    """CPUs a job."""
    gpus: int = Field(ge=0)
    """GPUs a job."""
    poll_s: float = Field(gt=0, le=YEAR_S)
    """Seconds between two looks at squeue."""


def run_foreign(
    task: ForeignTask, configs: Sequence[DictConfig], *, places: Mapping[str, Any], sweep_dir: Path
) -> list[JobReturn]:
    """Run each configuration's job where `places` (the launcher's own settings) says; returns are in order."""
    shape, cluster, limits = read_places(places)
    folder = (sweep_dir / ".jobs").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    state = Singleton.get_state()
    calls = [(run_foreign_job, (task, config, state)) for config in configs]
    with _import_path_handed_on():
        if cluster.kind == "slurm":
            jobs = _run_on_slurm(calls, shape, cluster, poll_s=limits.poll_s, folder=folder)
        else:
            jobs = _run_here(calls, shape, at_once=limits.jobs_at_once, folder=folder)
    return [_read_return(job, config) for job, config in zip(jobs, configs, strict=True)]


@contextmanager
def _import_path_handed_on() -> Iterator[None]:
    # A job unpickles the task function by its module's name, which may lie beside the user's script.
    own = [entry for entry in sys.path if entry and not entry.startswith((sys.prefix, sys.base_prefix))]
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(own)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def read_places(places: Mapping[str, Any]) -> tuple[Shape, ClusterSettings, _Limits]:
    """Where jobs run, from the launcher's own settings; raises SettingsError for what no job could run with."""
    if places["kind"] == "slurm" and not places["partition"]:
        raise SettingsError("hydra.launcher.kind=slurm needs a partition: set hydra.launcher.partition")
    plain = {
        "kind": places["kind"],
        "partition": places["partition"] or "local",
        "account": places["account"],
        "qos": places["qos"],
        "constraint": places["constraint"],
        "time": places["time"],
        "memory": places["memory"],
        "modules": tuple(places["modules"] or ()),
    }
    limits = parse_settings(_Limits, {name: places[name] for name in _Limits.model_fields}, where="hydra.launcher")
    cluster = parse_settings(ClusterSettings, plain, where="hydra.launcher")
    shape = Shape(
        nodes=1,
        ranks_per_node=1,
        cpus_per_rank=limits.cpus,
        gpus_per_node=limits.gpus,
        mem_mib=cluster.memory,
        time_min=cluster.time,
        partition=cluster.partition,
        account=cluster.account,
        qos=cluster.qos,
        constraint=cluster.constraint,
    )
    return shape, cluster, limits


def _run_here(calls: Sequence[Any], shape: Shape, *, at_once: int, folder: Path) -> "list[submitit.Job[JobReturn]]":
    jobs: list[submitit.Job[JobReturn]] = []
    for function, args in calls:
        while sum(not job.done() for job in jobs) >= at_once:
            time.sleep(_POLL_S)
        jobs.append(submit_local_call(function, args, shape, folder=folder))
    while any(not job.done() for job in jobs):
        time.sleep(_POLL_S)
    return jobs


def _run_on_slurm(
    calls: Sequence[Any], shape: Shape, cluster: ClusterSettings, *, poll_s: float, folder: Path
) -> "list[submitit.Job[JobReturn]]":
    parameters = render_parameters(shape, cluster, name="windtunnel-hydra")
    jobs: list[submitit.Job[JobReturn]] = submit_calls(calls, parameters, folder=folder)
    watch = SlurmWatch(poll_s=poll_s, say=print)
    watch.expect([job.job_id for job in jobs])
    waiting = {job.job_id: job for job in jobs}
    while waiting:
        time.sleep(_SLURM_POLL_S)
        sights = watch.look(list(waiting))
        # submitit's own `done` asks sacct, which a site may not have, and would wait for ever.
        waiting = {
            job_id: job
            for job_id, job in waiting.items()
            if not job.paths.result_pickle.exists() and sights[job_id].phase in (Phase.QUEUED, Phase.RUNNING)
        }
    return jobs


def _read_return(job: "submitit.Job[JobReturn]", config: DictConfig) -> JobReturn:
    deadline = time.monotonic() + _RESULT_GRACE_S
    died_here = isinstance(job, submitit.LocalJob)
    while not job.paths.result_pickle.exists() and not died_here and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if not job.paths.result_pickle.exists():
        return _failed(config, f"job {job.job_id} ended without a result: {_last_words(job)}")
    outcome, value = job._get_outcome_and_result()  # `result()` would ask sacct first
    if outcome == "success":
        returned: JobReturn = value
        return returned
    return _failed(config, f"job {job.job_id} failed: {find_last_line(str(value)) or 'it gave no reason'}")


def _failed(config: DictConfig, cause: str) -> JobReturn:
    HydraConfig.instance().set_config(config)
    returned = JobReturn(overrides=[str(override) for override in config.hydra.overrides.task])
    returned.status = JobStatus.FAILED
    returned.return_value = CommandError(cause)
    return returned


def _last_words(job: "submitit.Job[JobReturn]") -> str:
    return find_last_line(job.stderr() or "") or find_last_line(job.stdout() or "") or "it wrote nothing"
