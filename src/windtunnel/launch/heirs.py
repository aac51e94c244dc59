"""What a driver asks about the jobs that wait behind its trials' present ones, and the answers where none do."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from windtunnel.launch.course import Course
from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.reconcile import JobSight
from windtunnel.records.trial import Verdict


class Heirs(Protocol):
    """Of one driver's courses. Each method leaves a course without a successor as it is."""

    def tend(self, courses: Sequence[Course], sights: Mapping[str, JobSight]) -> None:
        """Queue a job behind each course's present one, those that run first, a few at a time."""
        ...

    def locate(self, course: Course, facts: TrialFacts) -> None:
        """Set the course's successor, also one whose id was never written down, if Slurm answers."""
        ...

    def follow(self, course: Course, facts: TrialFacts) -> bool:
        """Watch the successor instead, once it has started; whether that is so."""
        ...

    def is_left(self, course: Course, sights: Mapping[str, JobSight]) -> bool:
        """Whether the successor waits or runs."""
        ...

    def is_deciding(self, course: Course, sights: Mapping[str, JobSight]) -> bool:
        """Whether the successor runs: it tells soon whether it goes on with the trial."""
        ...

    def adopt(self, course: Course, verdict: Verdict | None, sights: Mapping[str, JobSight]) -> bool:
        """Make a successor that still waits the trial's job, by the ledger too; False where none waits."""
        ...

    def dismiss(self, course: Course) -> None:
        """Cancel the successor of a trial that is tried no more, or is submitted anew."""
        ...


class NoSuccessors:
    """Where none are wanted: nothing is queued, and none is ever found."""

    def tend(self, courses: Sequence[Course], sights: Mapping[str, JobSight]) -> None:
        """Queue nothing."""

    def locate(self, course: Course, facts: TrialFacts) -> None:
        """Find none."""

    def follow(self, course: Course, facts: TrialFacts) -> bool:
        """False: the course's own job is all there is."""
        return False

    def is_left(self, course: Course, sights: Mapping[str, JobSight]) -> bool:
        """False."""
        return False

    def is_deciding(self, course: Course, sights: Mapping[str, JobSight]) -> bool:
        """False."""
        return False

    def adopt(self, course: Course, verdict: Verdict | None, sights: Mapping[str, JobSight]) -> bool:
        """False: the trial is submitted anew."""
        return False

    def dismiss(self, course: Course) -> None:
        """There is nothing to cancel."""
