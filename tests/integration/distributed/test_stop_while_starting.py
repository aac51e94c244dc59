import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toy_trial import trial_settings, write_features, write_trial
from windtunnel.checkpoints.manifest import list_checkpoints, step_of
from windtunnel.records.trial import STOPPED_CODE


@pytest.mark.gloo
def test_a_rank_that_is_told_to_stop_while_its_libraries_load_stops_in_order(tmp_path):
    settings = trial_settings(steps=100_000, checkpoint_every=1000)
    trial_dir = tmp_path / "t"
    write_trial(trial_dir, write_features(tmp_path / "features"), settings)
    (trial_dir / "attempts" / "1").mkdir(parents=True)
    words = [sys.executable, "-m", "windtunnel.training", "--trial-dir", str(trial_dir), "--attempt", "1"]
    with subprocess.Popen(words, env={**os.environ, "RANK": "0", "WORLD_SIZE": "1"}) as rank:
        wait_until_torch_loads(rank)
        rank.send_signal(signal.SIGTERM)
        assert rank.wait(timeout=60) == STOPPED_CODE
    assert step_of(list_checkpoints(trial_dir / "checkpoints")[0]) < 1000


def wait_until_torch_loads(rank):
    deadline = time.monotonic() + 30
    while "libtorch" not in Path(f"/proc/{rank.pid}/maps").read_text():
        assert rank.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)
