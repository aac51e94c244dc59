"""What Slurm knows of a driver's jobs: one squeue for all, sacct only for those that squeue no longer shows."""

import time
from collections.abc import Callable, Collection, Mapping

from windtunnel.errors import CommandError
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase
from windtunnel.records.trial import Verdict
from windtunnel.slurm.accounting import AccountedJob, read_accounting
from windtunnel.slurm.queue import QueuedJob, cancel_jobs, read_queue
from windtunnel.slurm.states import NEVER_STARTS, sight_of_state

_URGENT_POLL_S = 3.0
SETTLE_S = 5.0
"""Records that a job wrote last may reach this host so long after the news of its end."""


class SlurmWatch:
    """The last sights of jobs, asked for again when they are too old."""

    def __init__(self, *, poll_s: float, say: Callable[[str], None], settle_s: float = SETTLE_S) -> None:
        self._poll_s = poll_s
        self._settle_s = settle_s
        self._say = say
        self._sights: dict[str, JobSight] = {}
        self._ended_at: dict[str, float] = {}
        self._hopeless: dict[str, JobSight] = {}
        self._looked_at = float("-inf")
        self._silent = False

    def expect(self, job_ids: Collection[str]) -> None:
        """Jobs just submitted wait, until Slurm says otherwise."""
        self._sights.update(dict.fromkeys(job_ids, JobSight(Phase.QUEUED)))
        self._ended_at.update(dict.fromkeys(job_ids, float("inf")))

    def look(self, job_ids: Collection[str], *, urgent: bool = False) -> dict[str, JobSight]:
        """The sight of each job; an end counts once it has settled, a job that nobody knows is UNSURE."""
        interval_s = min(_URGENT_POLL_S, self._poll_s) if urgent else self._poll_s
        unknown = any(job_id not in self._sights for job_id in job_ids)
        if unknown or time.monotonic() - self._looked_at >= interval_s:
            self._looked_at = time.monotonic()
            self._ask(job_ids)
        return {job_id: self._settle(job_id) for job_id in job_ids}

    def _ask(self, job_ids: Collection[str]) -> None:
        # A store may hold trials that ran without Slurm; their ids are no job's.
        known = [job_id for job_id in job_ids if job_id.partition("_")[0].isdecimal()]
        try:
            queue = read_queue(known)
        except CommandError as error:
            self._wait_for_slurm(job_ids, error)
            return
        self._silent = False
        missing = [job_id for job_id in known if job_id not in queue]
        accounted = read_accounting(missing) or {}
        self._give_up(queue)
        for job_id in job_ids:
            told = _sight(job_id, queue.get(job_id), accounted.get(job_id))
            self._sights[job_id] = self._hopeless.get(job_id, told)

    def _give_up(self, queue: Mapping[str, QueuedJob]) -> None:
        hopeless = {job.job_id: job.reason for job in queue.values() if _is_hopeless(job)}
        for job_id, reason in hopeless.items():
            told = f"Slurm can never start job {job_id} as it was asked for ({reason}): it was cancelled"
            self._hopeless[job_id] = JobSight(Phase.ENDED, Verdict.CANCELLED, told)
        if hopeless:
            cancel_jobs(hopeless)

    def _wait_for_slurm(self, job_ids: Collection[str], error: CommandError) -> None:
        if not self._silent:
            self._say(f"Slurm does not answer: its jobs are taken to go on until it does: {error}")
        self._silent = True
        for job_id in job_ids:
            self._sights.setdefault(job_id, JobSight(Phase.QUEUED))

    def _settle(self, job_id: str) -> JobSight:
        sight = self._sights.get(job_id, UNSEEN)
        if sight.phase != Phase.ENDED:
            self._ended_at[job_id] = float("inf")
            return sight
        # A job that had ended before this watch first saw it has nothing on the way any more.
        ended_at = self._ended_at.get(job_id, float("-inf"))
        if ended_at == float("inf"):
            ended_at = self._ended_at[job_id] = time.monotonic()
        return sight if time.monotonic() - ended_at >= self._settle_s else JobSight(Phase.RUNNING)


def _is_hopeless(job: QueuedJob) -> bool:
    return job.state == "PENDING" and job.reason in NEVER_STARTS


def _sight(job_id: str, queued: QueuedJob | None, accounted: AccountedJob | None) -> JobSight:
    if queued is not None:
        return sight_of_state(queued.state, job_id=job_id, detail=_detail(queued.nodes, queued.reason))
    if accounted is not None:
        detail = _detail(accounted.nodes, f"exit code {accounted.exit_code}")
        return sight_of_state(accounted.state, job_id=job_id, detail=detail)
    return UNSEEN


def _detail(nodes: str, reason: str) -> str:
    where = f"on {nodes}" if nodes and nodes != "None assigned" else ""
    return ", ".join(part for part in (where, reason) if part and part != "None")
