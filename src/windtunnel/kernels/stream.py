"""Rolling moments fed piece by piece: the bits that the whole series gives, so that inference sees what training saw.

The sums of the compiled operators begin anew at fixed places of the series. A state therefore keeps the rows since
the last of these and one window before it, and an update goes over those again: a thousand or so for short windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from windtunnel.errors import UserError
from windtunnel.kernels.backend import choose_namespace
from windtunnel.kernels.rules import check_rolling, find_time_dim
from windtunnel.kernels.windows import MOMENTS
from windtunnel.settings.kernels import Backend


@dataclass(frozen=True)
class RollingState:
    """What a stream of rows has left behind: hand it to `update` with the rows that follow."""

    moment: str
    window: int
    min_periods: int
    backend: Backend = "auto"
    seen: int = 0
    """Rows so far."""
    recent: Tensor | None = None
    """The last rows; none at the beginning."""


def begin(moment: str, window: int, *, min_periods: int | None = None, backend: Backend = "auto") -> RollingState:
    """The state before the first row of a stream. Raises UserError for a moment that is none of MOMENTS."""
    if moment not in MOMENTS:
        raise UserError(f"moment {moment!r}: expected one of {', '.join(MOMENTS)}")
    least = window if min_periods is None else min_periods
    check_rolling(f"rolling_{moment}", torch.empty(0), window, least)
    return RollingState(moment, window, least, backend)


def update(state: RollingState, x: Tensor) -> tuple[RollingState, Tensor]:
    """The state after the rows of `x`, and the moment at each of them.

    Bit for bit what the whole series gives at once where columns of `x` are neighbours in memory, or it has one only.
    Raises UserError for another shape or dtype than that of the rows before.
    """
    check_rolling(f"rolling_{state.moment}", x, state.window, state.min_periods)
    check_follows(state.recent, x)
    time = find_time_dim(x)
    rows = x if state.recent is None else torch.cat((state.recent, x), time)
    known = rows.shape[time] - x.shape[time]
    operator = getattr(torch.ops, choose_namespace(state.backend)).rolling_resume
    result: Tensor = operator(
        rows, MOMENTS.index(state.moment), state.window, state.min_periods, state.seen - known, known
    )
    seen = state.seen + x.shape[time]
    return replace(state, seen=seen, recent=keep_rows(rows, seen, windows=(state.window,))), result


def keep_rows(rows: Tensor, seen: int, *, windows: Sequence[int]) -> Tensor:
    """Those of the last `rows` that the rows after the first `seen` of the stream need."""
    time = find_time_dim(rows)
    starts = (seen // count_block_rows(window) * count_block_rows(window) - window for window in windows)
    kept = min(rows.shape[time], seen - max(0, min(starts)))
    return rows.narrow(time, rows.shape[time] - kept, kept).clone(memory_format=torch.contiguous_format)


def count_block_rows(window: int) -> int:
    """Rows between fresh starts of the sums: block_rows in csrc/window/job.h."""
    rows = 1024
    while rows < 4 * window:
        rows *= 2
    return rows


def check_follows(recent: Tensor | None, x: Tensor) -> None:
    """Raise UserError unless rows of `x` may follow those of `recent`."""
    if recent is None:
        return
    time = find_time_dim(x)
    found = (x.dtype, *x.shape[:time], *x.shape[time + 1 :])
    expected = (recent.dtype, *recent.shape[:time], *recent.shape[time + 1 :])
    if x.dim() != recent.dim() or found != expected:
        raise UserError(
            f"rows of {tuple(x.shape)} {x.dtype} cannot follow {tuple(recent.shape)} {recent.dtype}: "
            "begin a stream of their own"
        )
