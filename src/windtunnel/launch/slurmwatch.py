"""What Slurm knows of a driver's jobs: one squeue for all, sacct only for those that squeue no longer shows.

squeue forgets a job minutes after its end, and may show an end that Slurm takes back; sacct may lag behind,
or not exist. Neither may keep a trial waiting without an end.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from windtunnel.errors import CommandError
from windtunnel.hostlist import expand_hostlist
from windtunnel.launch.pace import Pace
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase
from windtunnel.records.trial import Verdict
from windtunnel.slurm.accounting import AccountedJob, read_accounting
from windtunnel.slurm.queue import QueuedJob, base_of, cancel_jobs, read_own_queue, read_queue
from windtunnel.slurm.states import (
    NEVER_STARTS,
    REVOCABLE,
    STARTS_FAILED,
    is_held,
    is_known,
    read_state_name,
    sight_of_state,
)

SETTLE_S = 5.0
"""An end counts so long after it was first seen: Slurm may take it back, and records may be on their way."""
STUCK_AFTER_S = 600.0
"""A job that is COMPLETING, or in a state that nobody here knows, for so long is not waited for any more."""
_CLOCKS_S = 60.0
_WAITING = JobSight(Phase.QUEUED)


@dataclass(frozen=True)
class Record:
    """A job as it was last seen; `kind` is its state, or HELD."""

    sight: JobSight
    kind: str
    since: float
    """When it was first seen so, on the monotonic clock; -inf for an end before this watch first looked."""
    alive_at: float = 0.0
    """When it was last seen alive, in seconds since 1970; 0 for never."""
    looks: int = 1
    """How often it was seen so."""


class SlurmWatch:
    """The last sights of jobs, asked for again when they are too old."""

    def __init__(
        self,
        *,
        poll_s: float,
        say: Callable[[str], None],
        settle_s: float = SETTLE_S,
        held_s: float = 86400.0,
    ) -> None:
        self._pace = Pace(poll_s)
        self._settle_s = settle_s
        self._held_s = held_s
        self._say = say
        self._records: dict[str, Record] = {}
        self._given_up: dict[str, JobSight] = {}
        self._own: set[str] = set()
        self._sought: set[str] = set()
        self._shared = False
        self._accounting = True
        self._refused = False
        self._silent_since: float | None = None

    @property
    def silent_s(self) -> float:
        """Seconds for which Slurm has not answered; 0 while it does."""
        return 0.0 if self._silent_since is None else time.monotonic() - self._silent_since

    def expect(self, job_ids: Collection[str]) -> None:
        """Jobs just submitted wait, until Slurm says otherwise."""
        fresh = Record(_WAITING, "PENDING", time.monotonic(), alive_at=time.time())
        self._records.update(dict.fromkeys(job_ids, fresh))
        self._own.update(job_ids)

    def look(self, job_ids: Collection[str], *, urgent: bool = False) -> dict[str, JobSight]:
        """The sight of each job; an end counts once it has settled, a job that nobody knows is UNSURE."""
        records = [self._records.get(job_id) for job_id in job_ids]
        soon = urgent or any(record is None or _is_open(record) for record in records)
        if records and self._pace.may_ask(time.monotonic(), urgent=soon):
            self._ask(job_ids)
        now = time.monotonic()
        return {job_id: self._settle(job_id, now) for job_id in job_ids}

    def _ask(self, job_ids: Collection[str]) -> None:
        # A store may hold trials that ran without Slurm; their ids are no job's.
        known = [job_id for job_id in job_ids if base_of(job_id).isdecimal() and job_id not in self._given_up]
        try:
            queue = self._read_queue(known) if known else {}
        except CommandError as error:
            self._wait_for_slurm(error)
            return
        self._silent_since = None
        accounted = self._read_accounting([job_id for job_id in known if job_id not in queue])
        for job_id in known:
            self._note(job_id, queue.get(job_id), accounted.get(job_id))
        self._give_up(known, queue)

    def _read_queue(self, job_ids: Collection[str]) -> dict[str, QueuedJob]:
        if self._shared:
            return read_queue(job_ids)
        queue = read_own_queue()
        strange = [job_id for job_id in job_ids if job_id not in queue and job_id not in self._own | self._sought]
        # Ids of an earlier driver that this user's queue does not show: gone, or another user's. Asked once.
        self._sought.update(strange)
        others = read_queue(strange)
        self._shared = bool(others)
        self._own.update(job_id for job_id in job_ids if job_id in queue)
        return queue | others

    def _read_accounting(self, job_ids: Collection[str]) -> dict[str, AccountedJob]:
        unsettled = [job_id for job_id in job_ids if not _is_closed(self._records.get(job_id))]
        if not self._accounting or not unsettled:
            return {}
        try:
            accounted = read_accounting(unsettled)
        except CommandError as error:
            self._say(f"accounting does not answer, so that some ends stay unexplained: {error}")
            return {}
        self._accounting = accounted is not None
        return accounted or {}

    def _note(self, job_id: str, queued: QueuedJob | None, accounted: AccountedJob | None) -> None:
        before = self._records.get(job_id)
        if queued is None and before is not None and _is_closed(before):
            # squeue has forgotten what it told; that it shows no other run is a second look.
            self._records[job_id] = replace(before, looks=before.looks + 1)
            return
        alive_at = before.alive_at if before is not None else 0.0
        sight = _sight(job_id, queued, accounted, alive_at=alive_at)
        kind = _kind_of(queued, accounted)
        now = time.monotonic()
        if sight.phase in (Phase.QUEUED, Phase.RUNNING):
            alive_at = time.time()
        if before is not None and before.kind == kind:
            sight = replace(sight, ended_at=before.sight.ended_at)
            self._records[job_id] = Record(sight, kind, before.since, alive_at, before.looks + 1)
            return
        since = float("-inf") if before is None and sight.phase == Phase.ENDED else now
        if sight.phase == Phase.ENDED and before is not None:
            sight = replace(sight, ended_at=time.time())
        self._records[job_id] = Record(sight, kind, since, alive_at, 1 if queued is not None else 2)

    def _give_up(self, job_ids: Collection[str], queue: Mapping[str, QueuedJob]) -> None:
        now = time.monotonic()
        given_up = {
            job_id: sight
            for job_id in job_ids
            if job_id in queue
            and (sight := self._judge(queue[job_id], now - self._records[job_id].since)) is not None
        }
        accepted = self._cancel(given_up)
        self._given_up.update({job_id: sight for job_id, sight in given_up.items() if job_id in accepted})

    def _cancel(self, job_ids: Collection[str]) -> set[str]:
        """Those that scancel took. The others are given up at the next look: two jobs of one trial may be alive."""
        if not job_ids:
            return set()
        try:
            problem = cancel_jobs(job_ids)
        except CommandError as error:
            problem = str(error)
        if problem and not self._refused:
            self._say(f"jobs that never start or never end could not be cancelled; trying again: {problem}")
        self._refused = bool(problem)
        named = {job_id for job_id in job_ids if re.search(rf"\b{job_id}\b", problem)}
        return set(job_ids) - named if named or not problem else set()

    def _judge(self, job: QueuedJob, age_s: float) -> JobSight | None:
        """The end of a job that is waited for no more, if it is one: it is cancelled."""
        job_id, state = job.job_id, read_state_name(job.state)
        if state == "PENDING" and job.reason in NEVER_STARTS:
            told = f"Slurm can never start job {job_id} as it was asked for ({job.reason}): it was cancelled"
            return JobSight(Phase.ENDED, Verdict.CANCELLED, told)
        if is_held(job.state, job.reason) and job.reason in STARTS_FAILED:
            told = f"Slurm tried to start job {job_id} and gave up ({job.reason}): it was cancelled"
            return JobSight(Phase.ENDED, Verdict.NODE_FAIL, told)
        if is_held(job.state, job.reason) and age_s > self._held_s:
            told = (
                f"job {job_id} was held ({job.reason}) for {age_s / 3600:.1f} h, sweep.held_hours: it was cancelled"
            )
            return JobSight(Phase.ENDED, Verdict.CANCELLED, told)
        if (state == "COMPLETING" or not is_known(job.state)) and age_s > STUCK_AFTER_S:
            return JobSight(Phase.UNSURE, evidence=f"job {job_id} has been {state} for {age_s / 60:.0f} min")
        return None

    def _wait_for_slurm(self, error: CommandError) -> None:
        if self._silent_since is None:
            self._silent_since = time.monotonic()
            self._say(f"Slurm does not answer: its jobs are taken to go on until it does: {error}")

    def _settle(self, job_id: str, now: float) -> JobSight:
        if job_id in self._given_up:
            return self._given_up[job_id]
        record = self._records.get(job_id)
        if record is None:
            # Not asked yet, or Slurm does not answer; but an id that is no job's is nobody's.
            return _WAITING if base_of(job_id).isdecimal() else UNSEEN
        open_ = record.sight.phase == Phase.ENDED and (now - record.since < self._settle_s or _is_open(record))
        return JobSight(Phase.RUNNING, evidence=record.sight.evidence) if open_ else record.sight


def _is_open(record: Record) -> bool:
    """Whether it is an end that Slurm may still take back: it counts once a second look shows it too."""
    return record.kind in REVOCABLE and record.looks < 2


def _is_closed(record: Record | None) -> bool:
    return record is not None and record.sight.phase == Phase.ENDED


def _kind_of(queued: QueuedJob | None, accounted: AccountedJob | None) -> str:
    if queued is not None:
        return "HELD" if is_held(queued.state, queued.reason) else read_state_name(queued.state)
    return f"sacct {accounted.state}" if accounted is not None else "unknown"


def _sight(job_id: str, queued: QueuedJob | None, accounted: AccountedJob | None, *, alive_at: float) -> JobSight:
    if queued is not None:
        detail = _detail(queued.nodes, queued.reason)
        sight = sight_of_state(queued.state, job_id=job_id, detail=detail)
        return replace(sight, hosts=_hosts(queued.nodes)) if sight.phase == Phase.ENDED else sight
    if accounted is None:
        return UNSEEN
    detail = _detail(accounted.nodes, f"exit code {accounted.exit_code}")
    sight = sight_of_state(accounted.state, job_id=job_id, detail=detail, hosts=_hosts(accounted.nodes))
    if sight.phase != Phase.ENDED:
        # The controller does not know it: the record is of an earlier run, or its end was never written down.
        return JobSight(Phase.UNSURE, evidence=f"accounting says {accounted.state} of job {job_id}, squeue nothing")
    if 0 < accounted.ended_at < alive_at - _CLOCKS_S:
        return JobSight(Phase.UNSURE, evidence=f"accounting has only an earlier run of job {job_id}")
    return sight


def _hosts(nodes: str) -> tuple[str, ...]:
    return tuple(expand_hostlist(nodes)) if nodes and nodes not in ("None assigned", "(null)") else ()


def _detail(nodes: str, reason: str) -> str:
    where = f"on {nodes}" if nodes and nodes != "None assigned" else ""
    return ", ".join(part for part in (where, reason) if part and part != "None")
