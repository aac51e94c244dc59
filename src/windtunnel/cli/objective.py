"""The number of a trial that a sampler optimizes. Pure."""

import math
from collections.abc import Sequence

from windtunnel.errors import SettingsError, WindtunnelError
from windtunnel.records.trial import SweepEntry, TrialOutcome, Verdict

_SPLIT = "validation"


def read_result(
    end: SweepEntry | WindtunnelError, names: Sequence[str], *, sampled: bool = True
) -> float | list[float] | None:
    """A job's value for its sampler: one number for one name, a list for several.

    Raises what the job ended with when that was not a completed trial, and SettingsError when the trial does not
    know a name; where nothing is `sampled`, nobody needs the value, and it is None.
    """
    if isinstance(end, WindtunnelError):
        raise end
    if end.verdict != Verdict.COMPLETED or end.outcome is None:
        raise WindtunnelError(f"{end.name}: {end.verdict}: {end.evidence}")
    if not sampled and not {*names} <= list_objectives(end.outcome).keys():
        return None
    values = [read_objective(end.outcome, name) for name in names]
    return values[0] if len(values) == 1 else values


def read_objective(outcome: TrialOutcome, name: str) -> float:
    """One number of an outcome by its name in `sweep.objective`; a diverged one is NaN."""
    known = list_objectives(outcome)
    if name not in known:
        raise SettingsError(
            f"sweep.objective={name!r} is not among what trial {outcome.trial_id} measured:"
            f" set it to one of {', '.join(known)}"
        )
    return known[name]


def list_objectives(outcome: TrialOutcome) -> dict[str, float]:
    """All numbers that can be optimized, by name."""
    numbers: dict[str, float | None] = {}
    for each in outcome.evaluations:
        if each.split == _SPLIT:
            numbers |= {f"{_SPLIT}_{metric}": value for metric, value in each.metrics.items()}
            numbers[f"{_SPLIT}_loss"] = each.loss
    for name in ("final_train_loss", "samples_per_s", "step_s_median", "step_s_p90", "params", "peak_rss_mib"):
        numbers[name] = getattr(outcome, name)
    return {name: math.nan if value is None else float(value) for name, value in numbers.items()}
