"""What passes between the matrix and the programs that train: an order, and a journal of what was done."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

RESUMED, STEP, SAVED, DONE = "resumed", "step", "saved", "done"


@dataclass(frozen=True)
class Order:
    """One attempt at a training of `steps` steps in a folder, which goes on from what it finds there."""

    folder: str
    attempt: int = 1
    steps: int = 30
    save_every: int = 5
    dropout: float = 0.0
    ranks: int = 1
    same_folder: bool = False
    """Whether each save goes over the one before, where a side leaves that to its user."""
    timeout_min: int = 60
    """Of the job, where a side asks."""
    generation: int = 0
    """Of the lease, where a side has one."""
    supervised: bool = False
    """Whether what starts the ranks is part of the attempt, where a side has such a thing."""

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints lie."""
        return Path(self.folder) / "checkpoints"


@dataclass(frozen=True)
class Event:
    """A line of the journal."""

    attempt: int
    kind: str
    step: int
    """Steps that are finished."""
    digest: str = ""
    """Of weights and optimizer."""
    rows: tuple[int, ...] = ()
    """Samples of the step."""
    finite: bool = True
    """Whether all weights are."""


class Journal:
    """Appends events; what was written before a kill stays."""

    def __init__(self, order: Order) -> None:
        self._attempt = order.attempt
        self._path = name_journal(Path(order.folder), int(os.environ.get("RANK", "0")))

    def add(self, kind: str, step: int, *, digest: str = "", rows: Sequence[int] = (), finite: bool = True) -> None:
        """One line by one write."""
        event = Event(self._attempt, kind, step, digest, tuple(rows), finite)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(event)) + "\n")


def name_journal(folder: Path, rank: int = 0) -> Path:
    """Beside the checkpoints."""
    return folder / f"journal-{rank}.jsonl"


def read_journal(folder: Path) -> list[Event]:
    """All events of rank 0 so far."""
    path = name_journal(folder)
    lines = path.read_text().splitlines() if path.exists() else []
    return [Event(**{**line, "rows": tuple(line["rows"])}) for line in map(json.loads, lines)]


def read_order() -> Order:
    """From the command line."""
    return Order(**json.loads(sys.argv[1]))
