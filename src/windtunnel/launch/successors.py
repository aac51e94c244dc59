"""Each trial's next job, queued behind its present one: found again, made the present one, or cancelled.

What must outlast the driver is in the trials' ledgers. A successor that was missed does no harm: it looks itself
whether there is anything left for it to do, and a trial without one is submitted as ever.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from windtunnel.errors import ClusterError, CommandError, FullQueueError
from windtunnel.launch.backend import Backend
from windtunnel.launch.claims import Claims
from windtunnel.launch.context import SweepContext
from windtunnel.launch.course import Course
from windtunnel.launch.heirs import Heirs, NoSuccessors
from windtunnel.launch.line import Line, SlurmLine
from windtunnel.launch.nodebook import NodeBook
from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.log import Event, append_event, read_events
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase, find_job_id, find_verdict_event
from windtunnel.ledger.retries import Ending, decide_retry, read_retried
from windtunnel.ledger.story import IN_FLIGHT_S, Succession, find_begun, find_submission, find_succession, find_wish
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import Verdict

_AT_ONCE = 8
"""Successors queued between two looks at the trials: each is a command of Slurm's."""
_LONGEST_PAUSE_S = 600.0
_FAR = 1 << 62
"""A step that no checkpoint of before has reached."""
_GOES_ON = (Verdict.NODE_FAIL, Verdict.LOST, Verdict.PREEMPTED, Verdict.TIMEOUT)


class Successors:
    """Of one driver's courses. Each method leaves a course without a successor as it is."""

    def __init__(
        self,
        context: SweepContext,
        backend: Backend,
        line: Line,
        *,
        say: Callable[[str], None],
        nodes: NodeBook | None = None,
    ) -> None:
        self._nodes = nodes
        self._context = context
        self._backend = backend
        self._line = line
        self._say = say
        self._claims = Claims(say=say)
        self._again_at, self._pause_s = float("-inf"), context.sweep.poll_s
        self._told = False
        self._tried: dict[str, float] = {}
        """When a course is looked at again, by its trial's id."""

    def tend(self, courses: Sequence[Course], sights: Mapping[str, JobSight]) -> None:
        """Queue a job behind each course's present one, those that run first, a few at a time."""
        now = time.monotonic()
        if now < self._again_at:
            return
        bare = [each for each in courses if each.under_way and each.entry is None and each.job_id]
        bare = [each for each in bare if not each.successor and each.tended != each.job_id]
        # One that is left as it is, since its answer was lost or its end is wished, does not keep others waiting.
        bare = [each for each in bare if now >= self._tried.get(each.trial.id, now)]
        bare.sort(key=lambda each: sights.get(each.job_id, UNSEEN).phase != Phase.RUNNING)
        with self._claims.hold(bare[:_AT_ONCE]) as tried:
            for course in tried.done:
                self._tried[course.trial.id] = now + self._context.sweep.poll_s
                try:
                    self._tend_one(course)
                except (CommandError, FullQueueError) as error:
                    self._put_off(course, error)
                    break

    def locate(self, course: Course, facts: TrialFacts) -> None:
        """Set the course's successor, also one whose id was never written down, if Slurm answers."""
        with suppress(CommandError):
            self._find(course, facts)

    def follow(self, course: Course, facts: TrialFacts) -> bool:
        """Watch the successor instead, once it has started; whether that is so."""
        started = next((event for event in reversed(facts.events) if event.kind == "started"), None)
        job_id = find_job_id(facts)
        if started is None or not course.job_id or job_id == course.job_id or started.details.get("job_id") != job_id:
            return False
        self._say(f"{course.label}: job {course.job_id} has ended: its successor {job_id} goes on with it")
        self._note_nodes(course, facts)
        self._pass_on(course, job_id)
        return True

    def is_left(self, course: Course, sights: Mapping[str, JobSight]) -> bool:
        """Whether the successor waits or runs."""
        return sights.get(course.successor, UNSEEN).phase in (Phase.QUEUED, Phase.RUNNING)

    def is_deciding(self, course: Course, sights: Mapping[str, JobSight]) -> bool:
        """Whether the successor runs: it tells soon whether it goes on with the trial."""
        return sights.get(course.successor, UNSEEN).phase == Phase.RUNNING

    def adopt(self, course: Course, verdict: Verdict | None, sights: Mapping[str, JobSight]) -> bool:
        """Make a successor that still waits the trial's job, by the ledger too; False where none waits."""
        if sights.get(course.successor, UNSEEN).phase != Phase.QUEUED or verdict == Verdict.CANCELLED:
            return False
        begun = find_begun(read_events(course.folder.path))
        name = begun.name if begun is not None else ""
        append_event(course.folder.path, "submitted", attempt=0, job_id=course.successor, submission=name)
        self._say(f"{course.label}: its next job is {course.successor}, which waits in the queue already")
        self._pass_on(course, course.successor)
        return True

    def dismiss(self, course: Course) -> None:
        """Cancel the successor of a trial that is tried no more, or is submitted anew."""
        if not course.successor:
            self.locate(course, course.read())
        try:
            if course.successor:
                self._backend.cancel([course.successor])
        except CommandError as error:
            self._say(f"{course.label}: the job behind its last one will find nothing to do: {error}")
        course.successor = ""

    def _tend_one(self, course: Course) -> None:
        facts = course.read()
        events, begun, succession = facts.events, find_begun(facts.events), find_succession(facts.events)
        if find_job_id(facts) != course.job_id or find_submission(events) or find_wish(events):
            return
        self._find(course, facts)
        if course.successor or (succession is not None and self._is_on_its_way(course, succession)):
            return
        if begun is None or not begun.alone or not self._may_go_on(facts):
            course.tended = course.job_id
            return
        retries, jobs_dir = self._context.sweep.retries.model_dump(), str(self._context.jobs_dir)
        append_event(
            course.folder.path, "queueing", attempt=0, submission=begun.name, jobs_dir=jobs_dir, retries=retries
        )
        try:
            job_id = self._line.queue(course.trial, begun.name, exclude=self._exclude(course.trial))
        except (ClusterError, FullQueueError) as error:
            append_event(course.folder.path, "queued", attempt=0, job_id="", evidence=str(error))
            if isinstance(error, FullQueueError):
                raise
            course.tended = course.job_id
            self._say(f"{course.label}: no job waits behind {course.job_id}: {error}")
            return
        self._note(course, job_id)

    def _find(self, course: Course, facts: TrialFacts) -> None:
        succession = find_succession(facts.events)
        course.successor = succession.job_id if succession is not None else ""
        if succession is not None and not course.successor:
            job_id = self._line.find(course.trial, succession, _list_jobs(facts.events))
            if job_id:
                self._note(course, job_id)

    def _pass_on(self, course: Course, job_id: str) -> None:
        course.job_id, course.successor, course.seen_at = job_id, "", time.time()
        course.submissions += 1
        self._tried.pop(course.trial.id, None)

    def _is_on_its_way(self, course: Course, succession: Succession) -> bool:
        if time.time() - succession.at <= IN_FLIGHT_S:
            return True
        append_event(course.folder.path, "queued", attempt=0, job_id="", evidence="no job of it is there")
        return False

    def _note(self, course: Course, job_id: str) -> None:
        append_event(course.folder.path, "queued", attempt=0, job_id=job_id, behind=course.job_id)
        course.successor, self._pause_s = job_id, self._context.sweep.poll_s

    def _exclude(self, trial: PlannedTrial) -> tuple[str, ...]:
        shape = trial.shape
        return self._nodes.exclude(shape.partition, needed=shape.nodes) if self._nodes is not None else ()

    def _note_nodes(self, course: Course, facts: TrialFacts) -> None:
        """Write down the node for which the attempt before ended, as the driver does of those that it judges."""
        place = max(number for number, event in enumerate(facts.events) if event.kind == "started")
        before = replace(facts, events=facts.events[:place], attempts=facts.attempts[:-1])
        told = find_verdict_event(before)
        if self._nodes is not None and told is not None:
            verdict = Verdict(told.details["verdict"])
            self._nodes.note_end(course.trial.id, before, JobSight(Phase.ENDED, verdict), verdict)

    def _may_go_on(self, facts: TrialFacts) -> bool:
        earlier, budgets = read_retried(facts.events, facts.ends), self._context.sweep.retries
        return any(decide_retry(Ending(verdict, _FAR), earlier, budgets).again for verdict in _GOES_ON)

    def _put_off(self, course: Course, error: Exception) -> None:
        self._again_at = time.monotonic() + self._pause_s
        self._pause_s = max(self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S))
        if not self._told:
            self._say(f"{course.label}: no job waits behind {course.job_id} yet; trying again: {error}")
            self._told = True


def open_successors(
    context: SweepContext, backend: Backend, *, say: Callable[[str], None], nodes: NodeBook | None
) -> Heirs:
    """The successors of a sweep that wants them; there are none on this machine alone."""
    wanted = context.sweep.successor and context.cluster.kind == "slurm"
    return Successors(context, backend, SlurmLine(context), say=say, nodes=nodes) if wanted else NoSuccessors()


def _list_jobs(events: Sequence[Event]) -> set[str]:
    return {str(event.details["job_id"]) for event in events if event.details.get("job_id")}
