import json
import os
import subprocess
import sys
from pathlib import Path

from virtual_cluster import Testbed

from windtunnel.testbed.hosts import host_env

ROOT = Path(__file__).parents[3]
FIGURES = {
    "causes_right_fraction",
    "recovery_in_allocation_s",
    "recovery_requeue_extra_s",
    "requeued_after_scancel",
}


def test_the_quick_parts_of_the_faults_benchmark_that_need_slurm_give_their_figures(testbed: Testbed) -> None:
    command = [sys.executable, "-m", "benchmarks", "faults"]
    env = {**os.environ, **host_env(testbed.spec), "QUICK": "1", "PART": "causes,recovery"}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    assert said["figures"].keys() == said["cases"].keys() == FIGURES
    assert said["figures"]["causes_right_fraction"] == 1, ended.stdout
    assert said["figures"]["requeued_after_scancel"] == 0, ended.stdout
