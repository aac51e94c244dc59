import os
import resource
import subprocess
import sys

import pytest

from toy_trial import trial_settings, write_features, write_trial
from windtunnel.ledger.traces import read_marks
from windtunnel.records.goodput import TIMELINE, Phase
from windtunnel.records.trial import STORAGE_CODE


def train(folder, *, most_bytes):
    """One rank, where no file can grow past `most_bytes`, in place of a full disk; its attempt's folder."""
    trial_dir = folder / "t"
    write_trial(trial_dir, write_features(folder / "features"), trial_settings())
    attempt_dir = trial_dir / "attempts" / "1"
    attempt_dir.mkdir(parents=True)
    words = [sys.executable, "-m", "windtunnel.training", "--trial-dir", str(trial_dir), "--attempt", "1"]
    env = {**os.environ, "RANK": "0", "WORLD_SIZE": "1"}
    limit = (most_bytes, most_bytes)
    ended = subprocess.run(
        words,
        env=env,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert ended.returncode == STORAGE_CODE, ended.stderr
    return attempt_dir


@pytest.mark.gloo
def test_a_rank_that_cannot_even_write_why_it_ended_says_by_its_code_that_the_disk_is_full(tmp_path):
    assert not list(train(tmp_path, most_bytes=0).glob("error-*"))


@pytest.mark.gloo
def test_after_a_save_that_failed_time_is_no_longer_that_saves(tmp_path):
    marks = read_marks(train(tmp_path, most_bytes=3000) / TIMELINE)
    assert Phase.STALL in {mark.phase for mark in marks}
    assert marks[-1].phase == Phase.DRAIN
