import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.shared
def test_a_quick_ingest_benchmark_ends_with_a_line_of_its_figures():
    command = [sys.executable, "-m", "benchmarks", "ingest"]
    env = {**os.environ, "QUICK": "1", "PART": "unzip-parse,pandas,fsck"}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    assert said["benchmark"] == "ingest"
    figures = {"unzip_parse_ratio", "pandas_table_speedup", "pandas_fixed_speedup", "fsck_found_fraction"}
    assert said["figures"].keys() == said["cases"].keys() == figures
    assert said["figures"]["fsck_found_fraction"] == 1
