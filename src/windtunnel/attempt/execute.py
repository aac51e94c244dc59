"""Runs a planned attempt and gathers what it left behind; a program that is not ours gets its outcome written."""

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from windtunnel.artifacts import hash_json, write_artifact, write_atomic
from windtunnel.attempt.exporters import Labels, find_folder, mapped_gpus, open_exporter
from windtunnel.attempt.hang import read_hang
from windtunnel.attempt.metrics import MetricsFollower
from windtunnel.attempt.oom import read_oom_kills
from windtunnel.attempt.outcome import describe_outcome
from windtunnel.attempt.plan import LaunchPlan, render_hostfile
from windtunnel.attempt.program import AttemptFiles, describe_settings
from windtunnel.attempt.protocol import describe_passed_over, find_shortfall
from windtunnel.attempt.ranks import StopRequest, run_ranks
from windtunnel.attempt.remains import read_launcher_log, read_log_tails, read_rank_errors
from windtunnel.attempt.settle import note_signal
from windtunnel.attempt.signalled import Keep, SignalWatch, ask_slurm
from windtunnel.attempt.verdict import Ending, describe_signal
from windtunnel.ledger.facts import read_outcome
from windtunnel.records.trial import STOPPED_CODE, AttemptEnd, TrialConfig
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.slurm.cause import Cause
from windtunnel.slurm.job import read_job_id


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

    started, started_at = time.monotonic(), time.time()
    command, time_min = config.trial.runs_command, config.trial.shape.time_min
    ask = ask_slurm(execution.plan, time_min=time_min, started_at=started_at) if execution.slurm else None
    signalled = SignalWatch(stop, ask, keep_cause(execution, started=started))

    labels = Labels(config.trial.id, files.attempt, read_job_id(os.environ) if execution.slurm else "")
    cluster = ClusterSettings.model_validate(config.trial.settings["cluster"])
    exporter = open_exporter(cluster, labels, files.folder.metrics)

    def look() -> None:
        beat()
        signalled.look()
        exporter.look()
        if command:
            follower.poll()

    oom_before = read_oom_kills()
    with closing(exporter), mapped_gpus(find_folder(cluster.dcgm_job_dir), labels.job_id, os.environ):
        exits, reason = run_ranks(execution.plan, stop=stop, beat=look, finish=signalled.finish)
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
        cause=signalled.read(told=any(exit_.code == STOPPED_CODE for exit_ in exits)),
        hang=read_hang(files.path, ranks=config.trial.shape.ranks),
        launcher=execution.plan.launcher,
        rank_hosts=execution.plan.rank_hosts,
        host=os.uname().nodename,
        notes=describe_passed_over(follower.tally),
    )


def keep_cause(execution: Execution, *, started: float) -> Keep:
    """What writes the cause of a signal down; the attempt `started` by the monotonic clock."""

    def keep(cause: Cause) -> None:
        end = describe_early_end(execution, cause, wall_s=time.monotonic() - started)
        if end is not None:
            note_signal(execution.files.folder, end)

    return keep


def describe_early_end(execution: Execution, cause: Cause, *, wall_s: float) -> AttemptEnd | None:
    """How the attempt ended, should its supervisor be killed before it can tell; None while nobody says why."""
    if cause is Cause.UNKNOWN:
        return None
    verdict, words = describe_signal(cause)
    evidence = f"{words}; its supervisor told no more"
    attempt, hosts = execution.files.attempt, execution.plan.hosts
    return AttemptEnd(attempt, -signal.SIGKILL, verdict, evidence, hosts, read_job_id(os.environ), wall_s)


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
