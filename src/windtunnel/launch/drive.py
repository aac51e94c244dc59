"""Brings a round of trials to their verdicts: submits, watches, tries again, and never runs a trial twice at once."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.errors import ArtifactError, CommandError, InputFileError
from windtunnel.launch.backend import Backend
from windtunnel.launch.context import SweepContext
from windtunnel.launch.course import RETRIED, Course, build_entry, is_final, render_entry
from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.log import append_event
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase, Standing, count_attempts, find_job_id, reconcile
from windtunnel.records.trial import TrialConfig, Verdict

Say = Callable[[str], None]
_URGENT_FOR_S = 30.0
MAX_SILENCES = 20
"""Tries to submit without an answer, `sweep.poll_s` apart, after which trials are left for the next command."""


class Driver:
    """Drives courses on a backend. All that must outlast it is in the trials' folders."""

    def __init__(self, context: SweepContext, backend: Backend, *, say: Say) -> None:
        self._context = context
        self._backend = backend
        self._say = say
        self._urgent_until = float("-inf")
        self._silences = 0
        self._submit_at = float("-inf")

    def attach(self, courses: Sequence[Course]) -> None:
        """Find where each trial stands: finished, running under an earlier driver, or still to be run."""
        facts = {course.trial.id: course.read() for course in courses}
        for course in courses:
            course.progress.skip_past()
            course.job_id = self._find_job(course, facts[course.trial.id])
        sights = self._look(courses)
        for course in courses:
            self._attach_one(course, facts[course.trial.id], sights)

    def step(self, courses: Sequence[Course]) -> bool:
        """One look at everything; False when no course is left open."""
        open_ = [course for course in courses if course.entry is None]
        waiting = [course for course in open_ if not course.under_way]
        self._submit(waiting, active=len(open_) - len(waiting))
        watched = [course for course in open_ if course.under_way]
        sights = self._look(watched)
        for course in watched:
            self._watch(course, sights)
        return bool(open_)

    def stop(self, courses: Sequence[Course], *, timeout_s: float) -> None:
        """Stop what ends with the driver, and take down how it stood."""
        active = [course for course in courses if course.entry is None and course.under_way and course.job_id]
        if active and self._backend.survives:
            self._say(f"{len(active)} jobs go on without this driver: the same command finds them again")
        self._backend.stop([course.job_id for course in active])
        deadline = time.monotonic() + (0 if self._backend.survives else timeout_s)
        while time.monotonic() < deadline and any(self._alive(course) for course in active):
            time.sleep(self._backend.poll_s)
        for course in courses:
            if course.entry is None:
                facts = course.read()
                standing = self._stand(course, facts, self._look([course]))
                left = Standing(Phase.ENDED, Verdict.CANCELLED, "the sweep was stopped before it ended")
                course.entry = build_entry(course, facts, standing if standing.verdict else left)

    def _attach_one(self, course: Course, facts: TrialFacts, sights: dict[str, JobSight]) -> None:
        standing = self._stand(course, facts, sights)
        if is_final(standing.verdict, strict=self._context.sweep.strict):
            self._close(course, facts, standing, note="already ")
        elif standing.phase == Phase.ENDED:
            standing = self._write_verdict(course, facts, standing)
            self._say(f"{course.label}: attempt {len(facts.attempts)} was {standing.verdict}: {standing.evidence}")
        elif standing.phase != Phase.NEW and (course.job_id or facts.holder is not None):
            course.under_way = True
            self._say(f"{course.label}: already under way ({course.job_id or 'started by hand'}): watching it")

    def _watch(self, course: Course, sights: dict[str, JobSight]) -> None:
        news = course.progress.news()
        if news:
            self._say(f"{course.label}: {news}")
        if course.is_quiet(sights.get(course.job_id, UNSEEN)):
            return
        facts = course.read()
        standing = self._stand(course, facts, sights)
        if standing.phase == Phase.ENDED:
            self._end(course, facts, standing)
        # An attempt just ended, but its job is still shown: ask soon whether Slurm starts it again.
        last = facts.events[-1] if facts.events else None
        if last is not None and last.kind == "ended":
            self._urgent_until = max(self._urgent_until, time.monotonic() + _URGENT_FOR_S - (time.time() - last.at))

    def _end(self, course: Course, facts: TrialFacts, standing: Standing) -> None:
        if standing.verdict != Verdict.COMPLETED:
            standing = self._write_verdict(course, facts, standing)
        tries = max(count_attempts(facts), course.submissions)
        limit = self._context.sweep.max_attempts
        if standing.verdict not in RETRIED or tries >= limit:
            self._close(course, facts, standing)
            return
        again = f"trying again ({tries + 1} of {limit})"
        self._say(f"{course.label}: {standing.verdict}: {standing.evidence}; {again}")
        course.under_way, course.job_id, course.seen_at = False, "", 0.0

    def _write_verdict(self, course: Course, facts: TrialFacts, standing: Standing) -> Standing:
        last = facts.attempts[-1] if facts.attempts else 0
        if course.job_id and last not in facts.ends:
            words = self._backend.explain(course.job_id)
            standing = replace(
                standing, evidence=f"{standing.evidence}; last words: {words}" if words else standing.evidence
            )
        append_event(
            course.folder.path,
            "verdict",
            attempt=last,
            verdict=standing.verdict,
            evidence=standing.evidence,
            job_id=course.job_id,
            life_at=facts.life_at,
        )
        return standing

    def _close(self, course: Course, facts: TrialFacts, standing: Standing, *, note: str = "") -> None:
        course.entry = build_entry(course, facts, standing)
        self._say(f"{course.label}: {note}{render_entry(course.entry)}")

    def _submit(self, waiting: Sequence[Course], *, active: int) -> None:
        batch = waiting[: self._backend.room(active)]
        if not batch or time.monotonic() < self._submit_at:
            return
        try:
            batch = [course for course in batch if not (course.unanswered and self._regain(course))]
        except CommandError as error:
            self._put_off(waiting, str(error))
            return
        for course in batch:
            self._write_config(course)
        submitted = self._backend.submit([course.trial for course in batch])
        for course in batch:
            trial_id = course.trial.id
            course.unanswered = trial_id in submitted.unanswered
            if trial_id in submitted.refusals:
                refusal = submitted.refusals[trial_id]
                self._end(course, course.read(), Standing(Phase.ENDED, Verdict.CANCELLED, refusal))
            elif trial_id in submitted.job_ids:
                self._begin(course, submitted.job_ids[trial_id])
        if submitted.unanswered:
            self._put_off(waiting, next(iter(submitted.unanswered.values())))
        else:
            self._silences = 0

    def _begin(self, course: Course, job_id: str) -> None:
        course.job_id = job_id
        course.under_way = True
        course.submissions += 1
        course.seen_at = time.time()
        self._say(f"{course.label}: submitted as {course.job_id}")

    def _regain(self, course: Course) -> bool:
        """Whether the submission without an answer was taken after all; CommandError when that cannot be told."""
        job_id = self._find_job(course, course.read())
        if job_id:
            course.unanswered = False
            self._begin(course, job_id)
        return bool(job_id)

    def _put_off(self, waiting: Sequence[Course], words: str) -> None:
        left = [course for course in waiting if course.entry is None and not course.under_way]
        self._silences += 1
        self._submit_at = time.monotonic() + self._context.sweep.poll_s
        if self._silences == 1:
            self._say(f"trials that wait to be submitted: {len(left)}; trying again: {words}")
        if self._silences <= MAX_SILENCES:
            return
        # No verdict in the ledgers: their last events still name the submissions, should those turn up.
        lost = Standing(Phase.ENDED, Verdict.LOST, f"not submitted in {self._silences} tries: {words}")
        for course in left:
            self._close(course, course.read(), lost)

    def _write_config(self, course: Course) -> None:
        config = self._context.config_of(course.trial)
        try:
            if read_artifact(course.folder.config, TrialConfig) == config:
                return
        except (InputFileError, ArtifactError):
            pass
        # Also written anew when another study's had other paths, or a limit that is no part of the id.
        write_artifact(course.folder.config, config)

    def _find_job(self, course: Course, facts: TrialFacts) -> str:
        last = facts.events[-1] if facts.events else None
        if last is None or last.kind != "submitting":
            return find_job_id(facts)
        # The answer was lost, or with it the driver: the job is found by the submission's own name.
        job_id = self._backend.recover(course.trial, str(last.details["submission"]), int(last.details["index"]))
        if job_id:
            append_event(course.folder.path, "submitted", attempt=0, job_id=job_id)
        return job_id

    def _alive(self, course: Course) -> bool:
        return self._backend.look([course.job_id], urgent=True)[course.job_id].phase != Phase.ENDED

    def _look(self, courses: Sequence[Course]) -> dict[str, JobSight]:
        urgent = time.monotonic() < self._urgent_until
        sights = self._backend.look({course.job_id for course in courses if course.job_id}, urgent=urgent)
        now = time.time()
        for course in courses:
            if sights.get(course.job_id, UNSEEN).phase in (Phase.QUEUED, Phase.RUNNING):
                course.seen_at = now
        return sights

    def _stand(self, course: Course, facts: TrialFacts, sights: dict[str, JobSight]) -> Standing:
        lively = replace(facts, life_at=max(facts.life_at, course.seen_at))
        sight = sights.get(course.job_id, UNSEEN)
        return reconcile(lively, sight, now=time.time(), lost_after_s=self._context.sweep.lost_after_s)
