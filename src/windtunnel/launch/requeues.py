"""Jobs that Slurm itself starts again: stopped where nothing is to come of it, by budget or by verdict."""

from collections.abc import Callable

from windtunnel.errors import CommandError
from windtunnel.launch.backend import Backend
from windtunnel.launch.context import SweepContext
from windtunnel.launch.course import Course
from windtunnel.launch.lookout import Lookout
from windtunnel.launch.nodebook import NodeBook
from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.reconcile import JobSight, Phase, Standing
from windtunnel.ledger.retries import Ending, is_spent, read_retried
from windtunnel.records.trial import Verdict


class Requeues:
    """Of one driver's courses."""

    def __init__(
        self,
        context: SweepContext,
        backend: Backend,
        lookout: Lookout,
        *,
        say: Callable[[str], None],
        nodes: NodeBook | None,
    ) -> None:
        self._sweep = context.sweep
        self._backend = backend
        self._lookout = lookout
        self._say = say
        self._nodes = nodes
        self._refused: set[str] = set()

    def stop_spent(self, course: Course, facts: TrialFacts) -> Standing | None:
        """Note the node that failed under a queued course; its end where its nodes failed too often.

        None where it waits on, also while Slurm refuses to cancel its job: then at the next look.
        """
        last = facts.attempts[-1] if facts.attempts else 0
        vanished = facts.events and facts.events[-1].kind == "started" and last not in facts.ends
        if not vanished or facts.holder is not None:
            return None
        if self._nodes is not None and course.noted != last:
            course.noted = last
            self._nodes.note_requeue(course.trial.id, facts)
        endings = [*read_retried(facts.events, facts.ends), Ending(Verdict.NODE_FAIL)]
        if not is_spent(Verdict.NODE_FAIL, endings, self._sweep.retries) or not self._cancel(course):
            return None
        told = f"Slurm started job {course.job_id} again after each of its nodes failed: it was cancelled"
        return Standing(Phase.ENDED, Verdict.NODE_FAIL, told)

    def clear_away(self, course: Course, facts: TrialFacts, sight: JobSight) -> None:
        """Cancel the job of a trial that ended if Slurm queued it once more: nobody would ever look at it again."""
        ended = bool(facts.attempts) and facts.attempts[-1] in facts.ends
        if sight.phase != Phase.QUEUED or not ended or self._sweep.trials_per_job > 1:
            return
        try:
            self._backend.cancel([course.job_id])
        except CommandError as error:
            self._say(f"{course.label}: its job {course.job_id} is still in the queue: {error}")

    def _cancel(self, course: Course) -> bool:
        try:
            self._backend.cancel([course.job_id])
        except CommandError as error:
            if course.job_id not in self._refused:
                self._refused.add(course.job_id)
                self._say(f"{course.label}: job {course.job_id} could not be cancelled; trying again: {error}")
            return False
        self._lookout.disown(course.job_id)
        return True
