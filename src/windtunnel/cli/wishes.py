"""`windtunnel cancel` and `windtunnel retry`: what people want done with trials, said to their ledgers."""

import getpass
from collections.abc import Sequence
from pathlib import Path

from windtunnel.artifacts import read_artifact
from windtunnel.cli.folders import find_study_folder
from windtunnel.errors import BusyError, CommandError, SettingsError
from windtunnel.launch.board import render_holder
from windtunnel.launch.detach import read_driver_job
from windtunnel.launch.overview import SWEEP, read_driver, read_study
from windtunnel.launch.place import read_place
from windtunnel.launch.roster import PLAN, Roster, read_roster
from windtunnel.launch.seek import find_rows
from windtunnel.launch.sights import read_job_sight
from windtunnel.launch.views import TrialView
from windtunnel.launch.withdraw import cancel_trials, withdraw_trials
from windtunnel.ledger.reconcile import Phase
from windtunnel.records.plan import Plan, PlannedTrial
from windtunnel.records.trial import Verdict
from windtunnel.slurm.queue import cancel_jobs

_VERDICTS = frozenset(Verdict) - {Verdict.COMPLETED}
_NOTHING = "nothing to cancel"


def run_cancel(study: str, words: Sequence[str], *, results: Path | None) -> None:
    """End the jobs of the named trials, or of all that are not done; print what was done."""
    folder = find_study_folder(study, results)
    place, roster = read_place(folder), read_roster(folder)
    trials = _read_trials(folder, roster, words)
    done = cancel_trials(Path(place.store), trials, study=roster.study, jobs_dir=Path(place.jobs_dir))
    names = {row.id: row.name for row in roster.rows}
    told = {trial_id: line for trial_id, line in done.items() if words or _NOTHING not in line}
    for trial_id, line in told.items():
        print(f"{trial_id} {names[trial_id]}: {line}")
    if not words:
        _cancel_driver_job(folder)
    print(f"what is left goes on with: {place.command}" if told else f"study {study}: {_NOTHING}", flush=True)


def run_retry(study: str, words: Sequence[str], *, failed: bool, results: Path | None) -> None:
    """Withdraw the verdicts of the named trials, or with `failed` of all that did not complete.

    Raises BusyError while a driver lives: it would publish the verdicts that it knows. Raises CommandError while
    Slurm does not tell which jobs live: a trial that is in its queue would be submitted twice.
    """
    if not failed and not words:
        raise SettingsError(f"retry needs --failed, or trials by id or name: see `windtunnel status {study}`")
    folder = find_study_folder(study, results)
    place, roster = read_place(folder), read_roster(folder)
    trials = _read_trials(folder, roster, words)
    holder = read_driver(folder)
    if holder is not None:
        raise BusyError(
            f"study {roster.study} is driven by {render_holder(holder)}, and knows these verdicts: wait for its end,"
            f" or stop it (windtunnel cancel {study}), and type this again"
        )
    view = read_study(folder)
    if view.problem:
        raise CommandError(f"{view.problem}\n  jobs may still be in its queue: type this again once it tells of them")
    states = list_withdrawable(view.trials)
    chosen = [trial for trial in trials if trial.id in states]
    if not chosen:
        print(f"study {roster.study}: no verdict to withdraw", flush=True)
        return
    reason = f"retry by {getpass.getuser()}"
    withdraw_trials(Path(place.store), chosen, reason=reason, sweep=folder / SWEEP)
    for trial in chosen:
        print(f"{trial.id} {trial.name}: {states[trial.id]} withdrawn")
    print(f"they run again with: {place.command}", flush=True)


def list_withdrawable(trials: Sequence[TrialView]) -> dict[str, str]:
    """Verdict by id of the trials that ended without completing."""
    return {trial.trial_id: trial.state for trial in trials if trial.state in _VERDICTS}


def _read_trials(folder: Path, roster: Roster, words: Sequence[str]) -> list[PlannedTrial]:
    wanted = {row.id for row in find_rows(roster.rows, words, where=f"study {roster.study}")}
    trials = {trial.id: trial for trial in read_artifact(folder / PLAN, Plan).trials}
    return [trial for trial in trials.values() if not words or trial.id in wanted]


def _cancel_driver_job(folder: Path) -> None:
    # One that drives already sees that nothing is left, and ends by itself.
    job = read_driver_job(folder)
    if job is not None and read_job_sight(job.job_id).phase == Phase.QUEUED:
        problem = cancel_jobs([job.job_id])
        if problem:
            raise CommandError(f"job {job.job_id}, which waits to drive the study, was not cancelled:\n{problem}")
        print(f"job {job.job_id}, which waited to drive the study: cancelled")
