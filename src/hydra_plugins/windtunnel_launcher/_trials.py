"""Composed jobs of our own task as trials of one sweep: the same plan, launch and report as everywhere."""

from collections.abc import Sequence
from pathlib import Path

from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from windtunnel.artifacts import read_artifact, to_plain
from windtunnel.cli.compose import cut_trial, to_plain_dict
from windtunnel.cli.train import Job, read_job, run_jobs
from windtunnel.errors import IncompleteError, WindtunnelError
from windtunnel.planner.space import plan_trial
from windtunnel.records.plan import Plan
from windtunnel.records.trial import PARTIAL_SWEEP, Sweep, SweepEntry, Verdict


def run_as_trials(configs: Sequence[DictConfig], *, sweep_dir: Path) -> list[JobReturn]:
    """Run the jobs as trials of a sweep in `sweep_dir`; a job's value is its trial's outcome as a plain dict.

    A user's mistake (an illegal layout, an unknown setting) raises before anything is submitted.
    """
    jobs = [_read_job(config) for config in configs]
    try:
        sweep = run_jobs(jobs, folder=sweep_dir)
    except IncompleteError:
        sweep = read_artifact(sweep_dir / PARTIAL_SWEEP, Sweep)
    entries = {entry.trial_id: entry for entry in sweep.entries}
    ids = _read_ids(jobs, sweep_dir)
    return [
        _make_return(config, entries.get(trial_id), sweep_dir) for config, trial_id in zip(configs, ids, strict=True)
    ]


def _read_job(config: DictConfig) -> Job:
    overrides = [str(override) for override in config.hydra.overrides.task]
    return read_job(to_plain_dict(config), str(config.hydra.runtime.choices["study"]), overrides)


def _read_ids(jobs: Sequence[Job], sweep_dir: Path) -> list[str]:
    identity = read_artifact(sweep_dir / "plan.json", Plan).identity
    root = str(Path.cwd())
    return [
        plan_trial(cut_trial(job.settings), choices=job.choices, identity=identity, import_root=root).id
        for job in jobs
    ]


def _make_return(config: DictConfig, entry: SweepEntry | None, sweep_dir: Path) -> JobReturn:
    task_config = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    hydra_config = OmegaConf.masked_copy(config, ["hydra"])
    with read_write(hydra_config), open_dict(hydra_config):
        hydra_config.hydra.runtime.output_dir = str(sweep_dir.resolve())
    returned = JobReturn(
        overrides=[str(override) for override in config.hydra.overrides.task],
        cfg=task_config,
        hydra_cfg=hydra_config,
        working_dir=str(sweep_dir.resolve()),
        task_name=str(config.hydra.job.name),
    )
    if entry is not None and entry.verdict == Verdict.COMPLETED:
        returned.status = JobStatus.COMPLETED
        returned.return_value = to_plain(entry.outcome)
    else:
        returned.status = JobStatus.FAILED
        returned.return_value = WindtunnelError(_explain(entry))
    return returned


def _explain(entry: SweepEntry | None) -> str:
    return (
        "the sweep ended before this trial" if entry is None else f"{entry.name}: {entry.verdict}: {entry.evidence}"
    )
