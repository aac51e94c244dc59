"""The torch side of a checkpoint: flat mappings of tensors through torch.distributed.checkpoint, in our own files.

DCP plans who writes and who reads which part of which tensor, also where a tensor lies in shards over ranks and is
read by another number of them. Its own files are pickles and zips without hashes; ours are raw bytes in blocks.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from windtunnel.checkpoints.manifest import read_index
from windtunnel.checkpoints.storage import BlockStorageReader, BlockStorageWriter, Publish, name_dtype
from windtunnel.errors import CheckpointError, FencedError, StorageError
from windtunnel.storage import describe_fault, find_storage_fault


def save_tensors(
    folder: Path, tensors: Mapping[str, Tensor], publish: Publish, *, group: dist.ProcessGroup | None = None
) -> None:
    """Write `tensors` into `folder`, all ranks together; a name on several ranks is written once.

    Rank 0 calls `publish` with the records of all files, once every rank's are durable. Raises StorageError on all
    ranks when one's disk is full, FencedError when the trial is another attempt's, and CheckpointError on any other
    failure of one.
    """
    with _quiet_alone(), _named_failure(f"cannot write a checkpoint into {folder}"):
        writer = BlockStorageWriter(folder, publish)
        save(dict(tensors), storage_writer=writer, process_group=group, no_dist=not dist.is_initialized())


def load_tensors(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Fill `tensors` in place, all ranks together, from blocks that verify.

    Raises CheckpointError where a name, dtype or shape differs, or a byte is not what its manifest says.
    """
    needed = {name: (name_dtype(tensor.dtype), tuple(tensor.shape)) for name, tensor in tensors.items()}
    with _quiet_alone(), _named_failure(f"cannot read the checkpoint {folder}"):
        # What one rank cannot read, or lacks, ends all: the reader does everything within DCP's own exchange.
        reader = BlockStorageReader(folder, needed)
        load(dict(tensors), storage_reader=reader, no_dist=not dist.is_initialized())


def read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Shape of every tensor that the checkpoint holds, by name."""
    return {name: tensor.shape for name, tensor in read_index(folder).tensors.items()}


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """A model's parameters and buffers by the names that checkpoints give them."""
    return {f"model.{name}": tensor.detach() for name, tensor in model.state_dict().items()}


def pack_json(value: Any) -> Tensor:
    """A JSON value as a tensor of its bytes; floats survive exactly."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def unpack_json(tensor: Tensor) -> Any:
    """The value of `pack_json`."""
    return json.loads(bytes(tensor.tolist()))


@contextmanager
def _named_failure(what: str) -> Iterator[None]:
    try:
        yield
    except (CheckpointException, OSError, RuntimeError, ValueError, KeyError) as error:
        # CheckpointException derives from BaseException, and would pass every handler above.
        cause = _find_cause(error)
        if isinstance(cause, FencedError | CheckpointError | StorageError):
            raise cause from None
        fault = find_storage_fault(cause)
        if fault is not None:
            raise StorageError(f"{what}: {describe_fault(fault)}") from cause
        raise CheckpointError(f"{what}: {type(cause).__name__}: {cause}") from cause


def _find_cause(error: BaseException) -> BaseException:
    """What went wrong on the first rank that failed; torch's own message of it is a stack of its own files."""
    failures = error.failures.values() if isinstance(error, CheckpointException) else ()
    return next((wrapped[0] for wrapped in failures), error)


@contextmanager
def _quiet_alone() -> Iterator[None]:
    """Without the warning that a single process saves by itself, which is what we ask for.

    Among ranks, of which a thread saves, there is none; and filters are the whole process's.
    """
    if dist.is_initialized():
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled", category=UserWarning)
        yield
