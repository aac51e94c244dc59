import subprocess
import sys

import pytest
import torch

from saved_state import publish_tensors

LOAD = """
import sys, torch, torch.distributed as dist
from pathlib import Path
from windtunnel.checkpoints.dcp import load_tensors
from windtunnel.errors import CheckpointError
rank, folder, store, shape = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
try:
    load_tensors(folder, {"w": torch.zeros(shape)})
except CheckpointError as error:
    print(error)
"""


@pytest.mark.gloo
def test_what_one_rank_cannot_load_ends_the_loading_of_all(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    folder = publish_tensors(tmp_path, 1, {"w": torch.ones(3)})
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", LOAD, str(rank), str(folder), str(tmp_path / "store"), str(shape)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, shape in enumerate((3, 4))
    ]
    for rank in ranks:
        said, _ = rank.communicate(timeout=120)
        assert f"{folder} holds w as float32 (3,), the model needs float32 (4,)" in said
