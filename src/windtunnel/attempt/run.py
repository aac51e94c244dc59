"""One attempt of a trial, supervised: its lease, its ranks, its verdict. What `windtunnel trial DIR` does.

It starts the ranks as child processes and imports none of what they run.
"""

import os
import time
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from windtunnel.artifacts import read_artifact
from windtunnel.attempt.breaker import STUCK_CODE, find_stuck, find_vanished
from windtunnel.attempt.execute import Execution, execute
from windtunnel.attempt.grant import Grant, find_grant
from windtunnel.attempt.health import describe_unfit
from windtunnel.attempt.nodes import check_nodes
from windtunnel.attempt.plan import (
    LaunchPlan,
    find_import_path,
    find_rank_command,
    keeps_slurms_order,
    plan_attempt,
)
from windtunnel.attempt.program import AttemptFiles
from windtunnel.attempt.ranks import StopRequest, catch_stop
from windtunnel.attempt.refusal import find_refusal
from windtunnel.attempt.settle import append_or_say, settle
from windtunnel.attempt.succession import free_dead_holder, take_turn
from windtunnel.attempt.verdict import count_exit_code, is_process_death, judge_ending
from windtunnel.checkpoints.manifest import find_newest_step
from windtunnel.errors import ArtifactError, BusyError, StudyError, UserError
from windtunnel.fabric.placement import order_hosts
from windtunnel.ledger.facts import read_end, read_ends, read_facts, read_outcome
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers, write_next_attempt
from windtunnel.ledger.lease import STALE_AFTER_S, Lease, take_lease
from windtunnel.ledger.log import read_events
from windtunnel.ledger.retries import Ending as Run
from windtunnel.ledger.retries import decide_retry, read_retried
from windtunnel.ledger.tail import read_last_record
from windtunnel.records.cluster import Topology
from windtunnel.records.trial import AttemptEnd, NodeFault, TrialConfig, TrialOutcome, Verdict
from windtunnel.settings.container import ContainerSettings
from windtunnel.settings.sweep import RetrySettings

_LEASE_POLL_S = 2.0
_MAX_WORDS = 600
_UNFIT_CODE = 69
"""Exit code of an attempt that its nodes did not let begin (EX_UNAVAILABLE of sysexits.h)."""
_SETTLED = frozenset({Verdict.FAILED, Verdict.OOM})
"""Ends after which the same job runs the trial no further, though Slurm may start it again."""


class _StuckError(Exception):
    """The breaker's word; it never leaves this module."""


class _UnfitError(Exception):
    """A verdict over the nodes, with its evidence; it never leaves this module."""

    def __init__(self, verdict: Verdict, evidence: str, faults: tuple[NodeFault, ...]) -> None:
        super().__init__(evidence)
        self.verdict = verdict
        self.faults = faults


def run_attempt(
    trial_dir: Path, *, rank_command: Sequence[str] = (), turn: StopRequest | None = None, succeeds: bool = False
) -> AttemptEnd:
    """Run the next attempt of the trial in `trial_dir` to its end, which is also written to END.json.

    A trial of our trainer starts `rank_command` once a rank (our trainer's own without one), with
    `--trial-dir DIR --attempt N` after it; any other starts its own program. Raises BusyError while another
    supervisor of this trial lives. A trial that is done already is not run again. `turn` is the stop request of a
    job that runs several trials in turn: then the supervisor holds the trial's time limit, which is not the job's.
    A job that `succeeds` the trial's last one runs nothing where that one left nothing to do.
    """
    folder = TrialFolder(trial_dir.resolve())
    config = read_artifact(folder.config, TrialConfig)
    grant = find_grant(config.trial.settings["cluster"]["kind"], os.environ)
    with catch_stop() if turn is None else nullcontext(turn) as stop:
        life_at = read_facts(folder, steps=0).life_at if succeeds else 0.0
        lease = _take_trial_lease(folder, grant, stop=stop)
        try:
            outcome, _ = read_outcome(folder, steps=config.trial.steps)
            left = take_turn(folder, config, grant, life_at=life_at) if succeeds and outcome is None else None
            if left is not None:
                return left
            limit_s = config.trial.shape.time_min * 60.0 if turn is not None else None
            while True:
                outcome, _ = read_outcome(folder, steps=config.trial.steps)
                if outcome is not None:
                    return _end_of_done(outcome, grant)
                earlier = _find_settled(folder, grant)
                if earlier is not None:
                    return earlier
                end, again = _run_next(
                    folder, config, grant, stop=stop, lease=lease, rank_command=rank_command, limit_s=limit_s
                )
                if not again or stop.signum is not None or not _has_budget(config, folder):
                    return end
                _say_again(end)
        finally:
            _release(lease)


def _run_next(
    folder: TrialFolder,
    config: TrialConfig,
    grant: Grant,
    *,
    stop: StopRequest,
    lease: Lease,
    rank_command: Sequence[str],
    limit_s: float | None,
) -> tuple[AttemptEnd, bool]:
    """The attempt's end, and whether the next one may begin right here: a process died, not its node."""
    files = AttemptFiles(folder, write_next_attempt(folder), lease.generation)
    attempt, started, hosts, again = files.attempt, time.monotonic(), grant.hosts, False
    faults: tuple[NodeFault, ...] = ()
    step = find_saved_step(config, folder)
    try:
        stuck = _find_stuck(config, folder, step)
        if stuck:
            raise _StuckError(stuck)
        plan = _plan(config, grant, files, rank_command=rank_command)
        plan = replace(plan, time_limit_s=limit_s) if limit_s is not None else plan
        hosts = plan.hosts
        told = {"job_id": grant.job_id, "hosts": hosts, "granted": grant.hosts, "checkpoint_step": step}
        append_or_say(folder, "started", attempt=attempt, **told)
        if grant.slurm and config.check_nodes:
            _check_nodes(config, hosts, files, stop=stop, lease=lease)
        ending = execute(Execution(plan, config, files, slurm=grant.slurm), stop=stop, beat=lease.beat)
        verdict, evidence = judge_ending(ending)
        code = count_exit_code(ending)
        # A program that is not ours may die at once again and again: its budget is the driver's to count.
        again = is_process_death(ending, verdict) and not config.trial.runs_command
    except BusyError:
        raise  # another supervisor has the trial now, and its ledger: not a word into it
    except _UnfitError as error:
        verdict, evidence, code, faults = error.verdict, str(error), _UNFIT_CODE, error.faults
    except _StuckError as error:
        verdict, evidence, code = Verdict.FAILED, str(error), STUCK_CODE
    except (UserError, ArtifactError) as error:
        verdict, evidence, code = Verdict.CANCELLED, f"refused: {error}", UserError.exit_code
    except OSError as error:
        verdict, evidence, code = Verdict.LOST, f"the supervisor could not go on: {error}", UserError.exit_code
    except Exception as error:
        # The one broad handler of a supervisor: a fault of ours is told in the trial, and is no node's.
        traceback.print_exc()
        verdict, code = Verdict.CANCELLED, 1
        evidence = f"windtunnel itself failed: {type(error).__name__}: {error}"[:_MAX_WORDS]
    wall_s = time.monotonic() - started
    end = AttemptEnd(attempt, code, verdict, evidence, hosts, grant.job_id, wall_s, node_faults=faults)
    settle(folder, end, signalled_at=stop.at, step=find_saved_step(config, folder))
    return end, again


def _check_nodes(
    config: TrialConfig, hosts: tuple[str, ...], files: AttemptFiles, *, stop: StopRequest, lease: Lease
) -> None:
    health = check_nodes(config.trial.shape, hosts, files, stop=stop, beat=lease.beat)
    for note in health.notes:
        print(f"attempt {files.attempt}: {note}", flush=True)
    unfit = describe_unfit(health)
    if unfit is not None:
        raise _UnfitError(*unfit, health.faults)


def _find_settled(folder: TrialFolder, grant: Grant) -> AttemptEnd | None:
    """How the trial ended for good in this very job, which Slurm has started again since."""
    if not grant.slurm or not folder.attempts.is_dir():
        return None
    numbers = read_attempt_numbers(folder)
    end = read_end(folder.end(numbers[-1])) if numbers else None
    settled = end is not None and end.job_id == grant.job_id and end.verdict in _SETTLED
    return end if settled else None


def find_saved_step(config: TrialConfig, folder: TrialFolder) -> int | None:
    """Step of the newest checkpoint that our trainer left; None without one, and for a program's own."""
    return None if config.trial.runs_command else find_newest_step(folder.path / "checkpoints")


def _find_stuck(config: TrialConfig, folder: TrialFolder, step: int | None) -> str:
    if config.trial.runs_command:  # only the program knows whether it gets further
        return ""
    events = read_events(folder.path)
    every = int(config.trial.settings.get("training", {}).get("checkpoint_every", 0))
    vanished = find_vanished(events, step=step, trained=read_last_record(folder.metrics), every=every)
    return vanished or find_stuck(events, read_ends(folder, read_attempt_numbers(folder)), step=step)


def _has_budget(config: TrialConfig, folder: TrialFolder) -> bool:
    earlier = read_retried(read_events(folder.path), read_ends(folder, read_attempt_numbers(folder)))
    return decide_retry(Run(Verdict.LOST), earlier, RetrySettings(lost=config.lost_retries)).again


def _say_again(end: AttemptEnd) -> None:
    print(f"attempt {end.attempt}: {end.verdict}: {end.evidence}; going on in the same job", flush=True)


def _plan(config: TrialConfig, grant: Grant, files: AttemptFiles, *, rank_command: Sequence[str]) -> LaunchPlan:
    refusal = find_refusal(config)
    if refusal:
        raise StudyError(refusal)
    ordered = grant if keeps_slurms_order(config) else replace(grant, hosts=_order_grant(config, grant.hosts))
    container = ContainerSettings.model_validate(config.trial.settings["cluster"]["container"])
    path = find_import_path(container, os.environ.get("PYTHONPATH", ""))
    command = rank_command or find_rank_command(container)
    return plan_attempt(config, ordered, files=files, rank_command=command, path=path)


def _order_grant(config: TrialConfig, hosts: tuple[str, ...]) -> tuple[str, ...]:
    if not config.topology or len(hosts) == 1:
        return hosts
    topology = read_artifact(Path(config.topology), Topology)
    return order_hosts(hosts, topology, config.trial.settings["placement"]["policy"])


def _take_trial_lease(folder: TrialFolder, grant: Grant, *, stop: StopRequest) -> Lease:
    # Slurm starts a requeued job on other nodes while its dead supervisor's last heartbeat is still
    # fresh: wait until that is stale rather than fail.
    deadline = time.monotonic() + (STALE_AFTER_S + _LEASE_POLL_S if grant.slurm else 0.0)
    while True:
        try:
            return take_lease(folder.lease, f"trial {folder.path.name}", job_id=grant.job_id if grant.slurm else "")
        except BusyError:
            if time.monotonic() > deadline or stop.signum is not None:
                raise
            if not free_dead_holder(folder, grant):
                time.sleep(_LEASE_POLL_S)


def _release(lease: Lease) -> None:
    try:
        lease.release()
    except OSError:
        pass  # a full disk: this process's end frees the lease as well


def _end_of_done(outcome: TrialOutcome, grant: Grant) -> AttemptEnd:
    hosts = tuple(dict.fromkeys(outcome.rank_hosts))
    evidence = "DONE.json is valid: nothing was run"
    return AttemptEnd(outcome.attempt, 0, Verdict.COMPLETED, evidence, hosts, grant.job_id, 0.0)
