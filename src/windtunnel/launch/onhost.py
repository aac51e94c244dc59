"""Trials as processes of this machine, a few at a time."""

import os
import signal
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import submitit

from windtunnel.launch.backend import Submitted
from windtunnel.launch.context import SweepContext
from windtunnel.launch.jobs import find_stderr, submit_local
from windtunnel.ledger.log import append_event
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase
from windtunnel.ledger.story import Submission
from windtunnel.ledger.tail import read_last_line
from windtunnel.records.plan import PlannedTrial

_POLL_S = 0.2
_EXIT_S = 10.0


class LocalBackend:
    """Starts processes through submitit. A job id is `host:pid` of submitit's controller."""

    survives = False
    silent_s = 0.0

    def __init__(self, context: SweepContext) -> None:
        self.poll_s = min(_POLL_S, context.sweep.marker_poll_s)
        self._context = context
        self._host = socket.gethostname()
        self._jobs: dict[str, submitit.Job[None]] = {}

    def pick(self, waiting: Sequence[PlannedTrial], *, active: int) -> Sequence[PlannedTrial]:
        """Up to `sweep.local_trials` at a time: speed is a result. A process on its way out still counts."""
        leaving = sum(not job.done() for job in self._jobs.values())
        return waiting[: max(0, self._context.sweep.local_trials - max(active, leaving))]

    def submit(
        self, trials: Sequence[PlannedTrial], *, exclude: tuple[str, ...] = (), seen: Mapping[str, int] | None = None
    ) -> Submitted:
        """Start one process a trial; there is no other host to choose."""
        ids = {}
        for trial in trials:
            job = submit_local(self._context.command_of(trial), trial.shape, folder=self._context.jobs_dir)
            job_id = f"{self._host}:{job.job_id}"
            known = {"seen": seen[trial.id]} if seen is not None and trial.id in seen else {}
            append_event(self._context.folder_of(trial).path, "submitted", attempt=0, job_id=job_id, **known)
            self._jobs[job_id] = job
            ids[trial.id] = job_id
        return Submitted(ids)

    def recover(self, trial: PlannedTrial, submission: Submission) -> str:
        """A local process that its driver did not write down holds its trial's lease."""
        return ""

    def look(self, job_ids: Collection[str], *, urgent: bool) -> dict[str, JobSight]:
        """Whether each process lives."""
        return {job_id: self._look_at(job_id) for job_id in job_ids}

    def explain(self, job_id: str) -> str:
        """Last line of the supervisor's stderr."""
        return read_last_line(find_stderr(self._context.jobs_dir, _pid_of(job_id)))

    def stop(self, job_ids: Collection[str]) -> None:
        """SIGTERM to submitit's controllers, which pass it to the supervisors."""
        for job_id in job_ids:
            if self._look_at(job_id).phase == Phase.RUNNING:
                os.kill(int(_pid_of(job_id)), signal.SIGTERM)

    def cancel(self, job_ids: Collection[str]) -> None:
        """As `stop`."""
        self.stop(job_ids)

    def close(self) -> None:
        """Wait for processes whose trials have ended: they have only to exit."""
        deadline = time.monotonic() + _EXIT_S
        while any(not job.done() for job in self._jobs.values()) and time.monotonic() < deadline:
            time.sleep(self.poll_s)

    def _look_at(self, job_id: str) -> JobSight:
        host, _, pid = job_id.rpartition(":")
        if host != self._host:
            return UNSEEN
        job = self._jobs.get(job_id)
        alive = not job.done() if job is not None else _is_controller(int(pid))
        return JobSight(Phase.RUNNING) if alive else JobSight(Phase.ENDED, evidence=f"process {pid} ended")


def stop_process(job_id: str) -> bool:
    """SIGTERM to a trial's process `host:pid`, whoever started it; False when it does not run on this host."""
    host, _, pid = job_id.rpartition(":")
    if host != socket.gethostname() or not _is_controller(int(pid)):
        return False
    os.kill(int(pid), signal.SIGTERM)
    return True


def _pid_of(job_id: str) -> str:
    return job_id.rpartition(":")[2]


def _is_controller(pid: int) -> bool:
    # Pids are used again: that of an earlier driver's controller counts only while it is one.
    try:
        return b"submitit.local" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
