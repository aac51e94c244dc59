"""Why an attempt was signalled, asked of Slurm while the signal is fresh and the ranks still save."""

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from windtunnel.attempt.plan import LaunchPlan
from windtunnel.attempt.ranks import StopRequest
from windtunnel.slurm.cause import Cause, Clock, read_cause
from windtunnel.slurm.deadline import find_job_end, is_near_end, may_be_warning, read_process_began_at

Ask = Callable[[float], Cause]
Keep = Callable[[Cause], None]


def _forget(_: Cause) -> None:
    """Of what nobody asked to keep."""


class SignalWatch:
    """Of one attempt; `look` is called all the while. Without Slurm nobody is asked."""

    def __init__(self, stop: StopRequest, ask: Ask | None, keep: Keep = _forget) -> None:
        """`keep` is told the cause at once: Slurm may kill this process before its ranks have ended."""
        self._stop = stop
        self._ask = ask
        self._keep = keep
        self._answer: Future[Cause] | None = None

    def look(self) -> None:
        """Ask, in the background, as soon as there is a signal to ask about."""
        if self._answer is None and self._ask is not None and self._stop.at is not None:
            pool = ThreadPoolExecutor(1)
            self._answer = pool.submit(self._learn, self._ask, self._stop.at)
            pool.shutdown(wait=False)

    def _learn(self, ask: Ask, at: float) -> Cause:
        cause = ask(at)
        self._keep(cause)
        return cause

    def finish(self) -> None:
        """Wait for the answer, if one was asked for."""
        if self._answer is not None:
            self._answer.result()

    def read(self, *, told: bool) -> Cause:
        """The cause. `told`: a rank said that it was signalled, whether or not we were."""
        if self._answer is None and self._ask is not None and told:
            return self._ask(time.time())
        return self._answer.result() if self._answer is not None else Cause.UNKNOWN


def ask_slurm(plan: LaunchPlan, *, time_min: int, started_at: float) -> Ask:
    """Questions about this process's job, whose attempt began at `started_at`, in seconds since 1970 UTC."""
    began_at = min(started_at, read_process_began_at(os.getpid()))
    if plan.time_limit_s is not None:  # in a job of several trials: this one's time, not the job's
        ends_at = started_at + plan.time_limit_s
    else:
        ends_at = find_job_end(os.environ, began_at=began_at, time_min=time_min)

    def ask(at: float) -> Cause:
        clock = Clock(
            may_be_up=may_be_warning(at, ends_at=ends_at, time_min=time_min),
            is_up=is_near_end(at, ends_at=ends_at, time_min=time_min),
        )
        restarts = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
        cause = read_cause(os.environ.get("SLURM_JOB_ID", ""), since=began_at, restarts=restarts, clock=clock)
        # The job's time may be up where this trial's, one of several, is not.
        not_its_own = cause is Cause.TIME_LIMIT and plan.time_limit_s is not None and not clock.is_up
        return Cause.UNKNOWN if not_its_own else cause

    return ask
