"""Fused features fed piece by piece: the bits that the whole series gives, as in `windtunnel.kernels.stream`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from windtunnel.kernels.backend import choose_namespace
from windtunnel.kernels.fused import Feature, check_features, split_features
from windtunnel.kernels.rules import find_time_dim
from windtunnel.kernels.stream import check_follows, keep_rows
from windtunnel.settings.kernels import Backend


@dataclass(frozen=True)
class FusedState:
    """What a stream of rows has left behind: hand it to `update` with the rows that follow."""

    features: tuple[Feature, ...]
    backend: Backend = "auto"
    seen: int = 0
    """Rows so far."""
    recent: Tensor | None = None
    """The last rows; none at the beginning."""


def begin(features: Sequence[Feature], *, backend: Backend = "auto") -> FusedState:
    """The state before the first row of a stream. Raises SettingsError for features that fused_features refuses."""
    check_features(torch.empty(0), features)
    return FusedState(tuple(features), backend)


def update(state: FusedState, x: Tensor) -> tuple[FusedState, Tensor]:
    """The state after the rows of `x`, and the features (F, *x.shape) at them: bit for bit those of the whole series.

    Raises UserError for another shape or dtype than that of the rows before.
    """
    check_features(x, state.features)
    check_follows(state.recent, x)
    time = find_time_dim(x)
    rows = x if state.recent is None else torch.cat((state.recent, x), time)
    known = rows.shape[time] - x.shape[time]
    moments, windows, least = split_features(state.features)
    operator = getattr(torch.ops, choose_namespace(state.backend)).fused_features
    result: Tensor = operator(rows.detach(), moments, windows, least, state.seen - known, known)
    seen = state.seen + x.shape[time]
    return replace(state, seen=seen, recent=keep_rows(rows, seen, windows=windows)), result
