"""Runs a planned attempt and gathers what it left behind; a program that is not ours gets its outcome written."""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from windtunnel.artifacts import hash_json, write_artifact, write_atomic
from windtunnel.attempt.metrics import MetricsFollower
from windtunnel.attempt.oom import read_oom_kills
from windtunnel.attempt.outcome import describe_outcome
from windtunnel.attempt.plan import LaunchPlan, render_hostfile
from windtunnel.attempt.program import AttemptFiles, describe_settings
from windtunnel.attempt.protocol import describe_passed_over, find_shortfall
from windtunnel.attempt.ranks import StopRequest, run_ranks
from windtunnel.attempt.remains import read_launcher_log, read_log_tails, read_rank_errors
from windtunnel.attempt.verdict import Ending
from windtunnel.ledger.facts import read_outcome
from windtunnel.records.trial import TrialConfig
from windtunnel.slurm.deadline import find_job_end, is_near_end, may_be_warning, read_process_began_at
from windtunnel.slurm.notice import read_is_ended


@dataclass(frozen=True)
class Execution:
    """An attempt about to run."""

    plan: LaunchPlan
    config: TrialConfig
    files: AttemptFiles
    slurm: bool


def execute(execution: Execution, *, stop: StopRequest, beat: Callable[[], None]) -> Ending:
    """Run the attempt to its end. `beat` is called all the while."""
    prepare(execution)
    config, files = execution.config, execution.files
    follower = MetricsFollower(files.metrics, files.folder.metrics, files.attempt)

    def look() -> None:
        beat()
        follower.poll()

    oom_before = read_oom_kills()
    started, started_at = time.monotonic(), time.time()
    command = config.trial.runs_command
    exits, reason = run_ranks(execution.plan, stop=stop, beat=look if command else beat)
    wall_s = time.monotonic() - started
    well = bool(exits) and not any(exit_.code for exit_ in exits)
    shortfall = settle_program(execution, follower, well=well, wall_s=wall_s) if command else ""
    outcome, problem = read_outcome(files.folder, steps=config.trial.steps)
    return Ending(
        exits=exits,
        reason=reason,
        errors=read_rank_errors(files.path),
        oom_kills=read_oom_kills() - oom_before,
        launcher_log=read_launcher_log(execution.plan),
        log_tails=read_log_tails(files.path, config.trial.shape.ranks),
        done_problem=None if outcome is not None else shortfall or problem or "DONE.json is missing",
        slurm=execution.slurm,
        near_limit=stop.at is not None and is_near_limit(execution, started_at=started_at, signalled_at=stop.at),
        launcher=execution.plan.launcher,
        notes=describe_passed_over(follower.tally),
    )


def is_near_limit(
    execution: Execution,
    *,
    started_at: float,
    signalled_at: float,
    ask: Callable[[Mapping[str, str]], bool | None] = read_is_ended,
) -> bool:
    """Whether a signal came because time was nearly up; times are seconds since 1970 UTC.

    Slurm's signal goes by the job's clock, which runs before the attempt does. Without Slurm no signal means that.
    `ask` tells whether Slurm ends the job for another cause.
    """
    if not execution.slurm:
        return False
    time_min = execution.config.trial.shape.time_min
    if execution.plan.time_limit_s is not None:  # in a job of several trials: this one's time, not the job's
        return is_near_end(signalled_at, ends_at=started_at + execution.plan.time_limit_s, time_min=time_min)
    began_at = min(started_at, read_process_began_at(os.getpid()))
    ends_at = find_job_end(os.environ, began_at=began_at, time_min=time_min)
    if not may_be_warning(signalled_at, ends_at=ends_at, time_min=time_min):
        return False
    # Clocks cannot tell a preemption in a short job, or late in a long one, from the warning: the controller can.
    ended = ask(os.environ)
    return not ended if ended is not None else is_near_end(signalled_at, ends_at=ends_at, time_min=time_min)


def prepare(execution: Execution) -> None:
    """Write what ranks read: the file of hosts, and a program's settings."""
    plan, config, files = execution.plan, execution.config, execution.files
    if plan.hostfile is not None:
        write_atomic(plan.hostfile, render_hostfile(plan).encode())
    if config.trial.runs_command:
        files.checkpoints.mkdir(exist_ok=True)
        write_atomic(files.settings, (json.dumps(describe_settings(config, files), indent=1) + "\n").encode())


def settle_program(execution: Execution, follower: MetricsFollower, *, well: bool, wall_s: float) -> str:
    """Write the outcome of a program that ended `well` and did all its steps; why it has none, otherwise."""
    config, files = execution.config, execution.files
    tally = follower.finish()
    shortfall = find_shortfall(tally, steps=config.trial.steps)
    if shortfall or not well:
        return shortfall or "its program failed"
    outcome = describe_outcome(
        config, tally, attempt=files.attempt, rank_hosts=execution.plan.rank_hosts, wall_s=wall_s
    )
    write_artifact(files.folder.done, outcome, settings_hash=hash_json(config.trial.settings))
    return ""
