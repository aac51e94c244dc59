"""What a driver makes of one trial: where it stands, whether it is tried again, and the verdict in its ledger."""

import socket
import time
from collections.abc import Mapping
from dataclasses import replace

from windtunnel.checkpoints.reached import read_saved_step
from windtunnel.launch.backend import Backend
from windtunnel.launch.course import Course
from windtunnel.launch.nodebook import NodeBook
from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.lease import bury_holder
from windtunnel.ledger.log import append_event
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Standing, is_outlived, reconcile
from windtunnel.ledger.retries import Ending, Retry, decide_retry, is_unturned, read_retried
from windtunnel.ledger.story import find_wish
from windtunnel.records.trial import Verdict
from windtunnel.settings.sweep import SweepSettings


class Judge:
    """Judges by `ledger.reconcile` and `ledger.retries`; here their questions are put and their answers kept."""

    def __init__(self, study: str, sweep: SweepSettings, backend: Backend, nodes: NodeBook | None) -> None:
        self._study = study
        self._sweep = sweep
        self._backend = backend
        self._nodes = nodes

    def stand(self, course: Course, facts: TrialFacts, sights: Mapping[str, JobSight]) -> Standing:
        """The standing of a trial now, by its records and its job."""
        sight = sights.get(course.job_id, UNSEEN)
        lively = replace(facts, life_at=max(facts.life_at, course.seen_at))
        sweep = self._sweep
        return reconcile(
            lively,
            sight,
            now=time.time(),
            lost_after_s=sweep.lost_after_s,
            settle_s=sweep.settle_s,
            limit_s=course.limit_s,
        )

    def free_lease(self, course: Course, facts: TrialFacts, sights: Mapping[str, JobSight]) -> TrialFacts:
        """The facts without a holder that Slurm says is gone, so that nobody waits for its heartbeat to go stale."""
        sight = sights.get(course.job_id, UNSEEN)
        if facts.holder is None or not is_outlived(facts, sight, course.job_id, here=socket.gethostname()):
            return facts
        return replace(facts, holder=None) if bury_holder(course.folder.lease, facts.holder) else facts

    def decide(self, course: Course, facts: TrialFacts, standing: Standing) -> Retry:
        """Whether a trial that ended is tried again."""
        if standing.verdict is None:
            return Retry(False)
        wish = find_wish(facts.events) if standing.verdict == Verdict.CANCELLED else None
        other = str(wish.details.get("study", self._study)) if wish is not None else self._study
        if other != self._study:
            return Retry(True, f"submitting it again, at no cost: it was cancelled for study {other} alone")
        step = read_saved_step(course.folder) if standing.verdict == Verdict.TIMEOUT else 0
        begun = standing.verdict != Verdict.PREEMPTED or not is_unturned(facts.events)
        earlier = read_retried(facts.events, facts.ends)
        return decide_retry(Ending(standing.verdict, step, begun), earlier, self._sweep.retries)

    def write_verdict(
        self, course: Course, facts: TrialFacts, standing: Standing, sight: JobSight, *, again: bool = True
    ) -> Standing:
        """Put the verdict into the ledger, and the node that it points to into the store's record.

        `again` tells a job that may be starting behind the one that ended whether the trial is tried again.
        """
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
            step=read_saved_step(course.folder),
            again=again,
        )
        if self._nodes is not None and standing.verdict is not None:
            self._nodes.note_end(course.trial.id, facts, sight, standing.verdict)
        return standing
