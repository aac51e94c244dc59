"""Snakemake's benchmark tables: what each stage of the workflow took."""

import csv
from dataclasses import dataclass
from pathlib import Path

from windtunnel.errors import InputFileError


@dataclass(frozen=True)
class StageTime:
    """One run of a rule, as Snakemake measured it; a value that it could not measure is None."""

    stage: str
    """Path of the table below `benchmarks/`, without suffix."""
    wall_s: float
    cpu_s: float | None
    max_rss_mib: float | None
    mean_load_percent: float | None
    read_mib: float | None
    written_mib: float | None


def read_stage_times(path: Path) -> list[StageTime]:
    """All rows of one table; raises InputFileError when it is missing, empty or not such a table."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"benchmark table {path} cannot be read: {error}") from None
    rows = parse_stage_times(text, stage=name_stage(path))
    if not rows:
        raise InputFileError(f"benchmark table {path} has no row with a number of seconds in column 's'")
    return rows


def parse_stage_times(text: str, *, stage: str) -> list[StageTime]:
    """Rows of a table that have a wall time."""
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return [_parse_row(row, wall_s, stage) for row in rows if (wall_s := _number(row.get("s"))) is not None]


def name_stage(path: Path) -> str:
    """`benchmarks/quickstart/sweep.tsv` is `quickstart/sweep`."""
    parts = path.with_suffix("").parts
    start = len(parts) - 1 - parts[::-1].index("benchmarks") if "benchmarks" in parts else max(-1, len(parts) - 3)
    return "/".join(parts[start + 1 :])


def _parse_row(row: dict[str, str], wall_s: float, stage: str) -> StageTime:
    # A rule that ended before Snakemake's first sample has zeros everywhere, which are not measurements.
    sampled = bool(_number(row.get("max_rss")))
    return StageTime(
        stage=stage,
        wall_s=wall_s,
        cpu_s=_number(row.get("cpu_time")) if sampled else None,
        max_rss_mib=_number(row.get("max_rss")) if sampled else None,
        mean_load_percent=_number(row.get("mean_load")) if sampled else None,
        read_mib=_number(row.get("io_in")) if sampled else None,
        written_mib=_number(row.get("io_out")) if sampled else None,
    )


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None  # Snakemake writes "-" or "NA" where it could not measure
