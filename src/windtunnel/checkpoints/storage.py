"""DCP's storage in our format: one file of raw bytes a rank, in hashed blocks, and an index in JSON. No pickle."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from windtunnel.artifacts import write_artifact
from windtunnel.checkpoints.blocks import BlockFile, BlockReader, BlockWriter, hash_blocks
from windtunnel.checkpoints.manifest import (
    INDEX,
    CheckpointIndex,
    Chunk,
    TensorRecord,
    read_index,
    read_manifest,
)
from windtunnel.errors import CheckpointError

Publish = Callable[[Sequence[BlockFile]], None]
_ALIGN_BYTES = 64
"""Of a chunk's first byte, so that a reader may map it as any dtype."""


@dataclass(frozen=True)
class _Stored:
    """Where a part of a tensor went; `file` is the record of all that its rank wrote."""

    chunk: Chunk
    file: BlockFile


class BlockStorageWriter(StorageWriter):
    """Writes into a folder that is nobody else's; rank 0 then hands the records of all files to `publish`."""

    def __init__(self, folder: Path, publish: Publish) -> None:
        self._folder = folder
        self._publish = publish

    def reset(self, checkpoint_id: Any = None) -> None:
        """A writer is of one checkpoint."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Checkpoints are folders."""
        return isinstance(checkpoint_id, Path)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """The folder is there already."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """As it is."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Each rank's file has the rank in its name."""
        return [replace(plan, storage_data=f"rank-{rank:05d}.bin") for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> "Future[list[WriteResult]]":
        """This rank's parts, one after the other, durable on return."""
        done: Future[list[WriteResult]] = Future()
        done.set_result(self._write(plan, planner) if plan.items else [])
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """On rank 0, once all have written."""
        stored = [(result.index, result.storage_data) for each in results for result in each]
        write_artifact(
            self._folder / INDEX, make_index(metadata, [(index.fqn, item.chunk) for index, item in stored])
        )
        files = {item.file.file: item.file for _, item in stored}
        self._publish([*files.values(), hash_blocks(self._folder / INDEX)])

    def _write(self, plan: SavePlan, planner: SavePlanner) -> list[WriteResult]:
        written: list[tuple[MetadataIndex, Chunk]] = []
        with BlockWriter(self._folder / plan.storage_data) as file:
            for item in plan.items:
                tensor = planner.resolve_data(item)
                assert isinstance(tensor, Tensor), f"{item.index.fqn} is no tensor: only tensors are stored"
                file.write(bytes(-file.position % _ALIGN_BYTES))
                at, data = file.position, _view_bytes(tensor)
                file.write(data)
                offsets = tuple(item.index.offset or (0,) * tensor.dim())
                written.append((item.index, Chunk(offsets, tuple(tensor.shape), plan.storage_data, at, len(data))))
        record = file.describe()
        return [WriteResult(index, chunk.bytes, _Stored(chunk, record)) for index, chunk in written]


class BlockStorageReader(StorageReader):
    """Reads what its manifest vouches for, and verifies every block that it reads."""

    def __init__(self, folder: Path, needed: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
        """`needed` is the dtype and the whole shape of each tensor that this rank is to fill."""
        self._folder = folder
        self._needed = needed
        self._files: dict[str, BlockFile] = {}
        self._failure: Exception | None = None
        self._chunks: dict[MetadataIndex, Chunk] = {}

    def reset(self, checkpoint_id: Any = None) -> None:
        """A reader is of one checkpoint."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Checkpoints are folders."""
        return isinstance(checkpoint_id, Path)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The index as DCP's planner wants it; none where it cannot be read, which is told a moment later."""
        try:
            return self._read_metadata()
        except (CheckpointError, OSError) as error:
            self._failure = error  # raised from here, DCP would make a word of its own of it
            return Metadata({}, storage_data={})

    def _read_metadata(self) -> Metadata:
        index = read_index(self._folder)
        self._files = {item.file: item for item in read_manifest(self._folder).files}
        self._check_needed(index)
        chunks = {
            MetadataIndex(name, chunk.offsets): chunk
            for name, tensor in index.tensors.items()
            for chunk in tensor.chunks
        }
        return Metadata({name: _as_metadata(tensor) for name, tensor in index.tensors.items()}, storage_data=chunks)

    def _check_needed(self, index: CheckpointIndex) -> None:
        for name, (dtype, shape) in self._needed.items():
            held = index.tensors.get(name)
            found = f"{held.dtype} {held.shape}" if held is not None else "nothing"
            if found != f"{dtype} {shape}":
                raise CheckpointError(f"{self._folder} holds {name} as {found}, the model needs {dtype} {shape}")

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Every rank reads the index for itself; raises what went wrong in that, for all ranks to know."""
        if self._failure is not None:
            raise self._failure
        self._chunks = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """As it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """As they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> "Future[None]":
        """Fill this rank's tensors, file by file, front to back."""
        wanted = sorted(plan.items, key=self._find_place)
        for file, items in groupby(wanted, key=lambda item: self._find_place(item)[0]):
            with BlockReader(self._folder, self._find_record(file)) as reader:
                for item in items:
                    self._read_item(reader, item, planner)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _read_item(self, reader: BlockReader, item: ReadItem, planner: LoadPlanner) -> None:
        chunk = self._chunks[item.storage_index]
        target = planner.resolve_tensor(item).detach()
        whole = torch.empty(chunk.shape, dtype=target.dtype)
        reader.read_into(_view_bytes(whole), at=chunk.at)
        wanted = tuple(slice(at, at + size) for at, size in zip(item.storage_offsets, item.lengths, strict=True))
        target.copy_(whole[wanted])
        planner.commit_tensor(item, target)

    def _find_place(self, item: ReadItem) -> tuple[str, int]:
        chunk = self._chunks[item.storage_index]
        return chunk.file, chunk.at

    def _find_record(self, file: str) -> BlockFile:
        if file not in self._files:
            raise CheckpointError(f"{self._folder.name}/{file} is not in its manifest")
        return self._files[file]


def make_index(metadata: Metadata, chunks: Sequence[tuple[str, Chunk]]) -> CheckpointIndex:
    """The index of what was written; `chunks` come with the names of their tensors."""
    by_name: dict[str, list[Chunk]] = {}
    for name, chunk in chunks:
        by_name.setdefault(name, []).append(chunk)
    return CheckpointIndex(
        {
            name: TensorRecord(
                name_dtype(held.properties.dtype),
                tuple(held.size),
                tuple(sorted(by_name.get(name, ()), key=lambda chunk: chunk.offsets)),
            )
            for name, held in sorted(metadata.state_dict_metadata.items())
            if isinstance(held, TensorStorageMetadata)
        }
    )


def name_dtype(dtype: torch.dtype) -> str:
    """`float32`."""
    return str(dtype).removeprefix("torch.")


def _as_metadata(tensor: TensorRecord) -> TensorStorageMetadata:
    dtype = getattr(torch, tensor.dtype)
    chunks = [ChunkStorageMetadata(torch.Size(chunk.offsets), torch.Size(chunk.shape)) for chunk in tensor.chunks]
    return TensorStorageMetadata(TensorProperties(dtype=dtype), torch.Size(tensor.shape), chunks)


def _view_bytes(tensor: Tensor) -> memoryview:
    """The tensor's bytes, row-major: its own memory on a CPU, where it lies in one piece."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data
