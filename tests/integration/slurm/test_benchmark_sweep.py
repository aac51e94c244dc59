import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from virtual_cluster import Testbed

from windtunnel.testbed.hosts import host_env

ROOT = Path(__file__).parents[3]
FIGURES = {
    "controller_calls_ratio",
    "controller_cpu_fraction",
    "launcher_wall_ratio",
    "results_kept_fraction",
    "status_10k_s",
    "submit_overhead_s",
}


@pytest.mark.skipif(
    importlib.util.find_spec("hydra_plugins.hydra_submitit_launcher") is None,
    reason="no hydra-submitit-launcher: pip install -r envs/test.txt",
)
def test_a_quick_sweep_benchmark_ends_with_a_line_of_its_figures(testbed: Testbed) -> None:
    command = [sys.executable, "-m", "benchmarks", "sweep"]
    env = {**os.environ, **host_env(testbed.spec), "QUICK": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    assert said["benchmark"] == "sweep"
    assert said["figures"].keys() == said["cases"].keys() == FIGURES
    assert said["figures"]["results_kept_fraction"] == 1
