"""A world of one rank: every exchange is with oneself."""

from typing import Any

from windtunnel.comm.counter import Counter, LocalCounter


class SingleComm:
    """The Comm of a process that was started alone."""

    rank = 0
    size = 1

    def barrier(self) -> None:
        """Nobody to wait for."""

    def gather(self, value: Any) -> list[Any] | None:
        """The one value."""
        return [value]

    def allgather(self, value: Any) -> list[Any]:
        """The one value."""
        return [value]

    def open_counter(self) -> Counter:
        """This process's own."""
        return LocalCounter()
