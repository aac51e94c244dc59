"""One attempt of a trial, supervised: its lease, its ranks, its verdict. What `windtunnel trial DIR` does.

It starts the ranks as child processes and imports none of what they run.
"""

import importlib.metadata
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from windtunnel.artifacts import read_artifact, write_artifact, write_atomic
from windtunnel.attempt.grant import Grant, find_grant
from windtunnel.attempt.plan import LaunchPlan, plan_attempt, render_hostfile
from windtunnel.attempt.ranks import StopRequest, catch_stop, run_ranks
from windtunnel.attempt.remains import read_launcher_log, read_log_tails, read_oom_kills, read_rank_errors
from windtunnel.attempt.verdict import Ending, count_exit_code, judge_ending
from windtunnel.errors import ArtifactError, BusyError, StudyError, UserError
from windtunnel.fabric.placement import order_hosts
from windtunnel.identity import hash_sources, hash_user_files
from windtunnel.ledger.facts import read_outcome
from windtunnel.ledger.layout import TrialFolder, write_next_attempt
from windtunnel.ledger.lease import STALE_AFTER_S, Lease, take_lease
from windtunnel.ledger.log import append_event
from windtunnel.records.cluster import Topology
from windtunnel.records.trial import AttemptEnd, TrialConfig, TrialOutcome, Verdict

TRAINING = (sys.executable, "-m", "windtunnel.training")
_LEASE_POLL_S = 2.0
_NEAR_LIMIT_S = 90.0


def run_attempt(trial_dir: Path, *, rank_command: Sequence[str] = TRAINING) -> AttemptEnd:
    """Run the next attempt of the trial in `trial_dir` to its end, which is also written to END.json.

    `rank_command` is started once a rank, with `--trial-dir DIR --attempt N` after it. Raises BusyError
    while another supervisor of this trial lives. A trial that is done already is not run again.
    """
    folder = TrialFolder(trial_dir.resolve())
    config = read_artifact(folder.config, TrialConfig)
    grant = find_grant(config.trial.settings["cluster"]["kind"], os.environ)
    with catch_stop() as stop:
        lease = _take_trial_lease(folder, patient=grant.slurm, stop=stop)
        try:
            outcome, _ = read_outcome(folder, steps=config.trial.settings["training"]["steps"])
            if outcome is not None:
                return _end_of_done(outcome, grant)
            return _run_next(folder, config, grant, stop=stop, lease=lease, rank_command=rank_command)
        finally:
            lease.release()


def find_refusal(config: TrialConfig) -> str:
    """Why this trial must not run with the code that is here now; empty when it may."""
    settings = config.trial.settings
    if hash_sources() != config.identity.source_sha256:
        return "the source of windtunnel differs from what the trial was planned with: plan the study again"
    torch_version = importlib.metadata.version("torch")
    if torch_version != config.identity.torch_version:
        return f"torch is {torch_version} here but {config.identity.torch_version} in the plan: plan the study again"
    if config.trial.user_sha256:
        target = settings["model"].get("_target_") or settings["model"]["target"]
        if hash_user_files(target, config.import_root) != config.trial.user_sha256:
            return f"the files of {target} differ from what the trial was planned with: plan the study again"
    return ""


def _run_next(
    folder: TrialFolder,
    config: TrialConfig,
    grant: Grant,
    *,
    stop: StopRequest,
    lease: Lease,
    rank_command: Sequence[str],
) -> AttemptEnd:
    attempt = write_next_attempt(folder)
    started = time.monotonic()
    hosts = grant.hosts
    try:
        plan = _plan(folder, config, grant, attempt=attempt, rank_command=rank_command)
        hosts = plan.hosts
        append_event(folder.path, "started", attempt=attempt, job_id=grant.job_id, hosts=hosts, granted=grant.hosts)
        ending = _run_plan(plan, folder, config, attempt=attempt, stop=stop, lease=lease)
        verdict, evidence = judge_ending(ending)
        code = count_exit_code(ending)
    except (UserError, ArtifactError) as error:
        verdict, evidence, code = Verdict.CANCELLED, f"refused: {error}", UserError.exit_code
    end = AttemptEnd(attempt, code, verdict, evidence, hosts, grant.job_id, time.monotonic() - started)
    write_artifact(folder.end(attempt), end)
    append_event(folder.path, "ended", attempt=attempt, verdict=verdict, evidence=evidence, job_id=grant.job_id)
    return end


def _plan(
    folder: TrialFolder, config: TrialConfig, grant: Grant, *, attempt: int, rank_command: Sequence[str]
) -> LaunchPlan:
    refusal = find_refusal(config)
    if refusal:
        raise StudyError(refusal)
    ordered = replace(grant, hosts=_order_grant(config, grant.hosts))
    path = os.environ.get("PYTHONPATH", "")
    return plan_attempt(config, ordered, folder=folder, attempt=attempt, rank_command=rank_command, path=path)


def _run_plan(
    plan: LaunchPlan, folder: TrialFolder, config: TrialConfig, *, attempt: int, stop: StopRequest, lease: Lease
) -> Ending:
    if plan.hostfile is not None:
        write_atomic(plan.hostfile, render_hostfile(plan).encode())
    oom_before = read_oom_kills()
    started = time.monotonic()
    exits, reason = run_ranks(plan, stop=stop, beat=lease.beat)
    limit_s = config.trial.shape.time_min * 60.0
    outcome, problem = read_outcome(folder, steps=config.trial.settings["training"]["steps"])
    return Ending(
        exits=exits,
        reason=reason,
        errors=read_rank_errors(folder.attempt(attempt)),
        oom_kills=read_oom_kills() - oom_before,
        launcher_log=read_launcher_log(plan),
        log_tails=read_log_tails(folder.attempt(attempt), config.trial.shape.ranks),
        done_problem=None if outcome is not None else problem or "DONE.json is missing",
        slurm=plan.hostfile is not None,
        near_limit=time.monotonic() - started > limit_s - min(_NEAR_LIMIT_S, limit_s / 4),
    )


def _order_grant(config: TrialConfig, hosts: tuple[str, ...]) -> tuple[str, ...]:
    if not config.topology or len(hosts) == 1:
        return hosts
    topology = read_artifact(Path(config.topology), Topology)
    return order_hosts(hosts, topology, config.trial.settings["placement"]["policy"])


def _take_trial_lease(folder: TrialFolder, *, patient: bool, stop: StopRequest) -> Lease:
    # Slurm starts a requeued job on other nodes while its dead supervisor's last heartbeat is still
    # fresh: wait until that is stale rather than fail.
    deadline = time.monotonic() + (STALE_AFTER_S + _LEASE_POLL_S if patient else 0.0)
    while True:
        try:
            return take_lease(folder.lease, f"trial {folder.path.name}")
        except BusyError:
            if time.monotonic() > deadline or stop.signum is not None:
                raise
            time.sleep(_LEASE_POLL_S)


def _end_of_done(outcome: TrialOutcome, grant: Grant) -> AttemptEnd:
    hosts = tuple(dict.fromkeys(outcome.rank_hosts))
    evidence = "DONE.json is valid: nothing was run"
    return AttemptEnd(outcome.attempt, 0, Verdict.COMPLETED, evidence, hosts, grant.job_id, 0.0)
