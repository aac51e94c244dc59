"""Where things lie in a trial's folder, and the few facts that the names alone tell."""

import re
from dataclasses import dataclass
from pathlib import Path

SIGNALLED = "END.signalled.json"
_ATTEMPT = re.compile(r"[1-9]\d*")


@dataclass(frozen=True)
class TrialFolder:
    """`trials/<id>/`, by name; attempts count from 1."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def done(self) -> Path:
        return self.path / "DONE.json"

    @property
    def lease(self) -> Path:
        return self.path / ".lease"

    @property
    def attempts(self) -> Path:
        return self.path / "attempts"

    def attempt(self, number: int) -> Path:
        """Folder of an attempt: its logs, its errors and its END.json."""
        return self.attempts / str(number)

    def end(self, number: int) -> Path:
        """How the supervisor saw an attempt end."""
        return self.attempt(number) / "END.json"

    def signalled(self, number: int) -> Path:
        """What its supervisor knew of the end when it was told to stop; it stands in for END.json."""
        return self.attempt(number) / SIGNALLED

    def rank_log(self, number: int, rank: int) -> Path:
        """What a rank printed."""
        return self.attempt(number) / f"rank-{rank}.log"


def trial_folder(store: Path, trial_id: str) -> TrialFolder:
    """The folder of a trial in a store."""
    return TrialFolder(store / "trials" / trial_id)


def read_attempt_numbers(folder: TrialFolder) -> list[int]:
    """Numbers of the attempts that were begun, in order."""
    if not folder.attempts.is_dir():
        return []
    return sorted(int(entry.name) for entry in folder.attempts.iterdir() if _ATTEMPT.fullmatch(entry.name))


def write_next_attempt(folder: TrialFolder) -> int:
    """Make the next attempt's folder and return its number; two processes never get the same one."""
    folder.attempts.mkdir(parents=True, exist_ok=True)
    number = max(read_attempt_numbers(folder), default=0) + 1
    while True:
        try:
            folder.attempt(number).mkdir()
            return number
        except FileExistsError:
            number += 1
