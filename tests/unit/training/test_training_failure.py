import errno
import json

import pytest
import torch

from windtunnel.errors import DivergedError
from windtunnel.training.failure import name_failure, write_failure


def test_a_failure_is_left_with_its_type_message_and_last_line(tmp_path):
    path = write_failure(tmp_path, 3, DivergedError("the loss became nan at step 7"))
    failure = json.loads(path.read_text())
    assert path.name == "error-rank-3.json"
    assert failure["type"] == "DivergedError"
    assert failure["message"] == "the loss became nan at step 7"
    assert failure["last_line"] == "windtunnel.errors.DivergedError: the loss became nan at step 7"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"),
    ],
)
def test_every_way_of_running_out_of_memory_has_one_name(error):
    assert name_failure(error) == "OutOfMemoryError"


def test_the_cpus_own_allocator_is_recognised():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert name_failure(caught.value) == "OutOfMemoryError"


def test_a_full_disk_has_one_name_whoever_met_it():
    assert name_failure(OSError(errno.ENOSPC, "No space left on device")) == "StorageError"


def test_another_error_keeps_its_class():
    assert name_failure(KeyError("x")) == "KeyError"
