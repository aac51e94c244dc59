"""The productive share of trials under faults, measured and by Daly's model. Pure but for `read_toll`.

J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future Generation Computer
Systems 22 (2006), section 3: with a failure each M seconds, a restart cost of R and a checkpoint's of d each t
seconds of work, work of T seconds takes M e^(R/M) (e^((t+d)/M) - 1) T/t on average.

What of it is measured: d is the median wait for a checkpoint, and t an interval's steps at their productive speed.
The model's restarts take M (1 - e^(-R/M)) each, since some are cut short by the next failure: e^(-R/M) is the share
of time that was not down (queue, start-up, restore, hang, drain), the first start counted as one of them, and the
time from a kill until it is noticed, which the ledger cannot tell from training. Work is lost by those faults alone
of which the trial was not warned, so in the other factor M is the time up for each of these. A checkpoint that was
damaged on purpose adds its interval to T.

So the two shares part where more than an interval is trained again, where a checkpoint is left out or a warned trial
left none, where waits for some are much longer than for most, and where time is in no bucket. Restarts that take
long lower both alike: `recovery_*` are the figures for these.
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windtunnel.ledger.facts import TrialFacts, read_facts
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.traces import read_goodput, read_traces
from windtunnel.records.goodput import AttemptGoodput, Bucket, Goodput, Phase, Trace
from windtunnel.records.trial import Verdict

_DOWN = (Bucket.QUEUE, Bucket.START_UP, Bucket.RESTORE, Bucket.HANG, Bucket.DRAIN)
_WARNED = frozenset({Verdict.PREEMPTED, Verdict.TIMEOUT, Verdict.COMPLETED})


@dataclass(frozen=True)
class Toll:
    """What one or several trials had to pay: seconds, and how often."""

    wall_s: float
    """Without evaluation, of which the model knows nothing."""
    productive_s: float
    up_s: float
    down_s: float
    steps: int
    stalls_s: tuple[float, ...]
    """Waits for a checkpoint."""
    starts: int
    unwarned: int
    """Attempts that had begun to train, and ended without a signal that asked them to."""

    @property
    def share(self) -> float:
        """As measured."""
        return self.productive_s / self.wall_s


def read_toll(folder: TrialFolder, *, steps: int, killed_at: Sequence[float], now: float) -> Toll:
    """Of a trial that is done, whose ranks were killed at these moments; all times in seconds since 1970."""
    facts, traces = read_facts(folder, steps=steps), read_traces(folder)
    return make_toll(facts, traces, read_goodput(folder, facts, now=now), killed_at=killed_at)


def make_toll(
    facts: TrialFacts, traces: dict[int, Trace], goodput: Goodput, *, killed_at: Sequence[float] = ()
) -> Toll:
    """The same of what was read already."""
    seconds = goodput.seconds
    warned = {event.attempt for event in facts.events if event.details.get("signalled_at") is not None}
    warned |= {number for number, end in facts.ends.items() if end.verdict in _WARNED}
    warned |= {facts.outcome.attempt} if facts.outcome is not None else set()
    stalls_s = tuple(stall for trace in traces.values() for stall in _read_stalls(trace))
    # A wait for a checkpoint that never came, as on a full disk, is a part of its attempt's end.
    unended_s = seconds[Bucket.STALL] - math.fsum(stalls_s)
    unnoticed_s = math.fsum(
        _find_unnoticed_s(row, traces[row.attempt], killed_at) for row in goodput.attempts if row.attempt in traces
    )
    trained = {number for number, trace in traces.items() if any(mark.phase is Phase.TRAIN for mark in trace.marks)}
    return Toll(
        wall_s=goodput.wall_s - seconds[Bucket.EVALUATE],
        productive_s=seconds[Bucket.PRODUCTIVE],
        up_s=math.fsum((seconds[Bucket.PRODUCTIVE], seconds[Bucket.REPLAY], *stalls_s)) - unnoticed_s,
        down_s=math.fsum(seconds[bucket] for bucket in _DOWN) + unended_s + unnoticed_s,
        steps=goodput.new_steps,
        stalls_s=stalls_s,
        starts=len(goodput.attempts),
        unwarned=len(trained - warned),
    )


def add_tolls(tolls: Sequence[Toll]) -> Toll:
    """That of several trials together."""
    return Toll(
        wall_s=math.fsum(toll.wall_s for toll in tolls),
        productive_s=math.fsum(toll.productive_s for toll in tolls),
        up_s=math.fsum(toll.up_s for toll in tolls),
        down_s=math.fsum(toll.down_s for toll in tolls),
        steps=sum(toll.steps for toll in tolls),
        stalls_s=tuple(stall for toll in tolls for stall in toll.stalls_s),
        starts=sum(toll.starts for toll in tolls),
        unwarned=sum(toll.unwarned for toll in tolls),
    )


def model_share(toll: Toll, *, interval_steps: int, damaged: int) -> float:
    """Daly's productive share for the same trials, of which `damaged` checkpoints were lost to planted damage."""
    interval_s = interval_steps * toll.productive_s / toll.steps
    cost_s = statistics.median(toll.stalls_s) if toll.stalls_s else 0.0
    available = 1.0 - toll.down_s / toll.wall_s
    again = damaged * interval_s
    useful = toll.productive_s / (toll.productive_s + again)
    return available * useful * find_efficiency(interval_s, cost_s, count=toll.unwarned, up_s=toll.up_s)


def find_efficiency(interval_s: float, cost_s: float, *, count: int, up_s: float) -> float:
    """Share of the time up that is work done for good, with `count` failures in it."""
    if not count:
        return interval_s / (interval_s + cost_s)
    mtbf_s = up_s / count
    return interval_s / (mtbf_s * math.expm1((interval_s + cost_s) / mtbf_s))


def find_restart_s(toll: Toll) -> float:
    """R: seconds of a restart that nothing cuts short."""
    mtbf_s = toll.wall_s / toll.starts
    return -mtbf_s * math.log1p(-toll.down_s / toll.wall_s)


def _find_unnoticed_s(row: AttemptGoodput, trace: Trace, killed_at: Sequence[float]) -> float:
    """Seconds of an attempt's end that are taken for training, though its ranks had been killed."""
    if not trace.marks or trace.marks[-1].phase is not Phase.TRAIN or trace.hung_since is not None:
        return 0.0
    since = min((at for at in killed_at if trace.marks[-1].at <= at <= row.ended_at), default=row.ended_at)
    return row.ended_at - since


def _read_stalls(trace: Trace) -> Iterable[float]:
    pairs = itertools.pairwise(trace.marks)
    return [after.at - mark.at for mark, after in pairs if mark.phase is Phase.STALL]
