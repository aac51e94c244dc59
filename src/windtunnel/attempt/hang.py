"""Names the rank that a hung attempt hung for, from what all of them left behind. Pure but for the reading."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel.records.hang import PHASES, HangReport, name_hang_report, name_stacks


@dataclass(frozen=True)
class Hang:
    """What is known of it."""

    reports: tuple[HangReport, ...]
    mute: tuple[int, ...]
    """Ranks that wrote no report: stopped, or stuck where no Python runs."""


def read_hang(attempt_dir: Path, *, ranks: int) -> Hang | None:
    """What the ranks left; None when none of them hung."""
    reports = [found for rank in range(ranks) if (found := _read_report(attempt_dir / name_hang_report(rank)))]
    if not reports and not any(_has_stacks(attempt_dir / name_stacks(rank)) for rank in range(ranks)):
        return None
    told = {report.rank for report in reports}
    return Hang(tuple(reports), tuple(rank for rank in range(ranks) if rank not in told))


def describe_hang(hang: Hang) -> str:
    """One sentence: how long, and which rank is the suspect."""
    if not hang.reports:
        return f"hang: rank {_list(hang.mute)} was stuck where no Python runs; its stack is beside its log"
    longest = max(hang.reports, key=lambda report: report.silent_s)
    told = f"hang: no step for {longest.silent_s:.1f} s, where {longest.limit_s:.1f} s are the most"
    return f"{told}; {_name_suspect(hang)}; stacks of all ranks are beside their logs"


def find_suspects(reports: Sequence[HangReport]) -> list[HangReport]:
    """Those that stand behind the others; all of them when none does."""
    behind = min(_place(report) for report in reports)
    return [report for report in reports if _place(report) == behind]


def _name_suspect(hang: Hang) -> str:
    if hang.mute:
        return f"suspect: rank {_list(hang.mute)}, which did not even say where it stands"
    suspects = find_suspects(hang.reports)
    first = suspects[0]
    where = f"in {first.phase} of step {first.step}"
    if len(suspects) == len(hang.reports) > 1:
        return f"no rank stands behind the others: all are {where}"
    return "suspect: " + ", ".join(f"rank {report.rank} on {report.host}" for report in suspects) + f", {where}"


def _place(report: HangReport) -> tuple[int, int]:
    return report.step, PHASES.index(report.phase) if report.phase in PHASES else 0


def _read_report(path: Path) -> HangReport | None:
    try:
        return HangReport(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _has_stacks(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _list(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
