"""What the doctor says: one finding a subject, with what will not work and what to set."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

SCHEMA = "windtunnel.doctor/1"


class Level(StrEnum):
    """OK: nothing to do. WARN: something works less well. FAIL: something will not work."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's."""

    area: str
    """`cluster`, `partition`, `machine`, `folder` or `nodes`."""
    subject: str
    found: str
    """What was found."""
    level: Level = Level.OK
    effect: str = ""
    """What will not work, or works less well; empty with OK."""
    remedy: str = ""
    """What to set, or to ask of the site."""


def warn(area: str, subject: str, found: str, effect: str, remedy: str) -> Finding:
    """A finding that something works less well."""
    return Finding(area, subject, found, Level.WARN, effect, remedy)


def fail(area: str, subject: str, found: str, effect: str, remedy: str) -> Finding:
    """A finding that something will not work."""
    return Finding(area, subject, found, Level.FAIL, effect, remedy)


def find_worst(findings: Sequence[Finding]) -> Level:
    """The gravest level; OK without findings."""
    order = list(Level)
    return max((finding.level for finding in findings), key=order.index, default=Level.OK)


def render_text(findings: Sequence[Finding]) -> str:
    """The findings for people, by area; what is wrong has its effect and its remedy below it."""
    width = max((len(finding.subject) for finding in findings), default=0)
    lines: list[str] = []
    area = ""
    for finding in findings:
        if finding.area != area:
            area = finding.area
            lines += ["", area] if lines else [area]
        lines.append(f"  {finding.level:<4}  {finding.subject:<{width}}  {finding.found}")
        lines += [f"        {text}" for text in (finding.effect, finding.remedy) if text]
    counts = [f"{sum(finding.level == level for finding in findings)} {level}" for level in Level]
    return "\n".join([*lines, "", ", ".join(counts)])


def render_plain(findings: Sequence[Finding]) -> dict[str, Any]:
    """The findings for programs, as JSON's own types."""
    return {
        "schema": SCHEMA,
        "worst": str(find_worst(findings)),
        "findings": [{**asdict(finding), "level": str(finding.level)} for finding in findings],
    }
