"""One trial's course through a sweep: what is known of it, and the lines printed about it."""

import math
import os
import time
from dataclasses import dataclass

from windtunnel.launch.context import SweepContext
from windtunnel.launch.progress import Progress
from windtunnel.ledger.facts import TrialFacts, read_facts
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.log import LEDGER
from windtunnel.ledger.reconcile import JobSight, Phase, Standing, count_node_seconds
from windtunnel.ledger.story import find_hosts
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import FINAL, SweepEntry, Verdict
from windtunnel.units import format_seconds

_REREAD_S = 2.0
_REREAD_QUEUED_S = 30.0
_REREAD_EACH_S = 0.3
_REREAD_AT_LEAST_S = 300.0
_NEWS_EACH_S = 0.2
_SPARE_S = 900.0


@dataclass
class Course:
    """Mutable: the driver moves it along."""

    trial: PlannedTrial
    label: str
    """`trial 3 of 8: tcn ddp bf16`."""
    folder: TrialFolder
    progress: Progress
    under_way: bool = False
    """Whether it is being watched; otherwise it waits to be submitted."""
    job_id: str = ""
    """Empty for an attempt that was started by hand."""
    successor: str = ""
    """The job that waits behind it; empty without one, or while none is known."""
    tended: str = ""
    """The job behind which none is queued."""
    submissions: int = 0
    seen_at: float = 0.0
    """When its job was last seen alive, in seconds since 1970."""
    unanswered: bool = False
    """Whether its last submission got no answer: there may be a job of it."""
    settled_at: float = 0.0
    """Until when that submission may still be on its way, in seconds since 1970."""
    events: int = 0
    """Events in the ledger when it was last decided to submit the trial."""
    noted: int = 0
    """The attempt that Slurm took away from its node, as was last written down."""
    entry: SweepEntry | None = None
    _seen: object = None
    _read_at: float = float("-inf")
    _news_at: float = float("-inf")

    @property
    def limit_s(self) -> float:
        """Seconds after its start past which nothing of an attempt should be left."""
        return self.trial.shape.time_min * 60.0 + _SPARE_S

    def is_quiet(self, sight: JobSight, *, watched: int = 1) -> bool:
        """Whether a full look can wait: no new event, the job as before, and the last look not long ago.

        A thousand trials are then a thousand `stat`s a look for the file system, not ten thousand reads.
        """
        seen = (_signature(f"{self.folder.path}/{LEDGER}"), sight)
        interval_s = _REREAD_QUEUED_S if sight.phase == Phase.QUEUED else _scale_reread(watched)
        if seen == self._seen and time.monotonic() - self._read_at < interval_s:
            return True
        self._seen, self._read_at = seen, time.monotonic()
        return False

    def read_news(self, *, watched: int) -> str:
        """What to tell of its progress, less often the more trials are watched; empty for nothing."""
        if time.monotonic() - self._news_at < watched * _NEWS_EACH_S:
            return ""
        self._news_at = time.monotonic()
        return self.progress.news()

    def read(self) -> TrialFacts:
        """What the trial's folder says now."""
        return read_facts(self.folder, steps=self.trial.steps)


def _scale_reread(watched: int) -> float:
    return min(max(_REREAD_S, watched * _REREAD_EACH_S), _REREAD_AT_LEAST_S)


def _signature(path: str) -> tuple[int, int]:
    try:
        stat = os.stat(path)  # noqa: PTH116 -- a thousand Paths a look cost more than the looks
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def begin_course(trial: PlannedTrial, context: SweepContext, *, number: int, total: int) -> Course:
    """The course of the plan's trial `number`, counted from 1."""
    folder = context.folder_of(trial)
    progress = Progress(folder.metrics, trial.steps)
    return Course(trial, f"trial {number} of {total}: {trial.name}", folder, progress)


def is_final(verdict: Verdict | None, *, strict: bool) -> bool:
    """Whether no later attempt changes the verdict."""
    return verdict in FINAL and not (strict and verdict == Verdict.FAILED)


def build_entry(course: Course, facts: TrialFacts, standing: Standing) -> SweepEntry:
    """The sweep's record of a trial that ended, or that the sweep leaves as it stands."""
    last = course.progress.read_last() if facts.outcome is None else None
    loss = last.loss if last is not None else None
    return SweepEntry(
        trial_id=course.trial.id,
        name=course.trial.name,
        choices=course.trial.choices,
        verdict=standing.verdict or Verdict.LOST,
        evidence=standing.evidence,
        attempts=len(facts.attempts),
        node_seconds=count_node_seconds(facts),
        outcome=facts.outcome,
        hosts=find_hosts(facts.events) if facts.outcome is None else (),
        step=last.step if last is not None else None,
        loss=loss if loss is not None and math.isfinite(loss) else None,
    )


def render_entry(entry: SweepEntry) -> str:
    """The closing line of a trial."""
    if entry.outcome is None:
        return f"{entry.verdict}: {entry.evidence}"
    outcome = entry.outcome
    wall = format_seconds(sum(outcome.phases_s.values()))
    losses = [f"{item.split} loss {item.loss:.4g}" for item in outcome.evaluations]
    told = outcome.final_train_loss
    loss = ", ".join(losses) or (f"loss {told:.4g}" if told is not None else f"{outcome.steps} steps")
    rate = f", {outcome.samples_per_s:,.0f} samples/s" if outcome.samples_per_s is not None else ""
    attempts = f", attempt {outcome.attempt}" if outcome.attempt > 1 else ""
    return f"{entry.verdict} in {wall}: {loss}{rate}{attempts}"
