"""Small trials killed at random moments and resumed: their last state and losses against the run without faults."""

import hashlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import ROOT, PartResult, make_share_row
from windtunnel.artifacts import read_artifact
from windtunnel.checkpoints.dcp import load_tensors, unpack_json
from windtunnel.checkpoints.manifest import read_index
from windtunnel.records.trial import TrialOutcome

sys.path.insert(0, str(ROOT / "tests"))  # the tests' small trial, which is no part of the package either
from toy_trial import run_ranks, start_ranks, trial_settings, write_features, write_trial

STEPS = 120
SAVE_EVERY = 7
EPOCH_STEPS = 22
"""Steps of an epoch of the small trial."""
MID_EPOCH, EPOCH_END, IN_SAVE, STARTING = (
    "mid-epoch",
    "end of an epoch",
    "within a save",
    "while starting or resuming",
)
_KINDS = (MID_EPOCH, EPOCH_END, IN_SAVE, STARTING)
_WORLDS = (1, 2, 4)
_MOST_KILLS = 3
_TIMEOUT_S = 120.0
_POLL_S = 0.0005


@dataclass(frozen=True)
class Killed:
    """One kill: what was waited for, of how many ranks, and how many kills the trial had had before."""

    kind: str
    ranks: int
    before: int
    in_save: bool
    """Whether it left an unfinished checkpoint."""


def run_kills(quick: bool) -> PartResult:
    """Each run kills other trials: 24 kills in full, over trials of one, two and four ranks in turn."""
    wanted, worlds = (1, (1,)) if quick else (24, _WORLDS)
    found: list[tuple[Killed, bool]] = []
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        bed = Bed(Path(folder))
        number = 0
        while len(found) < wanted:
            kills, same = bed.try_trial(worlds[number % len(worlds)], min(_MOST_KILLS, wanted - len(found)))
            found += [(killed, same) for killed in kills]
            number += 1
    return _make_result(found)


class Bed:
    """Trials of one set of features; the whole run of each number of ranks is made when it is first needed."""

    def __init__(self, root: Path, *, seed: int | None = None) -> None:
        self._root = root
        self._features = write_features(root / "features")
        self._random = random.Random(seed)
        self._whole: dict[int, dict[str, str]] = {}
        self._count = 0

    def try_trial(self, ranks: int, most_kills: int) -> tuple[list[Killed], bool]:
        """The kills that one trial had, and whether it ended as the one without."""
        wanted = self._find_whole(ranks)
        trial_dir = self._write_trial(ranks)
        kills = []
        for attempt in range(1, self._random.randint(1, most_kills) + 1):
            killed = self._kill_attempt(trial_dir, ranks, attempt)
            if killed is not None:
                kills.append(killed)
        codes = run_ranks(trial_dir, ranks=ranks, attempt=_MOST_KILLS + 1)
        if codes != [0] * ranks:
            print(f"faults: the attempt after {kills} ended with {codes}: {read_log(trial_dir, ranks)}", flush=True)
            return kills, False
        found = digest_trial(trial_dir)
        differ = sorted(name for name in {**wanted, **found} if wanted.get(name) != found.get(name))
        if differ:
            print(f"faults: after {kills} there differ {', '.join(differ)}", flush=True)
        return kills, not differ

    def _find_whole(self, ranks: int) -> dict[str, str]:
        if ranks not in self._whole:
            trial_dir = self._write_trial(ranks)
            assert run_ranks(trial_dir, ranks=ranks) == [0] * ranks, f"the run without faults failed: {trial_dir}"
            self._whole[ranks] = digest_trial(trial_dir)
        return self._whole[ranks]

    def _write_trial(self, ranks: int) -> Path:
        self._count += 1
        trial_dir = self._root / f"t{self._count}"
        settings = trial_settings(ranks=ranks, steps=STEPS, checkpoint_every=SAVE_EVERY, log_every=1)
        write_trial(trial_dir, self._features, settings)
        return trial_dir

    def _kill_attempt(self, trial_dir: Path, ranks: int, attempt: int) -> Killed | None:
        """Start an attempt and kill it at a random moment; None when it had ended before that."""
        kind = self._random.choice(_KINDS)
        is_due = self._choose_moment(kind, trial_dir)
        children = start_ranks(trial_dir, ranks=ranks, attempt=attempt)
        hit = _wait_for(is_due, children)
        self._kill(children)
        in_save = any(True for _ in _list_unfinished(trial_dir))
        return Killed(kind, ranks, attempt - 1, in_save) if hit else None

    def _choose_moment(self, kind: str, trial_dir: Path) -> Callable[[], bool]:
        done = count_lines(trial_dir)
        if kind == STARTING:
            at = time.monotonic() + self._random.uniform(0.0, 1.5)
            return lambda: time.monotonic() >= at
        line = self._random.randint(min(done + 1, STEPS - 1), STEPS - 1)
        if kind == IN_SAVE:
            return lambda: count_lines(trial_dir) >= line and any(True for _ in _list_unfinished(trial_dir))
        if kind == EPOCH_END:
            line = min(-(-line // EPOCH_STEPS) * EPOCH_STEPS, STEPS - 1)
        return lambda: count_lines(trial_dir) >= line

    def _kill(self, children: Sequence[BaseProcess]) -> None:
        """All ranks at once, or one of them and the others a moment later, as a supervisor does."""
        order = self._random.sample(list(children), len(children))
        order[0].kill()
        if self._random.random() < 0.5:
            order[0].join(self._random.uniform(0.0, 0.2))
            for child in order[1:]:
                child.join(self._random.uniform(0.0, 0.05))
        for child in order:
            child.kill()
            child.join()


def digest_trial(trial_dir: Path, *, steps: int = STEPS, log_every: int = 1) -> dict[str, str]:
    """SHA-256 of each tensor of the last checkpoint, of what ranks hold besides and of all losses; of no times."""
    outcome = read_artifact(trial_dir / "DONE.json", TrialOutcome)
    losses = read_losses(trial_dir, steps=steps, log_every=log_every)
    parts: dict[str, bytes] = {"losses": json.dumps(losses).encode()}
    parts["evaluations"] = repr((outcome.steps, outcome.evaluations)).encode()
    for name, tensor in read_tensors(trial_dir / outcome.checkpoint).items():
        if name.endswith(".host"):
            parts |= {f"{name}: {key}": json.dumps(value).encode() for key, value in _read_host(tensor).items()}
        else:
            parts[name] = f"{tensor.dtype} {tuple(tensor.shape)} ".encode() + _read_bytes(tensor)
    return {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()}


def read_tensors(checkpoint: Path) -> dict[str, torch.Tensor]:
    """All that it holds."""
    held = read_index(checkpoint).tensors
    tensors = {name: torch.empty(found.shape, dtype=getattr(torch, found.dtype)) for name, found in held.items()}
    load_tensors(checkpoint, tensors)
    return tensors


def read_losses(trial_dir: Path, *, steps: int = STEPS, log_every: int = 1) -> list[tuple[int, float, float]]:
    """Step, loss and learning rate of every line, of which each step that is due has one."""
    lines = [json.loads(line) for line in (trial_dir / "metrics.jsonl").read_text().splitlines()]
    due = list(range(log_every, steps + 1, log_every))
    assert [line["step"] for line in lines] == due, f"{trial_dir} has lines twice, or too few"
    return [(line["step"], line["loss"], line["learning_rate"]) for line in lines]


def read_log(trial_dir: Path, ranks: int) -> str:
    """The end of what the ranks of the last attempt printed."""
    logs = [trial_dir / "attempts" / str(_MOST_KILLS + 1) / f"rank-{rank}.log" for rank in range(ranks)]
    return "".join(log.read_text()[-2000:] for log in logs)


def count_lines(trial_dir: Path) -> int:
    """Steps that metrics.jsonl tells of so far."""
    try:
        return (trial_dir / "metrics.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _read_host(tensor: torch.Tensor) -> dict[str, Any]:
    host: dict[str, Any] = unpack_json(tensor)
    # Times, and notes of ranks that were slow by the clock, are of the machine and not of the run.
    meters = {key: value for key, value in host["meters"].items() if not key.endswith("times_s")}
    notes = [note for note in host["notes"] if not note.startswith("straggler")]
    return {**host, "meters": meters, "notes": notes}


def _read_bytes(tensor: torch.Tensor) -> bytes:
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


def _list_unfinished(trial_dir: Path) -> Iterator[Path]:
    return (trial_dir / "checkpoints").glob(".tmp-*")


def _wait_for(is_due: Callable[[], bool], children: Sequence[BaseProcess]) -> bool:
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline and all(child.is_alive() for child in children):
        if is_due():
            return True
        time.sleep(_POLL_S)
    return False


def _make_result(found: Sequence[tuple[Killed, bool]]) -> PartResult:
    sorts: dict[str, list[bool]] = {}
    for killed, same in found:
        labels = (f"{killed.ranks} ranks", killed.kind, f"after {killed.before} kills before it")
        for label in (*labels, *(["an unfinished checkpoint left"] if killed.in_save else [])):
            sorts.setdefault(label, []).append(same)
    rows = tuple(make_share_row(f"bit-exact: {label}", each) for label, each in sorts.items())
    fraction = sum(same for _, same in found) / len(found)
    return PartResult({"bit_exact_fraction": fraction}, {"bit_exact_fraction": len(found)}, rows)
