import json
import os
import subprocess
import sys

import pytest


@pytest.mark.mpi
def test_a_quick_benchmark_of_ranks_ends_with_a_line_of_its_figure(project_dir):
    env = {**os.environ, "QUICK": "1", "PART": "mpi-ranks"}
    command = [sys.executable, "-m", "benchmarks", "ingest"]
    ended = subprocess.run(command, cwd=project_dir, env=env, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1])["cases"] == {"mpi_speedup": 1}
