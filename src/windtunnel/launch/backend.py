"""What the driver asks of a place to run trials, whichever it is."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from windtunnel.ledger.reconcile import JobSight
from windtunnel.ledger.story import Submission
from windtunnel.records.plan import PlannedTrial


@dataclass(frozen=True)
class Submitted:
    """By trial id: the jobs, why the place refused others, and why it is not known whether it took yet others.

    After one without an answer no more are tried, and a trial may be in none of them.
    """

    job_ids: dict[str, str]
    refusals: dict[str, str] = field(default_factory=dict)
    unanswered: dict[str, str] = field(default_factory=dict)


class Backend(Protocol):
    """Where jobs run. A job id that it does not know is UNSURE, never an error."""

    poll_s: float
    """Seconds between two looks of the driver."""
    survives: bool
    """Whether jobs go on when the driver is told to stop."""

    @property
    def silent_s(self) -> float:
        """Seconds for which the place has not answered; 0 while it does."""
        ...

    def pick(self, waiting: Sequence[PlannedTrial], *, active: int) -> Sequence[PlannedTrial]:
        """Those of the waiting trials, in order, that it takes now while `active` are under way."""
        ...

    def submit(
        self, trials: Sequence[PlannedTrial], *, exclude: tuple[str, ...] = (), seen: Mapping[str, int] | None = None
    ) -> Submitted:
        """Submit the trials' next attempts, to none of the nodes in `exclude`; a refused one costs no other.

        `seen` is how many events each one's ledger, by its id, had when it was decided to submit it: wishes after
        them hold.
        """
        ...

    def recover(self, trial: PlannedTrial, submission: Submission) -> str:
        """Job id of a submission that was begun, but whose id was never written down; or empty.

        Raises CommandError when the place does not answer.
        """
        ...

    def look(self, job_ids: Collection[str], *, urgent: bool) -> dict[str, JobSight]:
        """What is known of each job; `urgent` asks the scheduler sooner than its usual interval."""
        ...

    def explain(self, job_id: str) -> str:
        """The last line that the job's supervisor wrote to its stderr, if any."""
        ...

    def stop(self, job_ids: Collection[str]) -> None:
        """Tell jobs to end that end with their driver."""
        ...

    def cancel(self, job_ids: Collection[str]) -> None:
        """Tell jobs to end that nobody waits for any more; raises CommandError, with its words, for a refusal."""
        ...

    def close(self) -> None:
        """Let go of what a round left on this host."""
        ...
