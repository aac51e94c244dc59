import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.faults import ON_SLURM, PARTS

ROOT = Path(__file__).parents[3]


@pytest.mark.gloo
def test_a_quick_faults_benchmark_ends_with_a_line_of_its_figures():
    command = [sys.executable, "-m", "benchmarks", "faults"]
    parts = [part for part in PARTS if part.name not in ON_SLURM]
    env = {**os.environ, "QUICK": "1", "PART": ",".join(part.name for part in parts)}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    wanted = {figure for part in parts for figure in part.figures}
    assert said["figures"].keys() == said["cases"].keys() == wanted
    whole = ("corruption_found_fraction", "crash_points_recovered_fraction", "disk_full_kept_fraction")
    assert [said["figures"][name] for name in whole] == [1.0, 1.0, 1.0], ended.stdout
    assert said["figures"]["stale_publishes"] == 0, ended.stdout
