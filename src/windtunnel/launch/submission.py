"""Hands a driver's waiting trials to its backend: each at most once, whoever else is at it, and never for ever."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.errors import ArtifactError, CommandError, InputFileError
from windtunnel.launch.backend import Backend, Submitted
from windtunnel.launch.claims import Claims, try_each
from windtunnel.launch.context import SweepContext
from windtunnel.launch.course import Course
from windtunnel.launch.mates import is_wanted
from windtunnel.launch.nodebook import NodeBook
from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.log import LEDGER, append_event, read_events
from windtunnel.ledger.reconcile import find_job_id
from windtunnel.ledger.story import IN_FLIGHT_S, find_begun, find_submission, find_wish
from windtunnel.records.trial import TrialConfig

MAX_SILENCES = 20
"""Tries to submit without an answer, `sweep.poll_s` apart, after which trials are left for the next command."""


@dataclass(frozen=True)
class Outcome:
    """What became of the courses that waited; those in no list wait on."""

    begun: list[tuple[Course, str]] = field(default_factory=list)
    """With the id of the job."""
    refused: list[tuple[Course, str]] = field(default_factory=list)
    """With the place's words."""
    left: list[tuple[Course, str]] = field(default_factory=list)
    """To the next command, with the reason."""
    moved: list[Course] = field(default_factory=list)
    """Somebody else wrote into their ledgers meanwhile: where do they stand now?"""
    news: str = ""


class Submitter:
    """Knows how long the backend has not answered. All that must outlast it is in the trials' folders."""

    def __init__(
        self, context: SweepContext, backend: Backend, nodes: NodeBook | None, *, say: Callable[[str], None]
    ) -> None:
        self._context = context
        self._backend = backend
        self._say = say
        self._nodes = nodes
        self._claims = Claims(say=say)
        self._silences = 0
        self._submit_at = float("-inf")

    def submit(self, waiting: Sequence[Course], *, active: int) -> Outcome:
        """Submit as many of the waiting courses as there is room for while `active` are under way."""
        if not waiting or time.monotonic() < self._submit_at:
            return Outcome()
        outcome = Outcome()
        try:
            settled = [course for course in waiting if not self._is_on_its_way(course, outcome)]
        except CommandError as error:
            self._follow_wishes(outcome.begun)
            return self._put_off(waiting, str(error), outcome)
        with self._claims.hold(self._pick(settled, active=active + len(outcome.begun))) as tried:
            outcome.left.extend(tried.left)
            outcome = self._submit_claimed(tried.done, waiting, outcome)
        self._follow_wishes(outcome.begun)
        return outcome

    def locate(self, course: Course, *, ask: bool = True) -> tuple[TrialFacts, bool]:
        """Read a trial, and set its job; with whether the place answered, where it had to be asked.

        Not to `ask` leaves a job that only the place knows unknown, as no answer does. One whose id becomes known now
        is cancelled where somebody wished so.
        """
        facts = course.read()
        unknown = find_submission(facts.events) is not None
        course.job_id = "" if unknown else find_job_id(facts)
        if not unknown or not ask:
            return facts, True
        try:
            course.job_id = self._find_job(course, facts)
        except CommandError:
            return facts, False
        if not course.job_id:
            return facts, True
        self._follow_wishes([(course, course.job_id)])
        return course.read(), True

    def _find_job(self, course: Course, facts: TrialFacts) -> str:
        """The job of the newest submission, also of one whose answer was lost; empty when there is none.

        Raises CommandError when the place does not answer.
        """
        submission = find_submission(facts.events)
        if submission is None:
            return find_job_id(facts)
        # The answer was lost, or with it the driver: the job is found by the submission's own name.
        job_id = self._backend.recover(course.trial, submission)
        if job_id:
            append_event(course.folder.path, "submitted", attempt=0, job_id=job_id, submission=submission.name)
        return job_id

    def _pick(self, waiting: Sequence[Course], *, active: int) -> list[Course]:
        """Those that there is room for: of the others nothing is claimed, written or read."""
        if not waiting:
            return []
        picked = {trial.id for trial in self._backend.pick([course.trial for course in waiting], active=active)}
        return [course for course in waiting if course.trial.id in picked]

    def _is_on_its_way(self, course: Course, outcome: Outcome) -> bool:
        if not course.unanswered:
            return False
        facts = course.read()
        job_id = self._find_job(course, facts)
        if job_id:
            outcome.begun.append((course, job_id))
        elif find_submission(facts.events) is None:
            course.unanswered = False
        elif time.time() < course.settled_at:
            self._submit_at = time.monotonic() + min(self._context.sweep.poll_s, IN_FLIGHT_S / 10)
            return True
        elif find_wish(facts.events) is not None:
            course.unanswered = False
            outcome.refused.append((course, "cancelled while it was submitted; no job of it is there"))
            return True
        else:
            course.unanswered = False
        return bool(job_id)

    def _submit_claimed(self, claimed: Sequence[Course], waiting: Sequence[Course], outcome: Outcome) -> Outcome:
        tried = try_each(self._prepare, claimed)
        fresh = tried.done
        outcome.moved.extend(tried.not_done)
        outcome.left.extend(tried.left)
        submitted = self._submit_by_partition(fresh)
        for course in fresh:
            trial_id = course.trial.id
            course.unanswered, course.settled_at = trial_id in submitted.unanswered, time.time() + IN_FLIGHT_S
            if trial_id in submitted.job_ids:
                outcome.begun.append((course, submitted.job_ids[trial_id]))
                continue
            events = read_events(course.folder.path)
            if find_wish(events) is None:
                course.events = len(events)  # otherwise it has moved
            if trial_id in submitted.refusals:
                outcome.refused.append((course, submitted.refusals[trial_id]))
        if submitted.unanswered:
            return self._put_off(waiting, next(iter(submitted.unanswered.values())), outcome)
        self._silences = 0
        return outcome

    def _follow_wishes(self, begun: Sequence[tuple[Course, str]]) -> None:
        """Cancel the jobs of which every trial was wished to end before the job's id was known.

        Whoever wishes it later finds the id in the ledger.
        """
        wished = {
            job_id: course for course, job_id in begun if find_wish(read_events(course.folder.path)) is not None
        }
        alone = sorted(job_id for job_id, course in wished.items() if not self._is_wanted(course))
        try:
            if alone:
                self._backend.cancel(alone)
        except CommandError as error:
            self._say(f"jobs {', '.join(alone)} go on, though somebody wished to cancel them: {error}")

    def _is_wanted(self, course: Course) -> bool:
        submission = find_begun(read_events(course.folder.path))
        own = {course.trial.id}
        context = self._context
        return submission is not None and is_wanted(context.store, submission, jobs_dir=context.jobs_dir, but=own)

    def _submit_by_partition(self, courses: Sequence[Course]) -> Submitted:
        groups: dict[str, list[Course]] = {}
        for course in courses:
            groups.setdefault(course.trial.shape.partition, []).append(course)
        submitted = Submitted({})
        for partition, group in groups.items():
            needed = max(course.trial.shape.nodes for course in group)
            exclude = self._nodes.exclude(partition, needed=needed) if self._nodes is not None else ()
            seen = {course.trial.id: course.events for course in group}
            part = self._backend.submit([course.trial for course in group], exclude=exclude, seen=seen)
            submitted.job_ids.update(part.job_ids)
            submitted.refusals.update(part.refusals)
            submitted.unanswered.update(part.unanswered)
            if part.unanswered:
                break
        return submitted

    def _put_off(self, waiting: Sequence[Course], words: str, outcome: Outcome) -> Outcome:
        ended = outcome.begun + outcome.refused + outcome.left
        gone = {id(course) for course, _ in ended} | {id(each) for each in outcome.moved}
        left = [course for course in waiting if id(course) not in gone]
        self._silences += 1
        self._submit_at = time.monotonic() + self._context.sweep.poll_s
        news = f"trials that wait to be submitted: {len(left)}; trying again: {words}" if self._silences == 1 else ""
        if self._silences > MAX_SILENCES:
            # No verdict in the ledgers: their last events still name the submissions, should those turn up.
            words = f"not submitted in {self._silences} tries: {words}"
            outcome.left.extend((course, words) for course in left)
        return Outcome(outcome.begun, outcome.refused, outcome.left, outcome.moved, news)

    def _prepare(self, course: Course) -> bool:
        """Write what its supervisor reads; False when somebody else wrote into its ledger meanwhile."""
        if course.events != len(read_events(course.folder.path)):
            return False
        _check_ledger(course)
        self._write_config(course)
        return True

    def _write_config(self, course: Course) -> None:
        config = self._context.config_of(course.trial)
        try:
            if read_artifact(course.folder.config, TrialConfig) == config:
                return
        except (InputFileError, ArtifactError):
            pass
        # Also written anew when another study's had other paths, or a limit that is no part of the id.
        write_artifact(course.folder.config, config)


def _check_ledger(course: Course) -> None:
    # A ledger that takes no line is found here, where it costs this trial alone.
    with suppress(FileNotFoundError):
        os.close(os.open(course.folder.path / LEDGER, os.O_RDWR | os.O_APPEND))
