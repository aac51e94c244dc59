"""The sweep: every trial of a plan to a verdict, round after round, under one lease for the study.

The same command again goes on where any earlier one ended, whatever ended it.
"""

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from windtunnel.artifacts import hash_json, read_artifact, to_plain, write_artifact
from windtunnel.errors import IncompleteError, StoppedError, StudyError
from windtunnel.identity import read_identity
from windtunnel.launch.backend import Backend
from windtunnel.launch.context import SUPERVISOR, SweepContext
from windtunnel.launch.course import begin_course, is_final
from windtunnel.launch.detach import JOB_ENV
from windtunnel.launch.drive import Driver, Say
from windtunnel.launch.nodebook import NodeBook
from windtunnel.launch.onhost import LocalBackend
from windtunnel.launch.onslurm import SlurmBackend
from windtunnel.launch.preflight import check_sweep, refuse_mistakes
from windtunnel.launch.preflight_table import render_preflight
from windtunnel.launch.successors import open_successors
from windtunnel.ledger.lease import Lease, start_beating, take_lease
from windtunnel.planner.rounds import next_round
from windtunnel.records.plan import Identity, Plan, PlannedTrial
from windtunnel.records.trial import PARTIAL_SWEEP, Sweep, SweepEntry
from windtunnel.settings.study import SweepStageSettings
from windtunnel.slurm.limits import Limits
from windtunnel.storage import name_storage_faults

_STOP_TIMEOUT_S = 45.0


@dataclass
class Stop:
    """Whether a signal asked the driver to end."""

    wanted: bool = False


def run_sweep(
    settings: SweepStageSettings,
    *,
    plan: Path,
    features: Path | None,
    topology: Path | None,
    store: Path,
    import_root: str,
    out: Path,
    supervisor: Sequence[str] = SUPERVISOR,
    check: bool = True,
) -> Sweep:
    """Bring all trials of `plan` to a verdict and publish them at `out`.

    Unless told not to `check`, raises ClusterError with all that is wrong before anything is submitted.
    Raises BusyError while another driver of this study lives, StudyError when the plan is not of this
    code and data, StorageError when the disk is full, and IncompleteError when a verdict is not final or
    trials were not begun (then `sweep.partial.json` beside `out` holds what there is).
    """
    planned = read_artifact(plan, Plan)
    _check_plan(planned, read_identity(features), plan)
    context = make_context(
        settings,
        identity=planned.identity,
        features=features,
        topology=topology,
        store=store,
        import_root=import_root,
        jobs_dir=out.parent / "jobs",
        supervisor=supervisor,
    )
    lease = take_lease(out.parent / ".lease", f"study {settings.study}", job_id=os.environ.get(JOB_ENV, ""))
    ended = start_beating([lease])  # a step of the driver may take longer than a silent holder is given
    try:
        with catch_stop() as stop, name_storage_faults("the study's or the store's file system"), _stop_told(stop):
            limits = _check(planned, context) if check else None
            finished = _run_rounds(planned, context, lease=lease, stop=stop, limits=limits)
            sweep = Sweep(settings.study, str(context.store / "trials"), tuple(finished.values()), to_plain(settings))
            return publish_sweep(sweep, settings, out, pending=_count_pending(planned, finished, context))
    finally:
        ended.set()
        lease.release()


def make_context(
    settings: SweepStageSettings,
    *,
    identity: Identity,
    features: Path | None,
    topology: Path | None,
    store: Path,
    import_root: str,
    jobs_dir: Path,
    supervisor: Sequence[str] = SUPERVISOR,
) -> SweepContext:
    """The context with every path made absolute, since jobs run elsewhere."""
    return SweepContext(
        study=settings.study,
        cluster=settings.cluster,
        sweep=settings.sweep,
        identity=identity,
        features=features.resolve() if features is not None else None,
        topology=topology.resolve() if topology is not None else None,
        store=store.resolve(),
        import_root=str(Path(import_root).resolve()) if import_root else "",
        jobs_dir=jobs_dir.resolve(),
        supervisor=tuple(supervisor),
    )


def run_trials(
    trials: Sequence[PlannedTrial],
    context: SweepContext,
    *,
    lease: Lease,
    stop: Stop,
    before: int = 0,
    say: Say | None = None,
    limits: Limits | None = None,
) -> dict[str, SweepEntry]:
    """One round: each trial's entry by its id, in the order given. `before` trials came in earlier rounds."""
    total = before + len(trials)
    courses = [begin_course(trial, context, number=before + i + 1, total=total) for i, trial in enumerate(trials)]
    say = say or print_line
    backend = choose_backend(context, say=say, limits=limits)
    nodes = open_nodebook(context, say=say)
    successors = open_successors(context, backend, say=say, nodes=nodes)
    driver = Driver(context, backend, say=say, nodes=nodes, successors=successors)
    driver.attach(courses)
    while not stop.wanted:
        lease.beat()  # one that was lost meanwhile: nothing more is submitted
        if not driver.step(courses):
            break
        time.sleep(driver.pause_s)
    if stop.wanted:
        driver.stop(courses, timeout_s=_STOP_TIMEOUT_S)
    backend.close()
    return {course.trial.id: course.entry for course in courses if course.entry is not None}


def choose_backend(context: SweepContext, *, say: Say, limits: Limits | None = None) -> Backend:
    """Slurm, or this machine, as the cluster's settings say; `limits` are Slurm's, where they are known."""
    context.jobs_dir.mkdir(parents=True, exist_ok=True)
    return SlurmBackend(context, say=say, limits=limits) if context.cluster.kind == "slurm" else LocalBackend(context)


def open_nodebook(context: SweepContext, *, say: Say) -> NodeBook | None:
    """The store's record of nodes that failed; there is none for this machine alone."""
    return NodeBook(context.store, context.sweep.exclusion, say) if context.cluster.kind == "slurm" else None


@contextmanager
def catch_stop() -> Iterator[Stop]:
    """Turn Ctrl-C and SIGTERM into a wish to stop inside the block; a second Ctrl-C interrupts at once."""
    stop = Stop()

    def receive(signum: int, _frame: object) -> None:
        if stop.wanted and signum == signal.SIGINT:
            raise KeyboardInterrupt
        stop.wanted = True

    before = {signum: signal.signal(signum, receive) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def print_line(line: str) -> None:
    """A line of progress, seen at once."""
    print(line, flush=True)


def _check(plan: Plan, context: SweepContext) -> Limits | None:
    preflight = check_sweep(plan, context)
    if preflight.shapes:
        print_line(render_preflight(preflight))
    refuse_mistakes(preflight)
    return preflight.limits


def _run_rounds(
    plan: Plan, context: SweepContext, *, lease: Lease, stop: Stop, limits: Limits | None
) -> dict[str, SweepEntry]:
    finished: dict[str, SweepEntry] = {}
    while not stop.wanted and _all_final(finished, context) and (trials := next_round(plan, finished)):
        finished |= run_trials(trials, context, lease=lease, stop=stop, before=len(finished), limits=limits)
    return finished


def _all_final(entries: Mapping[str, SweepEntry], context: SweepContext) -> bool:
    return all(is_final(entry.verdict, strict=context.sweep.strict) for entry in entries.values())


def _count_pending(plan: Plan, finished: Mapping[str, SweepEntry], context: SweepContext) -> int:
    """Trials that the plan would begin next."""
    return len(next_round(plan, finished)) if _all_final(finished, context) else 0


def publish_sweep(sweep: Sweep, settings: SweepStageSettings, out: Path, *, pending: int) -> Sweep:
    """Write `out` when every verdict is final and no trial is left to begin, `sweep.partial.json` otherwise.

    Raises IncompleteError for a partial one, after which no `sweep.json` of an earlier command is left.
    """
    partial = out.with_name(PARTIAL_SWEEP)
    unfinished = [entry for entry in sweep.entries if not is_final(entry.verdict, strict=settings.sweep.strict)]
    if not unfinished and not pending:
        write_artifact(out, sweep, settings_hash=hash_json(settings))
        partial.unlink(missing_ok=True)
        print_line(f"sweep: {_count(sweep.entries)}; {out}")
        return sweep
    write_artifact(partial, sweep, settings_hash=hash_json(settings))
    out.unlink(missing_ok=True)
    reasons = "".join(f"\n  {entry.name}: {entry.verdict}: {entry.evidence}" for entry in unfinished)
    not_begun = f", and {pending} were not begun" if pending else ""
    raise IncompleteError(
        f"study {settings.study}: {len(unfinished)} of {len(sweep.entries)} trials have no final verdict{not_begun} "
        f"(what there is: {partial}); the same command goes on with them:{reasons}"
    )


@contextmanager
def _stop_told(stop: Stop) -> Iterator[None]:
    try:
        yield
    except IncompleteError as error:
        if not stop.wanted:
            raise
        raise StoppedError(str(error)) from None


def _count(entries: Sequence[SweepEntry]) -> str:
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.verdict] = counts.get(entry.verdict, 0) + 1
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def _check_plan(plan: Plan, here: Identity, path: Path) -> None:
    if not plan.trials:
        raise StudyError(f"study {plan.study} has no trials in {path}: every combination was pruned; see its reasons")
    for name in ("data_sha256", "source_sha256", "torch_version"):
        planned, found = getattr(plan.identity, name), getattr(here, name)
        if planned != found:
            raise StudyError(
                f"{path} was planned with {name} {planned[:12]}, but here it is {found[:12]}: plan the study again"
            )
