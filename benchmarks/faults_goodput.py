"""Where the time of small trials goes that are killed, signalled and stopped at random: buckets against the clock.

The trial's time is taken here, before it is submitted, and in its last supervisor, after it returned. What lies in
`unknown` does not count as accounted for.
"""

import importlib.metadata
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.harness import ROOT, PartResult, Row, make_row
from windtunnel.artifacts import write_artifact
from windtunnel.identity import hash_sources
from windtunnel.ledger.facts import read_facts
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers
from windtunnel.ledger.log import append_event
from windtunnel.ledger.traces import read_goodput
from windtunnel.records.goodput import Bucket, Goodput
from windtunnel.records.plan import Identity
from windtunnel.statistics import median_interval

sys.path.insert(0, str(ROOT / "tests"))  # the tests' small trial, which is no part of the package either
from toy_trial import trial_settings, write_features, write_trial

STEPS = 1200
LOG_EVERY = 10
SAVE_EVERY = 100
KILL_RANK, KILL_ALL, SIGNAL, HANG = "a rank killed", "its supervisor killed", "a signal", "a rank stopped"
_HISTORIES = ((1, (KILL_RANK, SIGNAL)), (2, (HANG,)), (1, (KILL_ALL, SIGNAL, KILL_RANK)), (2, (KILL_ALL, KILL_RANK)))
"""Ranks, and faults in turn."""
_TIMEOUT_S = 180.0
_POLL_S = 0.002
_SUPERVISE = """
import sys, time
from pathlib import Path
from windtunnel.attempt.run import run_attempt
verdict = run_attempt(Path(sys.argv[1])).verdict
print(verdict, time.monotonic())
"""


@dataclass(frozen=True)
class History:
    """A trial that was brought to its end through faults."""

    goodput: Goodput
    wall_s: float
    """From before its submission to after its end, by this machine's monotonic clock."""
    step_rate: float
    """Steps a second by the median step time of metrics.jsonl."""

    @property
    def sum_error(self) -> float:
        """Share of the trial's time that is missing from the buckets, or too much in them."""
        known_s = math.fsum(self.goodput.seconds.values()) - self.goodput.seconds[Bucket.UNKNOWN]
        return abs(known_s - self.wall_s) / self.wall_s


def run_goodput(quick: bool) -> PartResult:
    """One short history to be quick, four in full; faults come at random moments."""
    plans = [(1, (KILL_RANK,))] if quick else list(_HISTORIES)
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        bed = Bed(Path(folder), steps=600 if quick else STEPS, draw=random.Random())
        histories = [bed.try_trial(ranks, faults) for ranks, faults in plans]
    return _make_result(histories)


class Bed:
    """Trials of one set of features, each under supervisors of its own."""

    def __init__(self, root: Path, *, steps: int, draw: random.Random) -> None:
        self._root = root
        self._steps = steps
        self._draw = draw
        self._features = write_features(root / "features")
        self._count = 0

    def try_trial(self, ranks: int, faults: Sequence[str]) -> History:
        """Run a trial to its end through these faults, and account for its time."""
        folder = self._write_trial(ranks)
        began = time.monotonic()
        append_event(folder.path, "submitted", attempt=0)
        supervisor = _supervise(folder)
        for fault in faults:
            supervisor = self._inflict(fault, folder, supervisor)
        verdict, ended = _read_last_words(supervisor)
        assert verdict == "COMPLETED", f"the trial ended {verdict} after {faults}: {_read_events(folder)}"
        goodput = read_goodput(folder, read_facts(folder, steps=self._steps), now=time.time())
        assert goodput.new_steps == self._steps, f"{goodput.new_steps} of {self._steps} steps are accounted for"
        return History(goodput, ended - began, _read_step_rate(folder))

    def _write_trial(self, ranks: int) -> TrialFolder:
        self._count += 1
        folder = TrialFolder(self._root / f"t{self._count}")
        settings = trial_settings(ranks=ranks, steps=self._steps, checkpoint_every=SAVE_EVERY, log_every=LOG_EVERY)
        config = write_trial(folder.path, self._features, settings)
        identity = Identity("data", hash_sources(), importlib.metadata.version("torch"))
        write_artifact(folder.config, replace(config, identity=identity, lost_retries=9))
        return folder

    def _inflict(self, fault: str, folder: TrialFolder, supervisor: subprocess.Popen[str]) -> subprocess.Popen[str]:
        """Let a fault come at a random line; what supervises the trial after it."""
        step = self._read_step(folder)
        step += int(self._draw.uniform(0.1, 0.6) * (self._steps - step))
        self._wait_for(lambda: self._read_step(folder) >= step, folder, supervisor)
        attempt = max(read_attempt_numbers(folder))
        ranks = _read_children(supervisor.pid)
        if fault in (KILL_RANK, HANG):
            chosen = self._draw.choice(ranks)
            os.kill(chosen, signal.SIGKILL if fault == KILL_RANK else signal.SIGSTOP)
            self._wait_for(lambda: max(read_attempt_numbers(folder)) > attempt, folder, supervisor)
            return supervisor
        supervisor.send_signal(signal.SIGKILL if fault == KILL_ALL else signal.SIGTERM)
        supervisor.communicate(timeout=_TIMEOUT_S)
        if fault == KILL_ALL:  # as a driver does that finds it lost
            life_at = read_facts(folder, steps=self._steps).life_at
            append_event(folder.path, "verdict", attempt=attempt, verdict="LOST", life_at=life_at)
        append_event(folder.path, "submitted", attempt=0)
        return _supervise(folder)

    @staticmethod
    def _wait_for(is_due: Callable[[], bool], folder: TrialFolder, supervisor: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while not is_due():
            assert time.monotonic() < deadline, f"what was waited for did not come: {_read_events(folder)}"
            assert supervisor.poll() is None, f"the supervisor ended too soon: {_read_events(folder)}"
            time.sleep(_POLL_S)

    def _read_step(self, folder: TrialFolder) -> int:
        try:
            return folder.metrics.read_bytes().count(b"\n") * LOG_EVERY
        except FileNotFoundError:
            return 0


def _supervise(folder: TrialFolder) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _SUPERVISE, str(folder.path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _read_last_words(supervisor: subprocess.Popen[str]) -> tuple[str, float]:
    said, _ = supervisor.communicate(timeout=_TIMEOUT_S)
    verdict, moment = said.splitlines()[-1].split()
    return verdict, float(moment)


def _read_children(pid: int) -> list[int]:
    return [int(word) for path in Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]


def _read_events(folder: TrialFolder) -> str:
    return (folder.path / "ledger.jsonl").read_text()


def _read_step_rate(folder: TrialFolder) -> float:
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    return 1.0 / statistics.fmean(line["step_s"] for line in lines)


def _make_result(histories: Sequence[History]) -> PartResult:
    shares = {
        bucket: [history.goodput.seconds[bucket] / history.goodput.wall_s for history in histories]
        for bucket in Bucket
    }
    rows: list[Row] = [make_row(f"share of {bucket}", median_interval(found), "") for bucket, found in shares.items()]
    speeds = [history.goodput.steps_per_s / history.step_rate for history in histories]
    rows.append(make_row("new steps a productive second / 1 over step times", median_interval(speeds), ""))
    walls = [history.wall_s for history in histories]
    rows.append(make_row("wall time of a trial", median_interval(walls), "s"))
    error = max(history.sum_error for history in histories)
    return PartResult({"goodput_sum_error": error}, {"goodput_sum_error": len(histories)}, tuple(rows))
