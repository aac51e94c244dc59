"""What cannot be looked up and must be measured: how near to its peaks a stack comes, and what its parts cost.

Each has a prior, a physical guess and how far off it may be, so that a few measurements move only what they tell of.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Constants:
    """All are positive. Passes count reads and writes of a tensor in two bytes a number."""

    efficiency: float = 0.8
    """Share of the peak that large matrix products reach."""
    narrow: float = 0.8
    """Further share where weights have a byte or less: they and their inputs must be scaled and converted."""
    attention: float = 1.0
    """Time of attention's products, relative to others of as many operations."""
    misaligned: float = 1.25
    """Time of matrix products whose width on a rank is no multiple of 32."""
    launch_s: float = 3e-4
    """Least time of one pass through a layer: its kernels must be launched one by one."""
    score_passes: float = 7.0
    """Over attention's scores, in a forward pass that writes them."""
    stream_passes: float = 12.0
    """Over a layer's activations, of what a tensor group does not share (norms, dropout, residuals)."""
    shared_passes: float = 8.0
    """Over a layer's activations, of what it does share."""
    logits_passes: float = 20.0
    """Over the output's scores, forward and backward together."""
    whole_logits: float = 1.5
    """Cost of these where one rank holds the whole vocabulary, relative to a share of it."""
    inside_bytes_per_s: float = 130e9
    """Bus bandwidth of collectives within a node."""
    node_bytes_per_s: float = 25e9
    """Of all of a node's links to others together, one direction."""
    sync_s: float = 1e-5
    """Of a collective on the critical path, a rank beyond the first."""
    overlap: float = 0.8
    """Share of compute time under which the gathers of sharded weights hide."""
    step_s: float = 1e-3
    """Once a step: data, clipping, logging."""
    optimizer_bytes: float = 24.0
    """Moved a parameter by the optimizer."""


_SPREADS: Mapping[str, float] = {
    "efficiency": 0.25,
    "narrow": 0.3,
    "attention": 0.4,
    "misaligned": 0.3,
    "launch_s": 0.7,
    "score_passes": 0.4,
    "stream_passes": 0.7,
    "shared_passes": 0.5,
    "logits_passes": 0.7,
    "whole_logits": 0.5,
    "inside_bytes_per_s": 0.5,
    "node_bytes_per_s": 0.7,
    "sync_s": 1.0,
    "overlap": 0.2,
    "step_s": 1.5,
    "optimizer_bytes": 0.5,
}
"""Standard deviation of each prior, in the natural logarithm."""


def read_log_prior(name: str, constants: Constants) -> tuple[float, float]:
    """Mean and standard deviation of the logarithm of a constant, around its value in `constants`."""
    return math.log(getattr(constants, name)), _SPREADS[name]


def list_constants() -> tuple[str, ...]:
    """Names of all that may be fitted."""
    return tuple(field.name for field in fields(Constants))
