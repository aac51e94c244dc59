import os
import resource
import subprocess
import sys

import pytest

from toy_trial import trial_settings, write_features, write_trial
from windtunnel.records.trial import STORAGE_CODE


def allow_no_byte():
    """In place of a full disk: nothing can be written, in any file."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.gloo
def test_a_rank_that_cannot_even_write_why_it_ended_says_by_its_code_that_the_disk_is_full(tmp_path):
    trial_dir = tmp_path / "t"
    write_trial(trial_dir, write_features(tmp_path / "features"), trial_settings())
    (trial_dir / "attempts" / "1").mkdir(parents=True)
    words = [sys.executable, "-m", "windtunnel.training", "--trial-dir", str(trial_dir), "--attempt", "1"]
    env = {**os.environ, "RANK": "0", "WORLD_SIZE": "1"}
    ended = subprocess.run(words, env=env, capture_output=True, text=True, preexec_fn=allow_no_byte)
    assert ended.returncode == STORAGE_CODE, ended.stderr
    assert not list((trial_dir / "attempts" / "1").glob("error-*"))
