"""Every benchmark in its shortest form: it runs, and its last line has its figures."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ingest", marks=pytest.mark.shared),
        pytest.param(
            "placement",
            marks=[
                pytest.mark.slurm,
                pytest.mark.skipif(os.geteuid() != 0, reason="the testbed's links need root"),
            ],
        ),
    ],
)
def test_a_quick_benchmark_ends_with_a_line_of_its_figures(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    parts = importlib.import_module(f"benchmarks.{name}").PARTS
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks", name],
        cwd=ROOT,
        env={**os.environ, "QUICK": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    figures = {figure for part in parts for figure in part.figures}
    assert said["benchmark"] == name
    assert set(said["figures"]) == set(said["cases"]) == figures
    assert all(value > 0 for value in said["figures"].values())
