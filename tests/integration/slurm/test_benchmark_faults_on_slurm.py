import json
import os
import subprocess
import sys
from pathlib import Path

from virtual_cluster import Testbed

from windtunnel.testbed.hosts import host_env

ROOT = Path(__file__).parents[3]
FIGURES = {"causes_right_fraction", "requeued_after_scancel"}


def test_a_quick_look_at_live_causes_gives_its_figures_and_restarts_nothing_that_was_cancelled(
    testbed: Testbed,
) -> None:
    command = [sys.executable, "-m", "benchmarks", "faults"]
    env = {**os.environ, **host_env(testbed.spec), "QUICK": "1", "PART": "causes"}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    assert said["figures"].keys() == said["cases"].keys() == FIGURES
    assert said["figures"]["requeued_after_scancel"] == 0, ended.stdout
