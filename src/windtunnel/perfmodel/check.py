"""How right the model is on a table of measured runs: fitted to half of the jobs, judged on the other half.

Jobs are split whole, by a hash of their family, so that no layout of a judged job was seen. Beside each error stands
that of the plainest model, one share of the peak for each source, device and precision.
"""

import hashlib
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.stats import kendalltau

from windtunnel.perfmodel.constants import Constants
from windtunnel.perfmodel.estimate import estimate_step
from windtunnel.perfmodel.fit import Fit, fit_constants
from windtunnel.perfmodel.layout import Recompute
from windtunnel.perfmodel.tables import Run
from windtunnel.perfmodel.transformer import count_model_flops

MOST_FITTED = 6
"""Constants of one source: more would follow its rows instead of its physics."""
_FEWEST_LAYOUTS = 4
"""Of a family in which ranks are compared."""
_LINK_SHARE = 0.43
"""Of a device's links, that a collective inside a node gets."""
_NODE_SHARE = 0.7
"""Of a node's links, as published, that collectives out of it get."""


@dataclass(frozen=True)
class Judged:
    """A run that the fit had not seen."""

    run: Run
    predicted_s: float
    baseline_s: float
    """By one share of the peak for the source, device and precision, from the other half."""

    @property
    def error(self) -> float:
        """Predicted over measured, minus 1."""
        assert self.run.step_s is not None
        return self.predicted_s / self.run.step_s - 1


@dataclass(frozen=True)
class Check:
    """All runs of one source, each judged by the fit to the other half of its jobs."""

    source: str
    judged: tuple[Judged, ...]
    fits: tuple[Fit, ...]

    @property
    def mape(self) -> float:
        """Mean absolute error of a step's time, in percent."""
        return 100 * statistics.fmean(abs(each.error) for each in self.judged)

    @property
    def baseline_mape(self) -> float:
        """The same of the plainest model."""
        return 100 * statistics.fmean(abs(each.baseline_s / (each.run.step_s or 1.0) - 1) for each in self.judged)

    @property
    def families(self) -> tuple[tuple[Judged, ...], ...]:
        """Layouts of one job each, four or more of them."""
        found: dict[str, list[Judged]] = defaultdict(list)
        for each in self.judged:
            found[each.run.family].append(each)
        return tuple(tuple(family) for family in found.values() if len(family) >= _FEWEST_LAYOUTS)

    @property
    def kendall(self) -> float | None:
        """Median over families of the rank correlation of predicted and measured times; None without any."""
        ranks = [_correlate(family) for family in self.families]
        return statistics.median(ranks) if ranks else None

    def kept_best(self, share: float) -> float | None:
        """Share of families whose fastest layout is among the so much of them that are predicted to be fastest."""
        kept = [_keeps_best(family, share) for family in self.families]
        return statistics.fmean(kept) if kept else None


def check_runs(runs: Sequence[Run]) -> tuple[Check, ...]:
    """One check a source, in the order of the table; sources whose jobs are all in one half are passed over."""
    sources: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if run.step_s is not None:
            sources[run.source].append(run)
    checks = (_check_source(source, found) for source, found in sources.items())
    return tuple(check for check in checks if check is not None)


def choose_fitted(runs: Sequence[Run]) -> tuple[str, ...]:
    """The constants of which these runs can tell something, the weightiest first, six at most."""
    layouts = [run.job.layout for run in runs]
    ragged = {run.job.is_ragged for run in runs}
    candidates = {
        "efficiency": True,
        "narrow": any(run.job.dtype in ("fp8", "fp4") for run in runs),
        "inside_bytes_per_s": any(layout.tensor > 1 for layout in layouts),
        "node_bytes_per_s": any(layout.ranks > layout.ranks_per_node for layout in layouts),
        "misaligned": len(ragged) > 1,
        "score_passes": not all(layout.fused_attention for layout in layouts),
        "attention": any(layout.fused_attention for layout in layouts),
        "logits_passes": True,
        "launch_s": any(layout.recompute == Recompute.FULL for layout in layouts),
        "stream_passes": True,
        "step_s": True,
    }
    return tuple(name for name, told in candidates.items() if told)[:MOST_FITTED]


def guess_constants(runs: Sequence[Run]) -> Constants:
    """The prior for these runs: their devices' links and their nodes', as published."""
    links = [run.job.device.link_bytes_per_s for run in runs]
    nodes = [run.node_bytes_per_s for run in runs if run.node_bytes_per_s]
    prior = Constants()
    if any(links):
        prior = replace(prior, inside_bytes_per_s=_LINK_SHARE * statistics.median(links))
    return replace(prior, node_bytes_per_s=_NODE_SHARE * statistics.median(nodes)) if nodes else prior


def fit_source(runs: Sequence[Run]) -> Fit:
    """The constants of one stack from its runs."""
    return fit_constants(runs, fitted=choose_fitted(runs), prior=guess_constants(runs))


def find_half(family: str) -> int:
    """0 or 1."""
    return int(hashlib.sha256(f"{family}|fit".encode()).hexdigest(), 16) % 2


def _check_source(source: str, runs: Sequence[Run]) -> Check | None:
    halves = [[run for run in runs if find_half(run.family) == half] for half in (0, 1)]
    if not all(halves):
        return None
    fits = [fit_source(half) for half in halves]
    judged = [
        Judged(run, estimate_step(run.job, fits[1 - half].constants).total_s, _guess_baseline(run, halves[1 - half]))
        for half in (0, 1)
        for run in halves[half]
    ]
    return Check(source, tuple(judged), tuple(fits))


def _guess_baseline(run: Run, others: Sequence[Run]) -> float:
    kind = (run.job.device, run.job.dtype)
    alike = [each for each in others if (each.job.device, each.job.dtype) == kind] or others
    rates = [_count_flops(each) / (each.step_s or 1.0) for each in alike]
    return _count_flops(run) / statistics.median(rates)


def _count_flops(run: Run) -> float:
    """Of one device in one step, what is computed anew included."""
    layout = run.job.layout
    tokens = layout.micro_batch * layout.micro_batches * layout.data * run.job.model.seq
    again = 4 / 3 if layout.recompute == Recompute.FULL else 1.0
    return count_model_flops(run.job.model, tokens) * again / layout.ranks


def _correlate(family: Sequence[Judged]) -> float:
    found = kendalltau([each.predicted_s for each in family], [each.run.step_s or 0.0 for each in family])
    return 0.0 if math.isnan(found.statistic) else float(found.statistic)


def _keeps_best(family: Sequence[Judged], share: float) -> bool:
    best = min(family, key=lambda each: each.run.step_s or math.inf)
    kept = sorted(family, key=lambda each: each.predicted_s)[: math.ceil(share * len(family))]
    return any(each is best for each in kept)
