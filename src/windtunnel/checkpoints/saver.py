"""Saves while training goes on: the trainer waits for a copy of the state, the rest is a thread's work."""

import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import torch.distributed as dist
from torch import Tensor

from windtunnel.checkpoints.blocks import BlockFile
from windtunnel.checkpoints.dcp import save_tensors
from windtunnel.checkpoints.fence import Fence
from windtunnel.checkpoints.manifest import CheckpointManifest
from windtunnel.checkpoints.publish import publish_checkpoint, start_checkpoint
from windtunnel.checkpoints.retention import Retention, let_go
from windtunnel.checkpoints.space import check_space
from windtunnel.checkpoints.stage import Stager
from windtunnel.comm.base import Comm, run_on_root
from windtunnel.errors import FencedError, StorageError
from windtunnel.storage import name_storage_faults


class Saver:
    """Of one rank of one attempt; every method is called by all ranks, in the same order.

    One save is under way at a time: a second one waits for it, though not for the verification and the removals
    that follow it. What could not be written whole is removed at once, since a full disk would stay full.
    """

    def __init__(
        self,
        checkpoints_dir: Path,
        *,
        comm: Comm,
        fence: Fence,
        retention: Retention,
        group: dist.ProcessGroup | None = None,
        asynchronous: bool = True,
    ) -> None:
        """`group` is for the thread alone, over Gloo: its collectives must not mix with those of training."""
        self._dir = checkpoints_dir
        self._comm = comm
        self._fence = fence
        self._retention = retention
        self._group = group
        self._asynchronous = asynchronous
        self._stager = Stager()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="saver")
        self._cleaner = ThreadPoolExecutor(1, thread_name_prefix="retention")
        self._writing: Future[None] | None = None
        self._cleaning: Future[None] | None = None
        self._failure: BaseException | None = None
        self._last_bytes = 0
        self.saved_s: list[float] = []
        """Seconds of each save, from the copy to its name, waiting for the one before left out."""

    def save(self, tensors: Mapping[str, Tensor], manifest: CheckpointManifest) -> None:
        """Copy the state and write it, in the background unless told otherwise.

        Raises what went wrong with the save before; StorageError when there is no room for this one.
        """
        _wait_for(self._writing)
        self.check()
        size_bytes = sum(tensor.nbytes for tensor in tensors.values())
        temporary = Path(run_on_root(self._comm, lambda: self._start(manifest, size_bytes)))
        staged = self._stager.stage(tensors) if self._asynchronous else dict(tensors)
        self._writing = self._writer.submit(self._write, temporary, staged, manifest)
        if not self._asynchronous:
            self.wait()

    def wait(self) -> None:
        """Return once nothing is under way; raises what went wrong."""
        _wait_for(self._writing)
        _wait_for(self._cleaning)
        self.check()

    def check(self) -> None:
        """Raise what went wrong so far, without waiting."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _start(self, manifest: CheckpointManifest, size_bytes: int) -> str:
        self._fence.check()
        # The first time only this rank's part is known: ranks may hold the same, or each its own.
        with name_storage_faults(str(self._dir)):
            self._check_space(max(size_bytes, self._last_bytes))
            return str(start_checkpoint(self._dir, step=manifest.step, generation=self._fence.generation))

    def _check_space(self, size_bytes: int) -> None:
        try:
            check_space(self._dir, size_bytes)
        except StorageError:  # an old one may be on its way out
            _wait_for(self._cleaning)
            check_space(self._dir, size_bytes)

    def _write(self, temporary: Path, staged: dict[str, Tensor], manifest: CheckpointManifest) -> None:
        started = time.perf_counter()
        try:
            save_tensors(
                temporary, staged, lambda files: self._publish(temporary, manifest, files), group=self._group
            )
            self.saved_s.append(time.perf_counter() - started)
            if self._comm.rank == 0:
                self._cleaning = self._cleaner.submit(self._let_go)
        except BaseException as error:  # handed to the trainer's thread, which raises it
            shutil.rmtree(temporary, ignore_errors=True)
            self._failure = self._find_reason(error)

    def _find_reason(self, error: BaseException) -> BaseException:
        """A folder that vanished, or a rank that did, is a successor's doing where there is one."""
        try:
            self._fence.check()
        except FencedError as fenced:
            return fenced
        except OSError:
            pass
        return error

    def _let_go(self) -> None:
        try:
            let_go(self._dir, self._retention, fence=self._fence)
        except OSError as error:  # the other ranks know nothing of it: the next save tries again
            print(f"an old checkpoint stays for now: {error}", flush=True)
        except Exception as error:  # as above
            self._failure = error

    def _publish(self, temporary: Path, manifest: CheckpointManifest, files: Sequence[BlockFile]) -> None:
        publish_checkpoint(temporary, manifest, files, fence=self._fence)
        self._last_bytes = sum(item.bytes for item in files)


def _wait_for(work: Future[None] | None) -> None:
    if work is not None:
        wait([work])
