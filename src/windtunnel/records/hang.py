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


def name_hang_report(rank: int) -> str:
    """File in the attempt's folder."""
    return f"hang-rank-{rank}.json"


def name_stacks(rank: int) -> str:
    """File in the attempt's folder with the stacks of a rank's threads."""
    return f"stacks-rank-{rank}.txt"
