import errno
import json

import pytest
import torch

from windtunnel.errors import CheckpointError, DivergedError
from windtunnel.training.failure import is_echo, name_failure, write_failure


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


@pytest.mark.parametrize(
    ("error", "secondary"),
    [
        (RuntimeError("[gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer"), True),
        (torch.distributed.DistBackendError("NCCL error: remote process exited or there was a network error"), True),
        (ConnectionResetError("Connection reset by peer"), False),
        (RuntimeError("expected a tensor of 3 dims"), False),
    ],
)
def test_an_error_that_only_saw_another_rank_go_is_marked_as_secondary(tmp_path, error, secondary):
    assert json.loads(write_failure(tmp_path, 0, error).read_text())["secondary"] is secondary


def test_a_save_that_broke_off_because_another_rank_went_is_secondary_as_well():
    gone = CheckpointError("cannot write a checkpoint")
    gone.__cause__ = RuntimeError("Connection closed by peer [10.77.1.3]:4237")
    assert is_echo(gone)
