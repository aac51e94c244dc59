import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_quick_loader_benchmark_ends_with_a_line_of_its_figures():
    command = [sys.executable, "-m", "benchmarks", "loader"]
    ended = subprocess.run(command, cwd=ROOT, env={**os.environ, "QUICK": "1"}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    assert said["benchmark"] == "loader"
    in_memory = {"memory_gather_fraction", "naive_h5py_speedup_memory"}
    streamed = {"streaming_fraction", "naive_h5py_speedup_streaming"}
    assert said["figures"].keys() == said["cases"].keys() == in_memory | streamed
