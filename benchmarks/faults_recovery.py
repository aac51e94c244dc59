"""From a kill to the next new step: of a rank within its job, of a job that Slurm puts back into the queue, and of a
whole job behind which another one waits. No driver is there.

A small model trains for real on two nodes of a testbed, under a supervisor that Slurm started. A step is new when it
is beyond all that were made before the kill; what is lost and made again counts as recovery.
"""

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from benchmarks.harness import ROOT, PartResult, Row, make_row
from benchmarks.sweep_bed import PARTITION, Bed, open_bed, wait_for
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.checkpoints.manifest import list_checkpoints, step_of
from windtunnel.identity import read_identity
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers, trial_folder
from windtunnel.ledger.lease import read_live_holder
from windtunnel.ledger.log import append_event
from windtunnel.ledger.tail import read_last_line
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.slurm.cause import parse_job
from windtunnel.statistics import median_interval

sys.path.insert(0, str(ROOT / "tests"))  # the tests' small trial, which is no part of the package either
from toy_trial import trial_settings, write_features, write_trial

RANKS = 2
TRIAL_ID = "00000000000000aa"
_ENDLESS = 10_000_000
_SAVE_EVERY = 100
_TIMEOUT_S = 240.0
_POLL_S = 0.02


@dataclass(frozen=True)
class Place:
    """How far a trial is: the last line of its metrics."""

    attempt: int
    step: int


@dataclass(frozen=True)
class Recovery:
    """Seconds since the kill at which each thing was seen."""

    new_start_s: float
    """Slurm's own new start of the job; 0 where it went on."""
    begun_s: float
    """The next attempt has its folder."""
    met_s: float
    """Its ranks have loaded their libraries, and meet."""
    first_step_s: float
    new_step_s: float

    @property
    def extra_s(self) -> float:
        """Without what Slurm waited before it started the job again."""
        return self.new_step_s - self.new_start_s


def run_recovery(quick: bool) -> PartResult:
    """Kills of one rank in turn with a pause to train in, then requeues of the same job, then kills of whole jobs."""
    kills, requeues, successions = (1, 1, 1) if quick else (5, 3, 5)
    with open_bed("--cpus=4", quick=quick) as bed, tempfile.TemporaryDirectory(prefix="wt-") as folder:
        trial = write_endless_trial(Path(folder))
        job = submit(bed, trial)
        try:
            killed = [recover(trial, lambda: kill_rank(trial, RANKS - 1)) for _ in range(kills)]
            requeued = [recover_by_requeue(bed, trial, job, number) for number in range(1, requeues + 1)]
        finally:
            bed.run(["scancel", job])
            bed.wait_until_quiet()
        succeeded = succeed_in_turn(bed, write_endless_trial(Path(folder) / "successors"), successions)
    return make_result(killed, requeued, succeeded)


def write_endless_trial(root: Path) -> TrialFolder:
    """A trial of two ranks on two nodes, with a checkpoint each hundred steps of some milliseconds."""
    folder = trial_folder(root, TRIAL_ID)
    features = write_features(root / "features")
    cluster = ClusterSettings(kind="slurm", partition=PARTITION, network_interface="eth0")
    settings = trial_settings(ranks=RANKS, steps=_ENDLESS, checkpoint_every=_SAVE_EVERY, log_every=2)
    settings = settings.model_copy(update={"cluster": cluster})
    config = write_trial(folder.path, features, settings)
    shape = replace(config.trial.shape, nodes=RANKS, ranks_per_node=1, partition=PARTITION, time_min=60)
    trial = replace(config.trial, shape=shape)
    write_artifact(folder.config, replace(config, trial=trial, identity=read_identity(features), lost_retries=1000))
    assert read_artifact(folder.config, TrialConfig).trial.shape.ranks == RANKS
    return folder


def succeed_in_turn(bed: Bed, trial: TrialFolder, count: int) -> list[Recovery]:
    """Kills of a whole job behind which another waits, and of that one in turn; the ledger as a driver leaves it."""
    name = "recovery-by-successor"
    append_event(trial.path, "submitting", attempt=0, submission=name, index=0, alone=True)
    jobs = [submit(bed, trial, f"--job-name={name}", "--no-requeue")]
    append_event(trial.path, "submitted", attempt=0, job_id=jobs[0], submission=name)
    found = []
    try:
        for _ in range(count):
            append_event(trial.path, "queueing", attempt=0, submission=name, retries={"lost": count})
            options = (f"--job-name={name}", "--no-requeue", "--dependency=singleton")
            jobs.append(submit(bed, trial, *options, succeeds=True))
            append_event(trial.path, "queued", attempt=0, job_id=jobs[-1], behind=jobs[-2])
            found.append(recover(trial, lambda: kill_job(trial)))
    finally:
        bed.run(["scancel", *reversed(jobs)], check=False)
        bed.wait_until_quiet()
    return found


def submit(bed: Bed, trial: TrialFolder, *more: str, succeeds: bool = False) -> str:
    """A job that is the trial's supervisor, by itself or behind an earlier one."""
    options = [f"--nodes={RANKS}", "--ntasks-per-node=1", "--mem=1024M", "--time=60", f"--partition={PARTITION}"]
    files = [f"--output={trial.path}/job.txt", "--open-mode=append"]
    option = "--succeeds " if succeeds else ""
    command = f"exec {sys.executable} -m windtunnel.cli.main trial {option}{trial.path}"
    own = more or ("--requeue",)
    return bed.run(["sbatch", "--parsable", *options, *files, *own, f"--wrap={command}"], cwd=ROOT).stdout.strip()


def recover(trial: TrialFolder, kill: Callable[[], None], find_start: Callable[[], float] = lambda: 0.0) -> Recovery:
    """Wait until the trial trains and has a new checkpoint, kill, and see it go on."""
    begun = read_place(trial, at_least=1)
    wait_for(lambda: find_saved(trial) > begun.step, _TIMEOUT_S, f"a checkpoint after step {begun.step}")
    kill()
    killed_at = time.time()
    before = read_place(trial, at_least=1)
    attempt = read_attempt_numbers(trial)[-1] + 1
    start_s = find_start()
    begun_s = see(lambda: trial.attempt(attempt).exists(), killed_at)
    met_s = see(lambda: (trial.attempt(attempt) / "rendezvous.json").exists(), killed_at)
    first_step_s = see(lambda: read_place(trial).attempt >= attempt, killed_at)
    new_step_s = see(lambda: is_beyond(read_place(trial), before), killed_at)
    return Recovery(start_s - killed_at if start_s else 0.0, begun_s, met_s, first_step_s, new_step_s)


def recover_by_requeue(bed: Bed, trial: TrialFolder, job: str, restarts: int) -> Recovery:
    """The same by Slurm, which starts the job again."""
    return recover(trial, lambda: requeue(bed, job), lambda: find_new_start(bed, job, restarts))


def requeue(bed: Bed, job: str) -> None:
    bed.run(["scontrol", "requeue", job])


def find_new_start(bed: Bed, job: str, restarts: int) -> float:
    """When Slurm started the job for the so manieth time again, in whole seconds since 1970."""
    found = ""

    def has_started() -> bool:
        nonlocal found
        found = bed.run(["scontrol", "-o", "show", "job", job]).stdout
        shown = parse_job(found)
        return shown is not None and shown.state == "RUNNING" and shown.restarts == restarts

    wait_for(has_started, _TIMEOUT_S, f"the start of job {job} after {restarts} requeues")
    told = next(word.partition("=")[2] for word in found.split() if word.startswith("StartTime="))
    return datetime.fromisoformat(told).timestamp()


def kill_rank(trial: TrialFolder, rank: int) -> None:
    """SIGKILL to the process of one rank of the attempt under way."""
    pids = [pid for pid in list_ranks(trial) if read_rank(pid) == rank]
    assert len(pids) == 1, f"rank {rank} of {trial.path} is {len(pids)} processes"
    os.kill(pids[0], signal.SIGKILL)


def kill_job(trial: TrialFolder) -> None:
    """SIGKILL to the supervisor, and so to its job, and to all ranks: nothing of it says a word any more."""
    holder = read_live_holder(trial.lease)
    assert holder is not None, f"{trial.path} has no supervisor"
    for pid in (holder.pid, *list_ranks(trial)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def list_ranks(trial: TrialFolder) -> list[int]:
    """Processes that train the trial, on any node of the testbed."""
    wanted = ["-m", "windtunnel.training", "--trial-dir", str(trial.path)]
    return [int(entry.name) for entry in Path("/proc").iterdir() if read_words(entry / "cmdline")[1:5] == wanted]


def read_rank(pid: int) -> int:
    """A process's number among the tasks of its step."""
    found = (word.partition("=") for word in read_words(Path(f"/proc/{pid}/environ")))
    return next((int(value) for name, _, value in found if name == "SLURM_PROCID"), -1)


def read_words(path: Path) -> list[str]:
    """Words of a file of /proc; none where the process is gone, or is none."""
    try:
        return path.read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def read_place(trial: TrialFolder, *, at_least: int = 0) -> Place:
    """The place that metrics.jsonl tells of; waits until that many steps were made in all."""
    found = Place(0, 0)

    def is_there() -> bool:
        nonlocal found
        found = parse_place(read_last_line(trial.metrics))
        return found.step >= at_least

    wait_for(is_there, _TIMEOUT_S, f"step {at_least} of {trial.path}")
    return found


def parse_place(line: str) -> Place:
    """Of a line of metrics.jsonl; nowhere for one that is not whole."""
    try:
        told = json.loads(line)
        return Place(int(told["attempt"]), int(told["step"]))
    except (ValueError, KeyError, TypeError):
        return Place(0, 0)


def is_beyond(place: Place, before: Place) -> bool:
    """Whether a later attempt made a step that none had made before."""
    return place.attempt > before.attempt and place.step > before.step


def find_saved(trial: TrialFolder) -> int:
    """Step of the newest checkpoint; 0 without one."""
    found = list_checkpoints(trial.path / "checkpoints") if (trial.path / "checkpoints").is_dir() else []
    return step_of(found[0]) if found else 0


def see(what: Callable[[], bool], since: float) -> float:
    """Seconds from `since` until it holds."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not what():
        assert time.monotonic() < deadline, f"the trial did not go on within {_TIMEOUT_S:.0f} s"
        time.sleep(_POLL_S)
    return time.time() - since


def make_result(
    killed: Sequence[Recovery], requeued: Sequence[Recovery], succeeded: Sequence[Recovery]
) -> PartResult:
    """Medians, and where the time went."""
    rows = [
        *make_rows("in the allocation", killed),
        *make_rows("by requeue", requeued),
        *make_rows("by a successor", succeeded),
    ]
    figures = {
        "recovery_in_allocation_s": median_interval([each.new_step_s for each in killed]).median,
        "recovery_requeue_extra_s": median_interval([each.extra_s for each in requeued]).median,
        "recovery_successor_s": median_interval([each.new_step_s for each in succeeded]).median,
    }
    counts = (len(killed), len(requeued), len(succeeded))
    cases = dict(zip(figures, counts, strict=True))
    return PartResult(figures, cases, tuple(rows))


def make_rows(name: str, found: Sequence[Recovery]) -> list[Row]:
    parts = {
        "to the next attempt": [each.begun_s for each in found],
        "of these until Slurm's new start": [each.new_start_s for each in found],
        "then to the ranks' meeting": [each.met_s - each.begun_s for each in found],
        "then to its first step": [each.first_step_s - each.met_s for each in found],
        "then to a new step": [each.new_step_s - each.first_step_s for each in found],
    }
    return [make_row(f"{name}: {part}", median_interval(values), "s") for part, values in parts.items()]
