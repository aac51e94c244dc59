import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.shared
@pytest.mark.skipif(os.geteuid() != 0, reason="the testbed's shaped links need root")
def test_a_quick_placement_benchmark_ends_with_a_line_of_its_figures():
    command = [sys.executable, "-m", "benchmarks", "placement"]
    ended = subprocess.run(command, cwd=ROOT, env={**os.environ, "QUICK": "1"}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    assert said["benchmark"] == "placement"
    assert (
        said["figures"].keys()
        == said["cases"].keys()
        == {
            "ring_speedup",
            "corpus_fraction",
            "solver_optimal_fraction",
            "large_gap",
            "large_solve_s",
        }
    )
    assert said["figures"]["ring_speedup"] > 1
    assert said["figures"]["corpus_fraction"] == said["figures"]["solver_optimal_fraction"] == 1
