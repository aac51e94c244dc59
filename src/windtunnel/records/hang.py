"""What ranks of a trial leave in its attempt's folder when none of them gets further."""

from dataclasses import dataclass

HUNG_CODE = 77
"""Exit code of a rank that gave up waiting."""
PHASES = ("data", "forward", "backward", "agree")
"""Parts of a step, in order. Ranks that wait for another stand in `backward`, where gradients are summed, or in
`agree`, where losses are."""


@dataclass(frozen=True)
class HangReport:
    """`hang-rank-R.json`: where one rank stood."""

    rank: int
    host: str
    step: int
    """Counted from 1."""
    phase: str
    silent_s: float
    """Seconds since it got there."""
    limit_s: float
    """Seconds that it might have taken."""


_REPORT, _STACKS = "hang-rank-", "stacks-rank-"


def name_hang_report(rank: int) -> str:
    """File in the attempt's folder."""
    return f"{_REPORT}{rank}.json"


def name_stacks(rank: int) -> str:
    """File in the attempt's folder with the stacks of a rank's threads."""
    return f"{_STACKS}{rank}.txt"


def is_hang_report(name: str) -> bool:
    """Whether a file of that name is any rank's report."""
    return name.startswith(_REPORT)


def is_stacks(name: str) -> bool:
    """Whether a file of that name holds any rank's stacks."""
    return name.startswith(_STACKS)
