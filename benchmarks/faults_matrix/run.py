"""Public failure cases against Lightning, plain submitit, plain DCP and ours: a table of what became of each.

Every cell is a run of the package itself, on the CPU, or says why the case cannot befall it; see docs/faults.md.
"""

import tempfile
from pathlib import Path

from benchmarks.faults_matrix import cases, running
from benchmarks.faults_matrix.bed import Bed
from benchmarks.faults_matrix.cases import Case
from benchmarks.faults_matrix.sides import DCP, OURS, SIDES, Side, has_packages, install_packages, name_versions
from benchmarks.harness import PartResult

CASES = (*cases.CASES, *running.CASES)


def run_matrix(quick: bool) -> PartResult:
    """All cases on all sides; quickly one case, on those that need nothing installed."""
    problem = "" if quick else install_packages()
    chosen, sides = (CASES[:1], (DCP, OURS)) if quick else (CASES, SIDES)
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        bed = Bed(Path(folder))
        try:
            lines = [(case.name, *(fill_cell(bed, case, side, problem) for side in sides)) for case in chosen]
        finally:
            bed.close()
    header = ("case", *(f"{side.name} ({name_versions(side)})" for side in sides))
    return PartResult({}, {}, (), (header, *lines))


def fill_cell(bed: Bed, case: Case, side: Side, problem: str) -> str:
    """What one side makes of one case."""
    if side.name in case.excused:
        return f"not applicable ({case.excused[side.name]})"
    if not has_packages(side):
        return f"not installed ({problem})"
    told = case.replay(bed, side)
    print(f"faults: {case.name}: {side.name}: {told}", flush=True)
    return told
