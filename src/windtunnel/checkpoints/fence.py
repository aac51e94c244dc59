"""A fence: of a trial's writers only the one that holds the trial's lease publishes or removes anything.

Each lease has a generation, a number that only grows. A writer asks whether its own is still the newest after its
files are written and before they get their names; whoever succeeds it takes the lease first, and then moves away
every temporary folder that it finds. So whatever stops a writer between the question and the renaming, and for
however long, the renaming comes before its successor looks, or it finds nothing to rename. Of what retention lets go
of, a writer that is stopped just then may still remove one checkpoint, older than one that it had verified.
"""

from dataclasses import dataclass
from pathlib import Path

from windtunnel.errors import FencedError
from windtunnel.ledger.lease import is_newest_generation


@dataclass(frozen=True)
class Fence:
    """What a writer was started under; without a lease, as where nobody supervises, it is always in order."""

    lease: Path | None = None
    generation: int = 0

    def check(self) -> None:
        """Raise FencedError when another attempt has the trial now."""
        if self.lease is not None and not is_newest_generation(self.lease, self.generation):
            raise FencedError(
                f"{self.lease.parent}: generation {self.generation} of this trial was succeeded by another attempt: "
                "this one publishes nothing more and ends"
            )
