"""What ranks say to each other, whoever carries it, and how work that fails on one rank ends all of them."""

from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeVar, cast

from windtunnel.errors import WindtunnelError

T = TypeVar("T")


class Comm(Protocol):
    """Ranks 0 to size - 1; every method is called by all of them in the same order."""

    rank: int
    size: int

    def barrier(self) -> None:
        """Return once every rank is here."""
        ...

    def gather(self, value: Any) -> list[Any] | None:
        """On rank 0 the values of all ranks in rank order; None elsewhere."""
        ...

    def allgather(self, value: Any) -> list[Any]:
        """The values of all ranks in rank order, on every rank."""
        ...


def run_on_all(comm: Comm, work: Callable[[], T]) -> list[T]:
    """Run `work` on every rank and return all results in rank order, on every rank.

    A WindtunnelError on any rank ends all: the lowest failing rank's error is raised on rank 0, which reports it
    once, and the others leave quietly with its exit code.
    """
    result: T | None = None
    failure: WindtunnelError | None = None
    try:
        result = work()
    except WindtunnelError as error:
        failure = error
    outcomes = comm.allgather((result, failure))
    failures = [found for _, found in outcomes if found is not None]
    if failures:
        _end_together(comm, failures[0])
    return [value for value, _ in outcomes]


def run_on_root(comm: Comm, work: Callable[[], T]) -> T:
    """Run `work` on rank 0 alone and return its result on every rank; an error ends all as in `run_on_all`."""
    results = run_on_all(comm, lambda: work() if comm.rank == 0 else None)
    return cast("T", results[0])


def _end_together(comm: Comm, error: WindtunnelError) -> NoReturn:
    if comm.rank == 0:
        raise error
    raise SystemExit(error.exit_code)
