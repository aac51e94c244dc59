"""Reads what an attempt left behind: the errors its ranks wrote, the tails of its logs."""

import json
import re
from pathlib import Path

from windtunnel.attempt.plan import LaunchPlan
from windtunnel.attempt.verdict import RankError
from windtunnel.ledger.tail import read_last_line

_ERROR = re.compile(r"error-rank-(\d+)\.json")
_TAIL_BYTES = 8192
_TEXT_CHARS = 600


def read_rank_errors(attempt_dir: Path) -> tuple[RankError, ...]:
    """Errors that ranks wrote; a damaged file still tells that its rank failed."""
    errors = []
    for path in sorted(attempt_dir.glob("error-rank-*.json")):
        match = _ERROR.fullmatch(path.name)
        if match is not None:
            errors.append(_read_error(path, int(match[1])))
    return tuple(errors)


def read_log_tails(attempt_dir: Path, ranks: int) -> dict[int, str]:
    """The last line of each rank's log that has one."""
    tails = {rank: read_last_line(attempt_dir / f"rank-{rank}.log") for rank in range(ranks)}
    return {rank: line for rank, line in tails.items() if line}


def read_launcher_log(plan: LaunchPlan) -> str:
    """srun's own words; empty without srun, since those of another launcher stand among the program's."""
    if plan.launcher != "srun":
        return ""
    try:
        return plan.processes[0].log.read_text(errors="replace")[-_TAIL_BYTES:]
    except FileNotFoundError:
        return ""


def _read_error(path: Path, rank: int) -> RankError:
    at = path.stat().st_mtime
    try:
        document = json.loads(path.read_text())
        text = str(document.get("last_line") or f"{document['type']}: {document['message']}")
        return RankError(rank, str(document["type"]), text.strip()[:_TEXT_CHARS], at, bool(document.get("secondary")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return RankError(rank, "UnknownError", f"{path.name} is damaged", at)
