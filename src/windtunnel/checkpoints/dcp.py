"""The torch side of a checkpoint: flat mappings of tensors through torch.distributed.checkpoint.

Only tensors are handed over, so that reading unpickles no object of ours (torch reads them with
`weights_only`). DCP's own index is a pickle of torch's classes: verify a checkpoint before reading it.
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
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from windtunnel.errors import CheckpointError, StorageError
from windtunnel.storage import describe_fault, find_storage_fault


def save_tensors(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write `tensors` into `folder`, all ranks together; a name on several ranks is written once.

    Raises StorageError on all ranks when one's disk is full, and CheckpointError on any other failure of one.
    """
    with _quiet_alone(), _named_failure(f"cannot write a checkpoint into {folder}"):
        writer = FileSystemWriter(folder, sync_files=True)
        save(dict(tensors), storage_writer=writer, no_dist=not dist.is_initialized())


def load_tensors(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Fill `tensors` in place, all ranks together; raises CheckpointError where a name or shape differs."""
    held = read_shapes(folder)
    for name, tensor in tensors.items():
        if held.get(name) != tuple(tensor.shape):
            raise CheckpointError(
                f"{folder} holds {name} as {held.get(name, 'nothing')}, the model needs {tuple(tensor.shape)}"
            )
    with _quiet_alone(), _named_failure(f"cannot read the checkpoint {folder}"):
        reader = FileSystemReader(folder)
        load(dict(tensors), storage_reader=reader, no_dist=not dist.is_initialized())


def read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Shape of every tensor that the checkpoint holds, by name."""
    with _named_failure(f"cannot read the index of {folder}"):
        metadata = FileSystemReader(folder).read_metadata()
    return {
        name: tuple(entry.size)
        for name, entry in metadata.state_dict_metadata.items()
        if isinstance(entry, TensorStorageMetadata)
    }


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
    """Without the warning that a single process saves by itself, which is what we ask for."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled", category=UserWarning)
        yield
