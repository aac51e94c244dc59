import math
import resource
from contextlib import contextmanager

import pytest
import torch

from windtunnel.checkpoints.dcp import load_tensors, pack_json, read_shapes, save_tensors, unpack_json
from windtunnel.errors import CheckpointError, StorageError


@contextmanager
def _files_of_at_most(size_bytes: int):
    """A full disk, as far as this process can tell."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_tensors_come_back_bit_by_bit(tmp_path):
    tensors = {"a": torch.randn(3, 4), "step": torch.tensor(7.0), "bytes": torch.arange(9, dtype=torch.uint8)}
    save_tensors(tmp_path, tensors)
    found = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
    load_tensors(tmp_path, found)
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    assert read_shapes(tmp_path) == {"a": (3, 4), "step": (), "bytes": (9,)}


def test_a_tensor_of_another_shape_is_refused_by_name(tmp_path):
    save_tensors(tmp_path, {"model.weight": torch.zeros(3, 4)})
    with pytest.raises(CheckpointError, match=r"holds model.weight as \(3, 4\), the model needs \(3, 5\)"):
        load_tensors(tmp_path, {"model.weight": torch.zeros(3, 5)})


def test_a_tensor_that_is_not_there_is_refused_by_name(tmp_path):
    save_tensors(tmp_path, {"a": torch.zeros(3)})
    with pytest.raises(CheckpointError, match="holds b as nothing"):
        load_tensors(tmp_path, {"b": torch.zeros(3)})


def test_a_folder_without_an_index_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="cannot read the index of"):
        load_tensors(tmp_path, {"a": torch.zeros(3)})


def test_a_full_disk_is_told_in_one_line_with_its_cause(tmp_path):
    with (
        _files_of_at_most(4096),
        pytest.raises(StorageError, match=r"^cannot write a checkpoint into .*: File too large$"),
    ):
        save_tensors(tmp_path, {"a": torch.zeros(100_000)})


def test_json_survives_as_a_tensor_exactly():
    value = {"loss": 0.1 + 0.2, "none": None, "rows": [1, 2**60], "nan": math.nan}
    found = unpack_json(pack_json(value))
    assert math.isnan(found.pop("nan"))
    assert found == {name: value[name] for name in found}
