"""How often to save: the interval that loses least to saving and to failures together."""

import math

FIRST_STEPS = 50
"""Steps to the first checkpoint, whose cost is measured."""
_LEAST_COST_S = 1e-3


def daly_interval_s(cost_s: float, mtbf_s: float) -> float:
    """Seconds between checkpoints that cost `cost_s` each, when failures are `mtbf_s` apart on average.

    J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future Generation
    Computer Systems 22 (2006), equation 37; of first order it is Young's sqrt(2 cost mtbf).
    """
    if cost_s >= 2 * mtbf_s:
        return mtbf_s
    share = cost_s / (2 * mtbf_s)
    return math.sqrt(2 * cost_s * mtbf_s) * (1 + math.sqrt(share) / 3 + share / 9) - cost_s


def interval_steps(*, cost_s: float, step_s: float, nodes: int, node_mtbf_hours: float) -> int:
    """The same in steps of a run on so many nodes, any of which may fail; at least 1."""
    mtbf_s = node_mtbf_hours * 3600 / nodes
    return max(1, round(daly_interval_s(max(cost_s, _LEAST_COST_S), mtbf_s) / step_s))
