"""An end before the last step: a signal that any rank got, on which all ranks agree between two steps.

The handler does next to nothing, so that it may come at any moment, inside a long kernel as well; what follows is
done where the state is whole.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist

from windtunnel.training.mesh import Mesh

_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
"""srun and mpiexec hand SIGUSR1 on to their ranks; at SIGTERM they kill them."""
_VOTE_EVERY_S = 0.1
"""A vote costs a fraction of a millisecond: less than a hundredth of that."""


@dataclass
class StopWish:
    """Whether this rank was told to stop, and by which signal."""

    signum: int | None = None

    def receive(self, signum: int, _frame: object) -> None:
        """A signal handler."""
        self.signum = signum


@contextmanager
def catch_stop() -> Iterator[StopWish]:
    """Turn the signals that ask for an end into a wish inside the block."""
    wish = StopWish()
    before = {signum: signal.signal(signum, wish.receive) for signum in _SIGNALS}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    try:
        yield wish
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


class StopVote:
    """All ranks ask at the same steps; a wish of one is an answer for all."""

    def __init__(self, wish: StopWish, mesh: Mesh) -> None:
        self._wish = wish
        self._mesh = mesh
        self._every = 1

    def pace(self, step_s: float) -> None:
        """Ask about ten times a second, at most once a step; `step_s` must be the same on all ranks."""
        self._every = max(1, int(_VOTE_EVERY_S / step_s)) if step_s > 0 else 1

    def is_agreed(self, step: int) -> bool:
        """Whether all ranks end after `step`."""
        if self._mesh.world_size == 1:
            return self._wish.signum is not None
        if step % self._every:
            return False
        wished = torch.tensor([self._wish.signum is not None], dtype=torch.int32)
        dist.all_reduce(wished, op=dist.ReduceOp.MAX)
        return bool(wished.item())
