"""The ground of the soak: trials of one study, each on a small disk of its own, and a driver that is always there."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults_soak_model import PACE
from benchmarks.harness import ROOT
from benchmarks.sweep_bed import PARTITION, Bed
from windtunnel.artifacts import write_artifact
from windtunnel.errors import CommandError
from windtunnel.identity import read_identity
from windtunnel.ledger.facts import read_end
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers, trial_folder
from windtunnel.ledger.log import LEDGER
from windtunnel.ledger.tail import read_last_line
from windtunnel.process import run_command
from windtunnel.records.plan import Plan, PlannedTrial, Shape
from windtunnel.records.trial import Verdict
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.study import SweepStageSettings, TrialSettings
from windtunnel.settings.sweep import RetrySettings, SweepSettings

sys.path.insert(0, str(ROOT / "tests"))  # the tests' small trial, which is no part of the package either
from toy_trial import trial_settings, write_features, write_trial

LOG_EVERY = 5
STUDY = "soak"
_DISK = "16m"
MODEL = {"name": "paced", "_target_": "benchmarks.faults_soak_model.Paced", "args": {}}
SLURM = ClusterSettings(kind="slurm", partition=PARTITION, network_interface="eth0")
_ENOUGH = 10_000
_SWEEP = SweepSettings(
    strict=True,
    retries=RetrySettings(node_fail=_ENOUGH, lost=_ENOUGH, preempted=_ENOUGH, timeout=_ENOUGH),
    marker_poll_s=0.5,
    poll_s=2.0,
    settle_s=3.0,
    lost_after_s=60.0,
)
_CLI = (sys.executable, "-m", "windtunnel.cli.main")
_CLOSED_FOR_S = 5.0
"""A driver that tries a trial again does so at once after its verdict."""
_AGAIN_S = 8.0
"""Between two starts: a disk may be full for longer."""
_SHORT_S, _MOST_SHORT = 20.0, 12


@dataclass(frozen=True)
class Size:
    """Trials by their number of ranks, their length in steps, and how fast they are."""

    ranks: tuple[int, ...]
    steps: int
    every: int
    """Steps between checkpoints."""
    pace_s: float


@dataclass(frozen=True)
class Soaked:
    """A trial, and where it lies."""

    folder: TrialFolder
    ranks: int
    steps: int

    @property
    def done(self) -> bool:
        return self.folder.done.exists()


def make_settings(size: Size, ranks: int) -> TrialSettings:
    """The same for all trials of so many ranks."""
    settings = trial_settings(
        ranks=ranks, model=MODEL, steps=size.steps, checkpoint_every=size.every, log_every=LOG_EVERY
    )
    return settings.model_copy(update={"cluster": SLURM})


def write_reference(root: Path, size: Size, ranks: int) -> Path:
    """The folder of a trial that is to run here, without faults."""
    folder = root / f"reference-{ranks}"
    settings = make_settings(size, ranks)
    alone = ClusterSettings(kind="local", partition="local")
    write_trial(folder, root / "MANIFEST.json", settings.model_copy(update={"cluster": alone}))
    return folder


def write_soaked(root: Path, size: Size) -> list[Soaked]:
    """The study as the stages before the sweep leave it, with one rank a node."""
    write_features(root)
    trials = [_make_trial(size, ranks, number) for number, ranks in enumerate(size.ranks)]
    write_artifact(root / STUDY / "plan.json", Plan(STUDY, read_identity(root / "MANIFEST.json"), tuple(trials), ()))
    settings = SweepStageSettings(study=STUDY, cluster=SLURM, sweep=_SWEEP)
    (root / STUDY / "sweep.yaml").write_text(settings.model_dump_json())
    return [Soaked(trial_folder(root, trial.id), trial.shape.ranks, size.steps) for trial in trials]


def _make_trial(size: Size, ranks: int, number: int) -> PlannedTrial:
    plain = make_settings(size, ranks).model_dump(mode="json", by_alias=True)
    shape = Shape(ranks, 1, 1, 0, 1024, 120, PARTITION)
    return PlannedTrial(f"{number:016x}", f"soak-{number}", {}, plain, "", shape)


@contextmanager
def small_disks(trials: Sequence[Soaked]) -> Iterator[bool]:
    """Let each trial's folder be a file system of its own, where this process may mount one; whether it may."""
    with ExitStack() as stack:
        for trial in trials:
            trial.folder.path.mkdir(parents=True, exist_ok=True)
            path = str(trial.folder.path)
            try:
                run_command(["mount", "-t", "tmpfs", "-o", f"size={_DISK},mode=0755", "wt-soak", path])
            except CommandError:
                yield False
                return
            stack.callback(run_command, ["umount", path])
        yield True


class Driver:
    """`windtunnel sweep` of the study on the login host: the same command again whenever it ended too soon."""

    def __init__(self, bed: Bed, root: Path, trials: Sequence[Soaked], *, pace_s: float) -> None:
        self._bed = bed
        self._root = root
        self._trials = trials
        self._env = {**os.environ, **bed.env({PACE: str(pace_s)})}
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._short = 0
        self.breaks = 0
        """Trials that were FAILED, and tried again by `windtunnel retry`."""

    def start(self) -> None:
        """Start it; what it says is kept beside the study."""
        study, root = self._root / STUDY, self._root
        files = ["--settings", f"{study}/sweep.yaml", "--plan", f"{study}/plan.json", "--out", f"{study}/sweep.json"]
        words = [*_CLI, "sweep", *files, "--features", f"{root}/MANIFEST.json", "--store", str(root)]
        with (root / "driver.txt").open("a") as said:
            self._process = subprocess.Popen(
                self._bed.argv(words), stdout=said, stderr=subprocess.STDOUT, env=self._env, start_new_session=True
            )
        self._started = time.monotonic()

    def kill(self) -> None:
        """SIGKILL, without a successor."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def tend(self) -> bool:
        """Start it again where that is due; False once it has ended and all is done."""
        assert self._process is not None
        code, now = self._process.poll(), time.monotonic()
        if code == 0:
            return False
        # One that has just begun has not had its say on trials that an earlier one left.
        if code is None and (now - self._started < _CLOSED_FOR_S or not any(map(self._is_closed, self._trials))):
            return True
        if code is not None and now - self._started < _AGAIN_S:
            return True
        short = now - self._started < _SHORT_S
        self._short = self._short + 1 if short else 0
        assert self._short <= _MOST_SHORT, f"the driver ends again and again: {self.read_words()}"
        self.kill()
        self._retry_failed()
        self.start()
        return True

    def read_words(self) -> str:
        """The end of what it said."""
        return (self._root / "driver.txt").read_text(errors="replace")[-3000:]

    def _retry_failed(self) -> None:
        for trial in self._trials:
            numbers = read_attempt_numbers(trial.folder) if trial.folder.attempts.is_dir() else []
            end = read_end(trial.folder.end(numbers[-1])) if numbers and not trial.done else None
            if end is not None and end.verdict is Verdict.FAILED:
                self.breaks += 1
                print(f"faults: {trial.folder.path.name} FAILED, and is tried again: {end.evidence}", flush=True)
                self._bed.run([*_CLI, "retry", str(self._root / STUDY), trial.folder.path.name], check=False)

    def _is_closed(self, trial: Soaked) -> bool:
        """Whether the driver has closed a trial that is not done: it goes on with the next command alone."""
        if trial.done:
            return False
        kind, at = read_last_kind(trial.folder)
        return kind == "verdict" and time.time() - at > _CLOSED_FOR_S


def read_last_kind(folder: TrialFolder) -> tuple[str, float]:
    """The last event's kind and time; empty without one, or where its line is torn."""
    try:
        told = json.loads(read_last_line(folder.path / LEDGER))
        return str(told["kind"]), float(told["at"])
    except (ValueError, KeyError, TypeError):
        return "", 0.0
