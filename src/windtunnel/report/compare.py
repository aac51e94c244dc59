"""Ranking of configurations, how far their numbers can be trusted, and which one to choose. Pure."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from windtunnel.report.rows import Row, finite
from windtunnel.statistics import detectable_difference, interquartile_range, paired_difference, pooled_deviation

Criterion = Literal["validation_loss", "training_loss", "samples_per_s", "cost"]

SCORES: dict[Criterion, Callable[[Row], float | None]] = {
    "validation_loss": lambda row: row.validation_loss,
    "training_loss": lambda row: row.training_loss,
    "samples_per_s": lambda row: row.samples_per_s,
    "cost": lambda row: row.clean_cost,
}
LOSSES: frozenset[Criterion] = frozenset({"validation_loss", "training_loss"})
HIGHER_IS_BETTER: frozenset[Criterion] = frozenset({"samples_per_s"})
RELATIVE: frozenset[Criterion] = frozenset({"samples_per_s", "cost"})
"""Criteria whose noise grows with their size; a loss's does not."""


@dataclass(frozen=True)
class Candidate:
    """A configuration with completed trials: median, spread and count of what it is ranked by."""

    name: str
    rank: int
    rows: tuple[Row, ...]
    value: float
    spread: float
    samples_per_s: float | None

    @property
    def repeats(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Noise:
    """The difference below which two configurations cannot be told apart, and what that rests on."""

    threshold: float | None
    """In the criterion's own unit, or as a share where `relative`; None when nothing measures it."""
    relative: bool
    basis: Literal["repeats", "paired samples", "step times", "unknown"]
    count: int
    """Repeats, samples or steps that it stands on."""
    one_repeat: bool
    pairs: Mapping[str, float] = field(default_factory=dict)
    """Threshold against the leader by the other's name, where both were scored on the same samples."""

    def hides(self, leader: float, other: float, *, name: str = "") -> bool:
        """Whether the difference of the leader's value and that of configuration `name` is too small to be told."""
        threshold = self.pairs.get(name, self.threshold)
        if threshold is None:
            return False
        scale = min(abs(leader), abs(other)) if self.relative else 1.0
        return abs(leader - other) <= threshold * scale


@dataclass(frozen=True)
class Recommendation:
    """What to choose, and what it is set against."""

    chosen: Candidate
    leader: Candidate
    """First by the criterion; the chosen one, unless noise hides their difference and the chosen is faster."""
    next: Candidate | None
    """The best of the others."""
    tied: tuple[Candidate, ...]
    """Others that noise does not let tell from the leader, the leader among them when it is not chosen."""


@dataclass(frozen=True)
class Ranking:
    """Everything that the page orders or concludes."""

    criterion: Criterion
    rows: tuple[Row, ...]
    """All trials: completed ones by score, then the others."""
    candidates: tuple[Candidate, ...]
    noise: Noise
    recommendation: Recommendation | None

    def rank_of(self, row: Row) -> int | None:
        """Rank of the trial's configuration, which its repeats share."""
        return next((c.rank for c in self.candidates if row in c.rows), None)


def rank_rows(rows: Sequence[Row], criterion: Criterion) -> Ranking:
    """Order trials and configurations, estimate the noise, and choose.

    Where no program told a validation loss, the last training loss that each told stands in for it.
    """
    criterion = _find_criterion(rows, criterion)
    candidates = rank_candidates(rows, criterion)
    noise = estimate_noise(candidates, criterion)
    ordered = [row for candidate in candidates for row in candidate.rows]
    rest = [row for row in rows if row not in ordered]
    return Ranking(
        criterion=criterion,
        rows=(*ordered, *sorted(rest, key=lambda row: (row.verdict, row.label))),
        candidates=candidates,
        noise=noise,
        recommendation=recommend(candidates, criterion, noise),
    )


def _find_criterion(rows: Sequence[Row], criterion: Criterion) -> Criterion:
    completed = [row for row in rows if row.completed]
    validated = any(row.validation is not None for row in completed)
    told = any(row.training_loss is not None for row in completed)
    return "training_loss" if criterion == "validation_loss" and told and not validated else criterion


def rank_candidates(rows: Sequence[Row], criterion: Criterion) -> tuple[Candidate, ...]:
    """Configurations with at least one completed trial that has a finite score, best first."""
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.completed and _score(row, criterion) is not None:
            groups[row.configuration].append(row)
    sign = -1.0 if criterion in HIGHER_IS_BETTER else 1.0
    for group in groups.values():
        group.sort(key=lambda row: sign * _known_score(row, criterion))
    ordered = sorted(groups.values(), key=lambda group: (sign * _median_score(group, criterion), group[0].name))
    return tuple(_build_candidate(group, rank, criterion) for rank, group in enumerate(ordered, start=1))


def estimate_noise(candidates: Sequence[Candidate], criterion: Criterion) -> Noise:
    """From repeats where there are any; else from what one run knows of its own error."""
    scores = [[_known_score(row, criterion) for row in candidate.rows] for candidate in candidates]
    relative = criterion in RELATIVE
    if relative:
        scores = [[value / median(group) if median(group) else 1.0 for value in group] for group in scores]
    one_repeat = any(len(group) == 1 for group in scores)
    deviation, freedom = pooled_deviation(scores)
    if freedom:
        counts = sorted(len(group) for group in scores)
        smallest = (counts[0], counts[min(1, len(counts) - 1)])
        threshold = detectable_difference(deviation, freedom, smallest)
        return Noise(threshold, relative, "repeats", freedom + sum(len(g) > 1 for g in scores), one_repeat)
    return _step_noise([candidate.rows[0] for candidate in candidates[:2]]) if relative else _paired_noise(candidates)


def recommend(candidates: Sequence[Candidate], criterion: Criterion, noise: Noise) -> Recommendation | None:
    """The first by the criterion; among those that noise hides from it, the fastest."""
    if not candidates:
        return None
    leader = candidates[0]
    peers = [c for c in candidates if c is leader or noise.hides(leader.value, c.value, name=c.name)]
    chosen = max(peers, key=lambda c: c.samples_per_s or 0.0) if criterion in LOSSES else leader
    if not _clearly_faster(chosen, leader):
        chosen = leader
    others = [c for c in candidates if c is not chosen]
    return Recommendation(chosen, leader, others[0] if others else None, tuple(c for c in peers if c is not chosen))


def _clearly_faster(chosen: Candidate, leader: Candidate) -> bool:
    # A tenth: less is not worth leaving the leader for. Nor is what the steps' own times vary by, which on a machine
    # shared with others is far more.
    lead = 1 + max(0.1, _step_noise([chosen.rows[0], leader.rows[0]]).threshold or 0.0)
    return leader.samples_per_s is not None and (chosen.samples_per_s or 0.0) > lead * leader.samples_per_s


def _score(row: Row, criterion: Criterion) -> float | None:
    return finite(SCORES[criterion](row))


def _known_score(row: Row, criterion: Criterion) -> float:
    value = _score(row, criterion)
    assert value is not None, "only rows with a score are grouped"
    return value


def _median_score(group: Sequence[Row], criterion: Criterion) -> float:
    return median(_known_score(row, criterion) for row in group)


def _build_candidate(group: Sequence[Row], rank: int, criterion: Criterion) -> Candidate:
    scores = [_known_score(row, criterion) for row in group]
    speeds = [row.samples_per_s for row in group if row.samples_per_s is not None]
    return Candidate(
        name=min((row.name for row in group), key=len),  # repeats carry a number behind the name
        rank=rank,
        rows=tuple(group),
        value=median(scores),
        spread=interquartile_range(scores),
        samples_per_s=median(speeds) if speeds else None,
    )


def _paired_noise(candidates: Sequence[Candidate]) -> Noise:
    """Of losses on the same samples: the leader's against each other's, part of the range by part."""
    known = {c.name: c.rows[0].validation for c in candidates}
    first = next(iter(known.values()), None)
    samples = first.samples if first else 0
    parts = first.part_losses if first else ()
    pairs = {
        name: paired_difference(parts, other.part_losses)
        for name, other in list(known.items())[1:]
        if other and other.samples == samples and len(other.part_losses) == len(parts) > 1
    }
    if not pairs or len(pairs) < len(candidates) - 1:
        return Noise(None, False, "unknown", samples, True)
    return Noise(next(iter(pairs.values())), False, "paired samples", samples, True, pairs)


def _step_noise(rows: Sequence[Row]) -> Noise:
    """Of a speed that was measured once: how far the run's own step times spread above their median."""
    spreads = [(row.step_spread, row.outcome.steps_timed) for row in rows if row.outcome]
    known = [(spread, steps) for spread, steps in spreads if spread is not None]
    if not known:
        return Noise(None, True, "unknown", 0, True)
    threshold = max(0.0, *(spread for spread, _ in known))
    return Noise(threshold, True, "step times", min(steps for _, steps in known), True)
