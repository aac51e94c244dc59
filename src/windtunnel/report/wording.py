"""The decision and its certainty in words, and the formats of numbers that page and terminal share. Pure."""

import math
from dataclasses import replace

from windtunnel.cost import format_money, format_node_hours
from windtunnel.report.compare import LOSSES, Candidate, Criterion, Noise, Ranking, Recommendation
from windtunnel.report.rows import Row
from windtunnel.statistics import proportion_margin

CRITERION_NAMES: dict[Criterion, str] = {
    "validation_loss": "validation loss",
    "training_loss": "training loss",
    "samples_per_s": "throughput",
    "cost": "cost",
}
_BEST: dict[Criterion, str] = {
    "validation_loss": "lowest",
    "training_loss": "lowest",
    "samples_per_s": "highest",
    "cost": "lowest",
}
NONE = "–"


def describe_decision(ranking: Ranking) -> str:
    """One sentence: what to choose, and why, with the numbers of the next."""
    recommendation = ranking.recommendation
    if recommendation is None:
        return _describe_nothing(ranking)
    chosen = recommendation.chosen
    rank = "" if chosen is recommendation.leader else f", rank {chosen.rank} of {len(ranking.candidates)}"
    return f"Choose {chosen.name}{rank}: {_reason(ranking, recommendation)}{_sides(chosen, ranking.criterion)}."


def describe_certainty(ranking: Ranking) -> str:
    """What differences the study could have told, and on what that stands; empty when nothing was compared."""
    if len(ranking.candidates) < 2:
        return ""
    noise = ranking.noise
    name = CRITERION_NAMES[ranking.criterion]
    limit = format_difference(noise)
    if noise.basis == "repeats":
        few = " Some configurations ran only once; the same noise is assumed for them." if noise.one_repeat else ""
        return (
            f"Differences in {name} below {limit} cannot be told (95 %, from the spread of {noise.count} trials "
            f"that repeat a configuration).{few}"
        )
    if noise.basis == "paired samples":
        which, limit = _compared_pair(ranking)
        return (
            f"One repeat: between {which}, differences in {name} below {limit} cannot be told (95 %, paired "
            f"over the same {noise.count:,} validation samples; the spread between repeats comes on top)."
        )
    if noise.basis == "step times":
        return (
            f"One repeat: differences in {name} below {limit} cannot be told (the 90th percentile of {noise.count:,} "
            "step times lies that far above their median)."
        )
    return _describe_unknown_noise(ranking)


def _compared_pair(ranking: Ranking) -> tuple[str, str]:
    """The two that the choice rests on, and the smallest difference that can be told between them."""
    recommendation = ranking.recommendation
    if recommendation is None or recommendation.chosen is recommendation.leader:
        return "the first two", format_difference(ranking.noise)
    leader, chosen = recommendation.leader, recommendation.chosen
    threshold = ranking.noise.pairs.get(chosen.name, ranking.noise.threshold)
    return f"{leader.name} and {chosen.name}", format_difference(replace(ranking.noise, threshold=threshold))


def describe_state(ranking: Ranking) -> str:
    """`6 of 8 trials completed, 1 failed, 1 waiting`."""
    total = len(ranking.rows)
    counts: dict[str, int] = {}
    for row in ranking.rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    done = counts.pop("COMPLETED", 0)
    rest = "".join(f", {count} {verdict.lower().replace('_', ' ')}" for verdict, count in sorted(counts.items()))
    return f"{done} of {total} trial{'s' if total != 1 else ''} completed{rest}"


def describe_against_base_rate(row: Row) -> str:
    """A caution when the accuracy is not clearly above that of always naming the commoner direction."""
    base = row.validation.metrics.get("base_rate") if row.validation else None
    if row.validation is None or row.accuracy is None or base is None:
        return ""
    margin = proportion_margin(row.accuracy, row.validation.samples) / math.sqrt(2)  # the base rate has no error here
    if row.accuracy - base > margin:
        return ""
    return (
        f"the accuracy of {row.label}, {format_percent(row.accuracy)}, is not above that of always naming the "
        f"commoner direction ({format_percent(base)}) by more than chance on {row.validation.samples:,} samples "
        f"({100 * margin:.1f} points, 95 %)"
    )


def describe_check(row: Row) -> str:
    """`verified`, `damaged`, or nothing where no check was made."""
    return NONE if row.check is None else "verified" if row.check.verified else "damaged"


def format_value(value: float, criterion: Criterion, row: Row) -> str:
    """A criterion's value with its unit."""
    if criterion == "samples_per_s":
        return f"{format_number(value)} samples/s"
    if criterion == "cost":
        priced = row.cost.money is not None
        return format_money(value, row.cost.currency) if priced else f"{format_node_hours(value)} node-hours"
    return format_loss(value)


def format_difference(noise: Noise) -> str:
    """The smallest difference that can be told."""
    if noise.threshold is None:
        return "an unknown size"
    return format_share(noise.threshold) if noise.relative else f"{noise.threshold:.2g}"


def format_loss(value: float | None) -> str:
    """Four decimals: finer than the noise of any loss here; of a small one four digits, and never a bare zero."""
    if value is None:
        return NONE
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.1 else f"{value:.4g}"


def format_share(value: float | None) -> str:
    """A share as per cent."""
    if value is None:
        return NONE
    return f"{100 * value:.0f} %" if value >= 0.1 else f"{100 * value:.2g} %"


def format_percent(value: float | None) -> str:
    """A share as per cent with one decimal, for columns."""
    return NONE if value is None else f"{100 * value:.1f} %"


def format_number(value: float | None) -> str:
    """Three significant digits at least, with thousands separated."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _describe_nothing(ranking: Ranking) -> str:
    if not ranking.rows:
        return "No recommendation: no trial has been run yet."
    unranked = sum(row.completed for row in ranking.rows)
    if unranked:
        name = CRITERION_NAMES[ranking.criterion]
        return f"No recommendation: {unranked} completed, but none has a finite {name} to rank it by."
    return f"No recommendation: none of {len(ranking.rows)} trials completed."


def _reason(ranking: Ranking, recommendation: Recommendation) -> str:
    chosen, leader, other = recommendation.chosen, recommendation.leader, recommendation.next
    criterion, name = ranking.criterion, CRITERION_NAMES[ranking.criterion]
    value = format_value(chosen.value, criterion, chosen.rows[0])
    if other is None:
        return f"it is the only configuration that completed, with a {name} of {value}"
    if chosen is not leader:
        faster = (chosen.samples_per_s or 0.0) / (leader.samples_per_s or 1.0)
        return (
            f"its {name} of {value} cannot be told from the lowest ({leader.name}, "
            f"{format_value(leader.value, criterion, leader.rows[0])}), and it trains {faster:.2g} times as fast"
        )
    against = format_value(other.value, criterion, other.rows[0])
    best = f"its {name} of {value} is the {_BEST[criterion]} of {len(ranking.candidates)} configurations"
    if recommendation.tied:
        more = len(recommendation.tied) - 1
        also = f" and {more} more" if more else ""
        slower = ", none of them clearly faster" if criterion in LOSSES else ""
        return f"{best}, though noise hides its lead over the next ({other.name}, {against}){also}{slower}"
    return f"{best}, {_gap(chosen, other, criterion)} the next ({other.name}, {against})"


def _gap(chosen: Candidate, other: Candidate, criterion: Criterion) -> str:
    word = "above" if criterion == "samples_per_s" else "below"
    if chosen.value == other.value:
        return "equal to"
    if chosen.value > 0 and other.value > 0:
        return f"{format_share(abs(chosen.value - other.value) / other.value)} {word}"
    return f"{abs(chosen.value - other.value):.2g} {word}"


def _sides(chosen: Candidate, criterion: Criterion) -> str:
    """What else the choice brings: speed, latency and cost, where known and not said already."""
    row = chosen.rows[0]
    parts = []
    if criterion != "validation_loss" and row.validation_loss is not None:
        parts.append(f"a validation loss of {format_loss(row.validation_loss)}")
    if criterion != "samples_per_s" and chosen.samples_per_s is not None:
        parts.append(f"{format_number(chosen.samples_per_s)} samples/s")
    if row.latency:
        parts.append(f"a p99 latency of {format_number(row.latency.p99_us)} us")
    price = f" for {row.cost}" if criterion != "cost" else ""
    return f"; it gives {join_words(parts)}{price}" if parts else ""


def join_words(parts: list[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def _describe_unknown_noise(ranking: Ranking) -> str:
    row = ranking.candidates[0].rows[0]
    text = (
        "One repeat: nothing here measures how far "
        f"{CRITERION_NAMES[ranking.criterion]} moves between repeats, so close places in the ranking may be chance."
    )
    if (
        ranking.criterion == "validation_loss"
        and row.validation
        and row.accuracy is not None
        and row.validation.samples
    ):
        margin = proportion_margin(row.accuracy, row.validation.samples)
        text += (
            f" On {row.validation.samples:,} validation samples accuracy differences below "
            f"{100 * margin:.1f} points cannot be told (95 %)."
        )
    return text
