"""What a driver sees of its courses' jobs, and how often it asks: sooner while an answer is expected."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from windtunnel.launch.backend import Backend
from windtunnel.launch.course import Course
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase
from windtunnel.records.trial import Verdict

_URGENT_FOR_S = 30.0
_WAITS_EVERY_S = 600.0
_FIRST_WAITS_S = 60.0


class Lookout:
    """Over one backend, for one driver."""

    def __init__(
        self, backend: Backend, *, say: Callable[[str], None], first_waits_s: float = _FIRST_WAITS_S
    ) -> None:
        """Why jobs wait is told after `first_waits_s` for the first time."""
        self._backend = backend
        self._say = say
        self._urgent_until = float("-inf")
        self._waits_at = time.monotonic() + first_waits_s
        self._disowned: set[str] = set()

    def look(self, courses: Sequence[Course]) -> dict[str, JobSight]:
        """What is known of the jobs of `courses` and of their successors, by job id."""
        asked = {course.job_id for course in courses if course.job_id}
        asked |= {course.successor for course in courses if course.job_id and course.successor}
        sights = self._backend.look(asked, urgent=time.monotonic() < self._urgent_until)
        for job_id in self._disowned & sights.keys():
            if sights[job_id].verdict == Verdict.CANCELLED:
                sights[job_id] = replace(sights[job_id], verdict=Verdict.PREEMPTED)
        now = time.time()
        for course in courses:
            if sights.get(course.job_id, UNSEEN).phase in (Phase.QUEUED, Phase.RUNNING):
                course.seen_at = now
        return sights

    def is_alive(self, course: Course) -> bool:
        """Whether the course's job waits or runs, asked now."""
        return self._backend.look([course.job_id], urgent=True)[course.job_id].phase != Phase.ENDED

    def hurry(self, since: float) -> None:
        """Ask often for a while: an attempt ended at `since`, in seconds since 1970, and its job is still shown."""
        self._urgent_until = max(self._urgent_until, time.monotonic() + _URGENT_FOR_S - (time.time() - since))

    def disown(self, job_id: str) -> None:
        """This driver cancelled the job for one of its trials: the others in it were stopped, nobody wished that."""
        self._disowned.add(job_id)

    def tell_waits(self, courses: Sequence[Course], sights: Mapping[str, JobSight]) -> None:
        """Say now and then for which reasons the jobs of `courses` wait in the queue."""
        if time.monotonic() < self._waits_at:
            return
        self._waits_at = time.monotonic() + _WAITS_EVERY_S
        seen = {course.job_id: sights.get(course.job_id, UNSEEN) for course in courses}
        queued = [sight for sight in seen.values() if sight.phase == Phase.QUEUED]
        reasons = Counter(sight.evidence or "no reason told" for sight in queued)
        if reasons:
            told = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
            self._say(f"jobs that wait in the queue: {told}")
