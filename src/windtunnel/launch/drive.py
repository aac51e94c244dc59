"""Brings a round of trials to their verdicts: submits, watches, tries again, and never runs a trial twice at once."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from windtunnel.launch.backend import Backend
from windtunnel.launch.context import SweepContext
from windtunnel.launch.course import Course, build_entry, is_final, render_entry
from windtunnel.launch.heirs import Heirs, NoSuccessors
from windtunnel.launch.judge import Judge
from windtunnel.launch.lookout import Lookout
from windtunnel.launch.nodebook import NodeBook
from windtunnel.launch.requeues import Requeues
from windtunnel.launch.submission import Outcome, Submitter
from windtunnel.ledger.facts import NO_FACTS, TrialFacts
from windtunnel.ledger.reconcile import (
    UNSEEN,
    JobSight,
    Phase,
    Standing,
    find_verdict_event,
)
from windtunnel.ledger.story import IN_FLIGHT_S, find_submission, find_wish
from windtunnel.records.trial import Verdict
from windtunnel.storage import describe_fault, find_storage_fault

Say = Callable[[str], None]
# A look at a quiet trial takes 10 to 20 microseconds: looks at all of them stay below a hundredth of a core.
_PAUSE_EACH_S = 0.004


class Driver:
    """Drives courses on a backend. All that must outlast it is in the trials' folders."""

    def __init__(
        self,
        context: SweepContext,
        backend: Backend,
        *,
        say: Say,
        nodes: NodeBook | None = None,
        successors: Heirs | None = None,
    ) -> None:
        self._heirs = successors or NoSuccessors()
        self._context = context
        self._backend = backend
        self._say = say
        self._lookout = Lookout(backend, say=say)
        self._requeues = Requeues(context, backend, self._lookout, say=say, nodes=nodes)
        self._judge = Judge(context.study, context.sweep, backend, nodes)
        self._submitter = Submitter(context, backend, nodes, say=say)
        self._watched = 0

    @property
    def pause_s(self) -> float:
        """Seconds to wait between two steps: longer where very many trials are watched."""
        return max(self._backend.poll_s, self._watched * _PAUSE_EACH_S)

    def attach(self, courses: Sequence[Course]) -> None:
        """Find where each trial stands: finished, running under an earlier driver, or still to be run."""
        facts: dict[str, TrialFacts] = {}
        silent = False
        for course in courses:
            with self._spare_others(course):
                facts[course.trial.id], answered = self._submitter.locate(course, ask=not silent)
                silent = silent or not answered
                self._heirs.locate(course, facts[course.trial.id])
        readable = [course for course in courses if course.entry is None]
        sights = self._lookout.look(readable)
        for course in readable:
            with self._spare_others(course):
                self._attach_one(course, self._judge.free_lease(course, facts[course.trial.id], sights), sights)

    def step(self, courses: Sequence[Course]) -> bool:
        """One look at everything; False when no course is left open."""
        open_ = [course for course in courses if course.entry is None]
        waiting = [course for course in open_ if not course.under_way]
        if waiting:
            self._take(self._submitter.submit(waiting, active=len(open_) - len(waiting)))
        watched = [course for course in open_ if course.under_way and course.entry is None]
        self._watched = len(watched)
        sights = self._lookout.look(watched)
        for course in watched:
            with self._spare_others(course):
                self._watch(course, sights, watched=len(watched))
        self._heirs.tend(watched, sights)
        self._lookout.tell_waits(watched, sights)
        self._leave_silent(watched)
        return bool(open_)

    def stop(self, courses: Sequence[Course], *, timeout_s: float) -> None:
        """Stop what ends with the driver, and take down how it stood."""
        active = [course for course in courses if course.entry is None and course.under_way and course.job_id]
        if active and self._backend.survives:
            self._say(f"{len(active)} jobs go on without this driver: the same command finds them again")
        self._backend.stop([course.job_id for course in active])
        deadline = time.monotonic() + (0 if self._backend.survives else timeout_s)
        while time.monotonic() < deadline and any(self._lookout.is_alive(course) for course in active):
            time.sleep(self._backend.poll_s)
        for course in courses:
            if course.entry is None:
                facts = course.read()
                standing = self._judge.stand(course, facts, self._lookout.look([course]))
                left = Standing(Phase.ENDED, Verdict.CANCELLED, "the sweep was stopped before it ended")
                course.entry = build_entry(course, facts, standing if standing.verdict else left)

    @contextmanager
    def _spare_others(self, course: Course) -> Iterator[None]:
        """Leave a trial whose own files refuse to be read or written; a fault of the file system stops the driver."""
        try:
            yield
        except OSError as error:
            if find_storage_fault(error) is not None:
                raise
            where = describe_fault(error, str(course.folder.path))
            told = f"its files cannot be read or written ({where}): mend that, then the same command goes on"
            course.entry = build_entry(course, NO_FACTS, Standing(Phase.ENDED, Verdict.LOST, told))
            self._say(f"{course.label}: {render_entry(course.entry)}")

    def _attach_one(self, course: Course, facts: TrialFacts, sights: dict[str, JobSight]) -> None:
        course.events = len(facts.events)
        if self._is_in_flight(course, facts):
            course.progress.skip_past()
            return
        standing = self._judge.stand(course, facts, sights)
        if standing.phase == Phase.ENDED:
            self._attach_ended(course, facts, standing, sights)
            return
        course.progress.skip_past()
        if standing.phase != Phase.NEW and (course.job_id or facts.holder is not None):
            course.under_way = True
            self._say(f"{course.label}: already under way ({course.job_id or 'started by hand'}): watching it")

    def _is_in_flight(self, course: Course, facts: TrialFacts) -> bool:
        if find_submission(facts.events) is None or course.job_id or facts.holder is not None:
            return False
        # Its driver was killed: sbatch, a process of its own, may still be at it.
        course.unanswered, course.settled_at = True, facts.events[-1].at + IN_FLIGHT_S
        return True

    def _attach_ended(
        self, course: Course, facts: TrialFacts, standing: Standing, sights: Mapping[str, JobSight]
    ) -> None:
        heirs, sight = self._heirs, sights.get(course.job_id, UNSEEN)
        retry = self._judge.decide(course, facts, standing)
        if is_final(standing.verdict, strict=self._context.sweep.strict) and not retry.again:
            self._close(course, facts, standing, note="already ")
            if heirs.is_left(course, sights):
                heirs.dismiss(course)
            return
        course.progress.skip_past()
        if heirs.is_deciding(course, sights):
            course.under_way = True
            return
        told = find_verdict_event(facts)
        if told is None or told.details["verdict"] != standing.verdict:
            standing = self._judge.write_verdict(course, facts, standing, sight)
            course.events += 1
        if facts.holder is not None:
            self._close(course, facts, standing)
            return
        # The command itself asks for one more try, whatever is left of the budgets.
        self._say(f"{course.label}: attempt {len(facts.attempts)} was {standing.verdict}: {standing.evidence}")
        if heirs.adopt(course, standing.verdict, sights):
            course.under_way = True
            return
        heirs.dismiss(course)
        course.job_id = ""

    def _watch(self, course: Course, sights: dict[str, JobSight], *, watched: int) -> None:
        news = course.read_news(watched=watched)
        if news:
            self._say(f"{course.label}: {news}")
        sight = sights.get(course.job_id, UNSEEN)
        if course.is_quiet(sight, watched=watched):
            return
        facts = course.read()
        if self._heirs.follow(course, facts):
            return
        facts = self._judge.free_lease(course, facts, sights)
        standing = self._judge.stand(course, facts, sights)
        if standing.phase == Phase.ENDED:
            self._end(course, facts, standing, sight, sights)
        elif standing.phase == Phase.NEW:
            self._wait(course, events=len(facts.events))
        elif sight.phase == Phase.QUEUED:
            spent = self._requeues.stop_spent(course, facts)
            if spent is not None:
                self._end(course, facts, spent, sight)
        # An attempt just ended, but its job is still shown: ask soon whether Slurm starts it again.
        last = facts.events[-1] if facts.events else None
        if last is not None and last.kind == "ended":
            self._lookout.hurry(last.at)

    def _end(
        self,
        course: Course,
        facts: TrialFacts,
        standing: Standing,
        sight: JobSight = UNSEEN,
        sights: Mapping[str, JobSight] | None = None,
    ) -> None:
        retry = self._judge.decide(course, facts, standing)
        # One that outlived its job holds the trial, so that no further attempt could run.
        stays = facts.holder is not None and standing.verdict == Verdict.LOST
        if retry.again and facts.holder is not None and not stays:
            if time.time() - facts.events[-1].at < self._context.sweep.lost_after_s:
                return  # its supervisor is on its way out
            stays = True
        heirs = self._heirs
        if retry.again and not stays:
            if not course.successor:
                heirs.locate(course, facts)
                sights = self._lookout.look([course]) if course.successor else sights
            if heirs.is_deciding(course, sights or {}):
                return
        if standing.verdict != Verdict.COMPLETED:
            words = f"{standing.evidence}; {retry.words}" if retry.words and not retry.again else standing.evidence
            told, again = replace(standing, evidence=words), retry.again and not stays
            standing = self._judge.write_verdict(course, facts, told, sight, again=again)
        if not retry.again or stays:
            self._requeues.clear_away(course, facts, sight)
            heirs.dismiss(course)
            self._close(course, facts, standing)
            return
        self._say(f"{course.label}: {standing.verdict}: {standing.evidence}; {retry.words}")
        if heirs.adopt(course, standing.verdict, sights or {}):
            return
        heirs.dismiss(course)
        self._wait(course, events=len(facts.events) + 1)

    def _wait(self, course: Course, *, events: int) -> None:
        course.under_way, course.job_id, course.seen_at, course.events = False, "", 0.0, events

    def _close(self, course: Course, facts: TrialFacts, standing: Standing, *, note: str = "") -> None:
        course.entry = build_entry(course, facts, standing)
        self._say(f"{course.label}: {note}{render_entry(course.entry)}")

    def _take(self, outcome: Outcome) -> None:
        for course, job_id in outcome.begun:
            course.job_id, course.under_way, course.unanswered = job_id, True, False
            course.submissions += 1
            course.seen_at = time.time()
            self._say(f"{course.label}: submitted as {course.job_id}")
        for course, words in outcome.refused:
            with self._spare_others(course):
                self._end(course, course.read(), Standing(Phase.ENDED, Verdict.CANCELLED, words))
        if outcome.news:
            self._say(outcome.news)
        for course, words in outcome.left:
            with self._spare_others(course):
                self._close(course, course.read(), Standing(Phase.ENDED, Verdict.LOST, words))
        for course in outcome.moved:
            if not self._catch_up(course):
                break  # the others have still moved when Slurm answers

    def _catch_up(self, course: Course) -> bool:
        """Somebody else submitted, cancelled or withdrew a trial that waits here. False when Slurm did not answer."""
        known = course.events
        facts, answered = self._submitter.locate(course)
        course.events = len(facts.events)
        if self._is_in_flight(course, facts):
            return answered
        sights = self._lookout.look([course]) if course.job_id else {}
        facts = self._judge.free_lease(course, facts, sights)
        standing = self._judge.stand(course, facts, sights)
        if standing.phase == Phase.ENDED:
            wished = find_wish(facts.events) in facts.events[known:]
            if standing.verdict == Verdict.CANCELLED and wished:
                self._end(course, facts, standing)
            else:
                self._attach_ended(course, facts, standing, sights)
        elif standing.phase != Phase.NEW and (course.job_id or facts.holder is not None):
            course.under_way = True
            self._say(
                f"{course.label}: under way for another study ({course.job_id or 'started by hand'}): watching it"
            )
        else:
            course.job_id = ""
        return answered

    def _leave_silent(self, watched: Sequence[Course]) -> None:
        hours = self._context.sweep.silence_hours
        if self._backend.silent_s < hours * 3600:
            return
        # No verdict in the ledgers: the next command finds the jobs again, if they are still there.
        told = Standing(Phase.ENDED, Verdict.LOST, f"Slurm has not answered for {hours:g} h: its job was left alone")
        for course in watched:
            if course.entry is None:
                self._close(course, course.read(), told)
