"""What a sweep may cost at most, what it is expected to, and whether that is within its budget. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from windtunnel.cost import Cost, format_money, format_node_hours, price
from windtunnel.records.plan import Shape
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.sweep import SweepSettings


@dataclass(frozen=True)
class Charge:
    """Costs of what was used, and of what is left to run."""

    used: Cost
    at_most: Cost
    expected: Cost | None
    gpu_hours: float
    """With `at_most`."""

    @property
    def node_hours(self) -> float:
        """All in all, at most."""
        return self.used.node_hours + self.at_most.node_hours


def add_up(
    left: Sequence[Shape], *, used_s: float, known_s: Mapping[Shape, Sequence[float]], cluster: ClusterSettings
) -> Charge:
    """The charge for trials of the shapes `left`, after `used_s` node-seconds.

    `known_s` are the node-seconds of trials that have ended, by shape.
    """

    def cost(node_seconds: float) -> Cost:
        return price(node_seconds, per_node_hour=cluster.cost_per_node_hour, currency=cluster.currency)

    limits_s = [shape.nodes * shape.time_min * 60.0 for shape in left]
    gpus = [shape.gpus_per_node * seconds / 3600 for shape, seconds in zip(left, limits_s, strict=True)]
    all_known = bool(left) and all(known_s.get(shape) for shape in left)
    expected = cost(sum(median(known_s[shape]) for shape in left)) if all_known else None
    return Charge(cost(used_s), cost(sum(limits_s)), expected, sum(gpus))


def find_overruns(charge: Charge, sweep: SweepSettings, cluster: ClusterSettings) -> list[str]:
    """Which budget the sweep may pass, with the fix: a sentence each."""
    mistakes = []
    hours, bound = charge.node_hours, sweep.budget_node_hours
    fix = "lower cluster.time, or the number of trials; or raise the budget"
    if bound and hours > bound:
        asked, used = format_node_hours(hours), format_node_hours(charge.used.node_hours)
        mistakes.append(
            f"the sweep may take {asked} node-hours ({used} of them already used), past"
            f" sweep.budget_node_hours={bound:g}: {fix}"
        )
    if sweep.budget and not cluster.cost_per_node_hour:
        mistakes.append(
            f"sweep.budget={sweep.budget:g} {cluster.currency}, but cluster.cost_per_node_hour=0 gives no price: set"
            " it, or sweep.budget_node_hours"
        )
    elif sweep.budget and (money := hours * cluster.cost_per_node_hour) > sweep.budget:
        bound_told = format_money(sweep.budget, cluster.currency)
        mistakes.append(
            f"the sweep may cost {format_money(money, cluster.currency)}, past sweep.budget={bound_told}: {fix}"
        )
    return mistakes
