"""Open shards of one process: each opened when it is first read there, never taken over from a parent."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.errors import ArtifactError, InputFileError

_MOST_OPEN = 256


class ShardFiles:
    """File descriptors of shards by their number; `sizes` in bytes are what their manifest says."""

    def __init__(self, paths: Sequence[Path], sizes: Sequence[int]) -> None:
        self._paths = tuple(paths)
        self._sizes = tuple(sizes)
        self._pid = os.getpid()
        self._open: dict[int, int] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_open": {}}

    def open(self, shards: NDArray[np.int64]) -> dict[int, int]:
        """Descriptors of these shards, which stay open until the next call at least.

        Raises InputFileError for a shard that is missing, ArtifactError for one of another size.
        """
        if self._pid != os.getpid():  # a forked worker leaves its parent's alone
            self._pid, self._open = os.getpid(), {}
        wanted = [int(shard) for shard in shards]
        if len(self._open) + len(wanted) > _MOST_OPEN:
            self.close()
        for shard in wanted:
            if shard not in self._open:
                self._open[shard] = self._open_one(shard)
        return {shard: self._open[shard] for shard in wanted}

    def close(self) -> None:
        """Close them all."""
        if self._pid == os.getpid():
            for descriptor in self._open.values():
                os.close(descriptor)
        self._open = {}

    def path(self, shard: int) -> Path:
        """Where a shard lies."""
        return self._paths[shard]

    def _open_one(self, shard: int) -> int:
        path = self._paths[shard]
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise InputFileError(f"shard {path} is missing: run the stage that makes it again") from None
        except OSError as error:
            raise InputFileError(f"shard {path} cannot be read ({error.strerror}): check its permissions") from error
        found = os.fstat(descriptor).st_size
        if found != self._sizes[shard]:
            os.close(descriptor)
            raise ArtifactError(
                f"shard {path} has {found} bytes, its manifest says {self._sizes[shard]}: run the stage that "
                "makes it again"
            )
        return descriptor
