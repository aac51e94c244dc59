"""The one paired-benchmark harness: sides in turn within one run, ratios with intervals, results kept and printed.

A benchmark is a module with `PARTS`. A part that has a result for these sources and this machine is not run again,
unless it adds cases to those before it and has not as many as it wants.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from windtunnel.artifacts import hash_file, hash_json, read_provenance, write_atomic
from windtunnel.device.cpu import count_cpus, read_cpu_name
from windtunnel.errors import SettingsError
from windtunnel.statistics import Interval, median_interval, paired_ratio

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SOURCE_SUFFIXES = (".py", ".c", ".cpp", ".cu", ".h")

Side = Callable[[], float]


@dataclass(frozen=True)
class Row:
    """A line of the printed table: a measured quantity, median and interval of `count` values."""

    name: str
    median: float
    low: float
    high: float
    unit: str
    count: int


@dataclass(frozen=True)
class PartResult:
    """What a part found: its figures, on how many cases each stands, and the table behind them."""

    figures: dict[str, float]
    cases: dict[str, int]
    rows: tuple[Row, ...]
    words: tuple[tuple[str, ...], ...] = ()
    """A table of words, its header first, of a part that has no figures."""


@dataclass(frozen=True)
class Part:
    """A piece of a benchmark that is run, and kept, on its own."""

    name: str
    figures: tuple[str, ...]
    """Keys that its result has: figures of this benchmark."""
    measures: tuple[str, ...]
    """Packages and modules below `src/windtunnel`, and files of `benchmarks`, that can change its figures."""
    run: Callable[[bool], PartResult]
    """Called with whether to be quick."""
    wanted_cases: int = 0
    """For a part whose runs add up: run again, other cases each time, until there are so many. Its figures and rows
    are then means over cases."""


@dataclass(frozen=True)
class Paired:
    """Seconds of each side, run in turn: entry i of every side belongs to the same round."""

    seconds: dict[str, tuple[float, ...]]

    def ratio(self, above: str, below: str) -> Interval:
        """Median of the rounds' ratios, with its bootstrap interval."""
        return paired_ratio(self.seconds[above], self.seconds[below])


def run_paired(sides: Mapping[str, Side], *, rounds: int, discard: int = 1) -> Paired:
    """Run the sides in turn; every other round backwards, so that drift favours none. Sides return seconds."""
    kept: dict[str, list[float]] = {name: [] for name in sides}
    for index in range(discard + rounds):
        for name in list(sides)[:: -1 if index % 2 else 1]:
            seconds = sides[name]()
            if index >= discard:
                kept[name].append(seconds)
    return Paired({name: tuple(values) for name, values in kept.items()})


def make_rows(paired: Paired) -> tuple[Row, ...]:
    """A row a side."""
    return tuple(make_row(name, median_interval(values), "s") for name, values in paired.seconds.items())


def make_row(name: str, interval: Interval, unit: str) -> Row:
    return Row(name, interval.median, interval.low, interval.high, unit, interval.count)


def make_share_row(name: str, good: Sequence[bool]) -> Row:
    """The share of cases that went well."""
    return Row(name, sum(good) / len(good), float(min(good)), float(max(good)), "", len(good))


def run_benchmark(name: str, parts: Iterable[Part], *, quick: bool, results: Path = RESULTS) -> dict[str, object]:
    """Run the parts that have no result yet, keep each, print all; returns what the last line says.

    A quick run keeps nothing and reuses nothing: its figures stand on too little.
    """
    found = [_run_quickly(part) if quick else _find_or_run(name, part, results) for part in parts]
    rows = [row for result in found for row in result.rows]
    if rows:
        print(render_table(rows))
    for result in found:
        if result.words:
            print("", *align(result.words), sep="\n")
    figures = {key: value for result in found for key, value in result.figures.items()}
    cases = {key: value for result in found for key, value in result.cases.items()}
    return {"benchmark": name, "figures": figures, "cases": cases}


def choose_parts(parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
    """The parts of these names, or all where none is named; raises SettingsError for a name that there is not."""
    known = [part.name for part in parts]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SettingsError(f"PART={','.join(names)}: there is no part {unknown[0]!r}: {' '.join(known)}")
    return tuple(part for part in parts if not names or part.name in names)


def add_up(results: Sequence[PartResult]) -> PartResult:
    """The cases of all runs together: figures and medians of rows as means over cases."""
    cases = {key: sum(result.cases[key] for result in results) for key in results[0].cases}
    figures = {
        key: sum(result.figures[key] * result.cases[key] for result in results) / count
        for key, count in cases.items()
    }
    rows: dict[str, Row] = {}
    for row in (row for result in results for row in result.rows):
        rows[row.name] = _add_row(rows[row.name], row) if row.name in rows else row
    return PartResult(figures, cases, tuple(rows.values()))


def render_table(rows: list[Row]) -> str:
    """Rows as aligned text."""
    header = ("measured", "median", "95 % interval", "unit", "n")
    cells = [(r.name, f"{r.median:.4g}", f"{r.low:.4g} .. {r.high:.4g}", r.unit, str(r.count)) for r in rows]
    return "\n".join(align([header, *cells]))


def align(lines: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of as many cells each, with columns of one width."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def is_quick() -> bool:
    """Whether QUICK=1 asks for the shortest run that exercises everything."""
    return os.environ.get("QUICK", "0") not in ("", "0")


def read_more() -> int:
    """How many runs of a part that adds up are asked for by MORE; one without."""
    return max(1, int(os.environ.get("MORE") or 1))


def read_part_names() -> tuple[str, ...]:
    """Names of the parts to run, by PART with commas between; all without."""
    return tuple(filter(None, os.environ.get("PART", "").split(",")))


def hash_measured(measures: Iterable[str], *, root: Path = ROOT) -> str:
    """First 16 hex digits of a hash over the sources of what a part measures."""
    files = {path for measured in measures for path in _source_files(root, measured)}
    named = {str(path.relative_to(root)): hash_file(path) for path in sorted(files)}
    return hash_json(named)[:16]


def hash_machine() -> str:
    """First 16 hex digits of a hash of this machine's processor; not its name, which changes with each start."""
    return hashlib.sha256(f"{read_cpu_name()} x {count_cpus()}".encode()).hexdigest()[:16]


def describe_load(load: float, cpus: int) -> str:
    """A warning where others use the processors; empty on a quiet machine."""
    if load < 0.75 * cpus:
        return ""
    return f" on a busy machine (load {load:.1f} on {cpus} CPUs): its times may be worse than on a quiet one"


def _run_quickly(part: Part) -> PartResult:
    return _check_keys(part, part.run(True))


def _find_or_run(benchmark: str, part: Part, results: Path) -> PartResult:
    key = f"{hash_measured(part.measures)}-{hash_machine()}"
    kept = _read_results(benchmark, part, results, key)
    if not part.wanted_cases:
        return kept[0] if kept else _run_and_keep(benchmark, part, results, key)
    for _ in range(read_more()):
        if _count_cases(kept) < part.wanted_cases:
            kept.append(_run_and_keep(benchmark, part, results, key))
    if _count_cases(kept) < part.wanted_cases:
        print(f"{benchmark}: {part.name} has {_count_cases(kept)} of {part.wanted_cases} cases: each run adds some")
    return add_up(kept)


def _run_and_keep(benchmark: str, part: Part, results: Path, key: str) -> PartResult:
    load = os.getloadavg()[0]
    print(f"{benchmark}: running {part.name}" + describe_load(load, count_cpus()), flush=True)
    result = _check_keys(part, part.run(False))
    _write_result(benchmark, part, results, key, result, load=load)
    return result


def _count_cases(kept: Sequence[PartResult]) -> int:
    return sum(min(result.cases.values()) for result in kept)


def _add_row(one: Row, other: Row) -> Row:
    count = one.count + other.count
    mean = (one.median * one.count + other.median * other.count) / count if count else one.median
    return replace(one, median=mean, low=min(one.low, other.low), high=max(one.high, other.high), count=count)


def _check_keys(part: Part, result: PartResult) -> PartResult:
    assert set(result.figures) == set(result.cases) == set(part.figures), f"{part.name} gave {sorted(result.figures)}"
    return result


def _read_results(benchmark: str, part: Part, results: Path, key: str) -> list[PartResult]:
    """The kept results of this key, newest first."""
    found = []
    for path in sorted(results.glob(f"{benchmark}-{part.name}-*.json"), reverse=True):
        document = json.loads(path.read_text())
        if document["key"] == key:
            print(f"{benchmark}: {part.name} was measured on {document['provenance']['created']}", flush=True)
            content = document["result"]
            rows = tuple(Row(**row) for row in content["rows"])
            words = tuple(tuple(line) for line in content.get("words", ()))
            found.append(PartResult(content["figures"], content["cases"], rows, words))
            if not part.wanted_cases:
                break
    return found


def _write_result(benchmark: str, part: Part, results: Path, key: str, result: PartResult, *, load: float) -> None:
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    machine = {**read_provenance(), "cpu": read_cpu_name(), "cpus": count_cpus(), "load_before": load}
    document = {
        "benchmark": benchmark,
        "part": part.name,
        "key": key,
        "provenance": machine,
        "result": asdict(result),
    }
    write_atomic(results / f"{benchmark}-{part.name}-{moment}.json", (json.dumps(document, indent=1) + "\n").encode())


def _source_files(root: Path, measured: str) -> list[Path]:
    below = root if measured.startswith(("benchmarks/", "envs/")) else root / "src" / "windtunnel"
    path = below / measured
    if path.is_file():
        return [path]
    assert path.is_dir(), f"{measured} is neither a package, a module nor a benchmark"
    return [file for file in path.rglob("*") if file.suffix in SOURCE_SUFFIXES]
