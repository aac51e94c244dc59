import csv
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.__main__ import PROGRAMS, main
from benchmarks.harness import hash_measured

ROOT = Path(__file__).parents[3]
FIGURES = ROOT.parent / "shared" / "figures.csv"


def produced():
    parts = {name: importlib.import_module(f"benchmarks.{name}").PARTS for name in PROGRAMS}
    return [f"{name},{figure}" for name in PROGRAMS for part in parts[name] for figure in part.figures]


def pending():
    return (ROOT / "benchmarks" / "PENDING").read_text().splitlines()


@pytest.mark.shared
def test_every_wanted_figure_is_produced_or_pending_and_nothing_else_is():
    with FIGURES.open() as file:
        wanted = [f"{row['benchmark']},{row['figure']}" for row in csv.DictReader(file)]
    assert sorted(produced() + pending()) == sorted(wanted)


def test_no_figure_is_both_produced_and_pending():
    assert not set(produced()) & set(pending())


def test_what_every_part_measures_exists():
    for name in PROGRAMS:
        for part in importlib.import_module(f"benchmarks.{name}").PARTS:
            assert hash_measured(part.measures)


def test_an_unknown_benchmark_gives_the_names(capsys):
    assert main(["speed"]) == 2
    assert "names: " + " ".join(PROGRAMS) in capsys.readouterr().err
    assert main([]) == 2


def test_kept_results_are_of_known_parts():
    known = {
        f"{name}-{part.name}" for name in PROGRAMS for part in importlib.import_module(f"benchmarks.{name}").PARTS
    }
    for path in (ROOT / "benchmarks" / "results").glob("*.json"):
        document = json.loads(path.read_text())
        assert f"{document['benchmark']}-{document['part']}" in known, path.name
        assert path.name.startswith(f"{document['benchmark']}-{document['part']}-")


def test_the_command_line_ends_with_code_two_for_an_unknown_name():
    ended = subprocess.run([sys.executable, "-m", "benchmarks", "speed"], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("usage: make bench NAME=<name>")
    assert not ended.stdout
