"""A counter that ranks share, so that each takes the next piece of work when it is done with the last one."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from windtunnel.comm.base import Comm, run_on_all
from windtunnel.errors import WindtunnelError

T = TypeVar("T")
R = TypeVar("R")
_END = 1 << 40
"""More than any list of work has."""


class Counter(Protocol):
    """A number that all ranks count up."""

    def take(self, step: int = 1) -> int:
        """The number as it was, before `step` is added to it."""
        ...

    def close(self) -> None:
        """Called by all ranks, once none takes any more."""
        ...


class CountingComm(Comm, Protocol):
    """A Comm whose ranks can share a counter."""

    def open_counter(self) -> Counter:
        """A counter at 0; called by all ranks."""
        ...


class LocalCounter:
    """The counter of a world of one rank."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, step: int = 1) -> int:
        """As in Counter."""
        taken, self._next = self._next, self._next + step
        return taken

    def close(self) -> None:
        """Nothing is held."""


def share_work(comm: CountingComm, items: Sequence[T], work: Callable[[int, T], R]) -> list[R]:
    """`work` of each item with its place, done by whichever rank is free; all results in order, on every rank.

    An error on any rank lets the others finish what they hold, and ends all as in `run_on_all`.
    """
    counter = comm.open_counter()

    def take_all() -> dict[int, R]:
        try:
            return {place: work(place, items[place]) for place in _take_places(counter, len(items))}
        except WindtunnelError:
            counter.take(_END)
            raise

    try:
        hands = run_on_all(comm, take_all)
    except (WindtunnelError, SystemExit):  # on all ranks alike; any other error aborts the world
        counter.close()
        raise
    counter.close()
    results = {place: result for hand in hands for place, result in hand.items()}
    return [results[place] for place in range(len(items))]


def _take_places(counter: Counter, count: int) -> Iterator[int]:
    while (place := counter.take()) < count:
        yield place
