"""What computing costs: node-hours always, money where a node has a price. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Node-hours used, and their price; `money` is None where nodes have none."""

    node_hours: float
    money: float | None
    currency: str

    def __str__(self) -> str:
        hours = f"{format_node_hours(self.node_hours)} node-hours"
        return hours if self.money is None else f"{hours} ({format_money(self.money, self.currency)})"


def price(node_seconds: float, *, per_node_hour: float, currency: str) -> Cost:
    """The cost of `node_seconds` (nodes times wall seconds); a price of 0 means that none is known."""
    if node_seconds < 0:
        raise ValueError(f"node_seconds is {node_seconds:g}, expected 0 or more")
    node_hours = node_seconds / 3600
    return Cost(node_hours, node_hours * per_node_hour if per_node_hour > 0 else None, currency)


def add_costs(costs: Iterable[Cost], *, currency: str) -> Cost:
    """The sum; its money is None as soon as one part has none. All parts must be in `currency`."""
    parts = list(costs)
    strange = {part.currency for part in parts} - {currency}
    if strange:
        raise ValueError(f"costs in {', '.join(sorted(strange))} cannot be added in {currency}: convert them first")
    money = [part.money for part in parts if part.money is not None]
    whole = bool(parts) and len(money) == len(parts)
    return Cost(sum(part.node_hours for part in parts), sum(money) if whole else None, currency)


def format_node_hours(hours: float) -> str:
    """Node-hours with as many digits as matter: `0.0042`, `1.25`, `310`."""
    if hours == 0:
        return "0"
    if hours < 1e-6:
        return "<0.000001"
    return f"{hours:.0f}" if hours >= 100 else f"{hours:.3g}" if hours >= 0.001 else f"{hours:.6f}".rstrip("0")


def format_money(amount: float, currency: str) -> str:
    """Money to the cent, or to two digits below it: `1.25 USD`, `0.0031 USD`."""
    digits = f"{amount:,.2f}" if amount >= 0.1 or amount == 0 else f"{amount:.2g}"
    return f"{digits} {currency}"
