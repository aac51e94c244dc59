import math
import resource
from contextlib import contextmanager

import pytest
import torch

from saved_state import publish_tensors
from windtunnel.checkpoints.dcp import load_tensors, pack_json, read_shapes, unpack_json
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
    tensors |= {
        "none": torch.empty(0, 3),
        "half": torch.randn(7, dtype=torch.bfloat16),
        "turned": torch.randn(5, 2).T,
    }
    path = publish_tensors(tmp_path, 1, tensors)
    found = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
    load_tensors(path, found)
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    assert read_shapes(path) == {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def test_a_tensor_of_another_shape_is_refused_by_name(tmp_path):
    path = publish_tensors(tmp_path, 1, {"model.weight": torch.zeros(3, 4)})
    with pytest.raises(CheckpointError, match=r"holds model.weight as float32 \(3, 4\), the model needs .* \(3, 5\)"):
        load_tensors(path, {"model.weight": torch.zeros(3, 5)})


def test_a_tensor_of_another_dtype_is_refused_and_never_cast(tmp_path):
    path = publish_tensors(tmp_path, 1, {"a": torch.zeros(3)})
    with pytest.raises(CheckpointError, match=r"holds a as float32 \(3,\), the model needs bfloat16"):
        load_tensors(path, {"a": torch.zeros(3, dtype=torch.bfloat16)})


def test_a_bit_that_flips_after_verification_is_not_loaded(tmp_path):
    path = publish_tensors(tmp_path, 1, {"a": torch.ones(2_000_000)})
    data = bytearray((path / "rank-00000.bin").read_bytes())
    data[5_000_000] ^= 4
    (path / "rank-00000.bin").write_bytes(data)
    with pytest.raises(CheckpointError, match=r"rank-00000.bin: bytes 4194304 to 7999999 have SHA-256"):
        load_tensors(path, {"a": torch.zeros(2_000_000)})


def test_a_tensor_that_is_not_there_is_refused_by_name(tmp_path):
    path = publish_tensors(tmp_path, 1, {"a": torch.zeros(3)})
    with pytest.raises(CheckpointError, match="holds b as nothing"):
        load_tensors(path, {"b": torch.zeros(3)})


def test_a_folder_without_an_index_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="cannot read the index of"):
        load_tensors(tmp_path, {"a": torch.zeros(3)})


def test_a_full_disk_is_told_in_one_line_with_its_cause(tmp_path):
    with (
        _files_of_at_most(4096),
        pytest.raises(StorageError, match=r"^cannot write a checkpoint into .*: File too large$"),
    ):
        publish_tensors(tmp_path, 1, {"a": torch.zeros(100_000)})


def test_json_survives_as_a_tensor_exactly():
    value = {"loss": 0.1 + 0.2, "none": None, "rows": [1, 2**60], "nan": math.nan}
    found = unpack_json(pack_json(value))
    assert math.isnan(found.pop("nan"))
    assert found == {name: value[name] for name in found}
