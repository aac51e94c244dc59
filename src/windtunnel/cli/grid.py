"""How many jobs a multirun's grid has, counted before Hydra makes a list of them."""

import math
from collections.abc import Sequence
from decimal import Decimal

from hydra.core.override_parser.types import Override, RangeSweep

from windtunnel.errors import SettingsError
from windtunnel.planner.space import check_size


def check_grid(overrides: Sequence[Override], *, max_batch_size: int | None = None) -> None:
    """Raise SettingsError for a grid with no job, with more than can be planned, or with batches that hold none."""
    if max_batch_size is not None and max_batch_size < 1:
        raise SettingsError(
            f"hydra.sweeper.max_batch_size={max_batch_size}: expected at least 1, or null for all jobs"
        )
    counts = {
        override.get_key_element(): count_values(override) for override in overrides if override.is_discrete_sweep()
    }
    for key, count in counts.items():
        if not count:
            typed = next(str(each.input_line) for each in overrides if each.get_key_element() == key)
            raise SettingsError(f"{typed} names no value, so the multirun has no job: name at least one")
    check_size(counts, where="the multirun")


def count_values(override: Override) -> int:
    """Values that a list, range or glob stands for. Raises SettingsError for a range without an end."""
    value = override.value()
    if not isinstance(value, RangeSweep):
        return sum(1 for _ in override.sweep_iterator())
    try:
        span = value.range()
        return max(0, math.ceil((Decimal(span.stop) - Decimal(span.start)) / Decimal(span.step)))
    except (ValueError, ArithmeticError) as error:
        raise SettingsError(f"{override.input_line} cannot be listed: {error}") from None
