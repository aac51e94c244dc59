"""Writers whose slurmd is killed under them: Slurm starts their jobs again elsewhere while they live.

A supervisor that beats keeps its lease, and the second one waits; so the first ones hang here: the supervisor alone,
while its rank trains and saves on, or all that runs of the job, as on a node that stands still. Nothing is hurried:
the controller finds the node lost, and the second supervisor waits until the first one's last heartbeat is stale.
"""

import itertools
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.faults_recovery import list_ranks
from benchmarks.faults_soak_bed import MODEL, SLURM
from benchmarks.faults_soak_model import PACE
from benchmarks.harness import ROOT
from benchmarks.sweep_bed import PARTITION, Bed, open_bed, wait_for
from toy_trial import trial_settings, write_features, write_trial  # put on the path by faults_soak_bed
from windtunnel.artifacts import write_artifact
from windtunnel.attempt.orphans import list_children
from windtunnel.checkpoints.manifest import MANIFEST, list_checkpoints, read_manifest, step_of
from windtunnel.checkpoints.verify import verify_checkpoint
from windtunnel.errors import CheckpointError
from windtunnel.identity import read_identity
from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.ledger.lease import read_live_holder, read_process_start
from windtunnel.testbed.state import need_state

SUPERVISOR, NODE = "its supervisor hangs", "its node hangs"
NODES, CPUS = 8, 8
OLD, NEW = ("n0", "n1", "n2", "n3"), ("n4", "n5", "n6", "n7")
"""Nodes of the first attempts, and of those that succeed them."""
_SAVE_EVERY, _PACE_S = 4, 0.5
_ENDLESS = 10_000_000
_START_S, _SUCCESSION_S, _END_S = 600.0, 600.0, 120.0
_RESUMED = re.compile(r"resumed from step-(\d+)")
_ENOUGH = 2
"""Checkpoints of the second writer before the first is continued, and after its end."""


@dataclass
class Pair:
    """A trial with two writers, and what was seen of its checkpoints."""

    kind: str
    folder: TrialFolder
    job: str
    old: dict[int, str] = field(default_factory=dict)
    """Processes of the first, with their starts."""
    stopped: list[int] = field(default_factory=list)
    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Generation and step of each checkpoint, by its manifest's inode."""

    @property
    def checkpoints(self) -> Path:
        return self.folder.path / "checkpoints"

    @property
    def old_lives(self) -> bool:
        return any(read_process_start(pid) == start for pid, start in self.old.items())

    def look(self) -> None:
        """See what is new."""
        for path in list_checkpoints(self.checkpoints):
            try:
                inode = (path / MANIFEST).stat().st_ino
                if inode not in self.seen:
                    manifest = read_manifest(path)
                    self.seen[inode] = manifest.generation, manifest.step
            except (OSError, CheckpointError):
                continue  # retention took it

    def count_new(self) -> int:
        """Checkpoints of the second writer so far."""
        return sum(generation > 1 for generation, _ in self.seen.values())

    def find_resumed(self) -> int | None:
        """The step from which the second writer goes on, once it has chosen."""
        try:
            found = _RESUMED.search((self.folder.attempt(2) / "rank-0.log").read_text(errors="replace"))
        except FileNotFoundError:
            return None
        return int(found[1]) if found is not None else None


@dataclass(frozen=True)
class Lost:
    """What a first writer did."""

    kind: str
    published: tuple[int, ...]
    """Steps that it published beyond the one that the second had chosen to go on from."""
    harmed: tuple[str, ...]
    """What is wrong with the second's newest checkpoints."""
    ended: bool
    """Whether it ended by itself."""


def run_lost_slurmds(count: int, chance: random.Random) -> list[Lost]:
    """So many trials, of both kinds in turn, all at once."""
    options = (f"--nodes={NODES}", f"--cpus={CPUS}")
    with tempfile.TemporaryDirectory(prefix="wt-") as folder, open_bed(*options, quick=False) as bed:
        pairs = start_first(bed, Path(folder), count)
        lose_nodes(bed, pairs, chance)
        watch(pairs, lambda pair: pair.count_new() >= _ENOUGH, _SUCCESSION_S)
        for pid in itertools.chain.from_iterable(pair.stopped for pair in pairs):
            send(pid, signal.SIGCONT)
        watch(pairs, lambda pair: not pair.old_lives, _END_S)
        ended = [not pair.old_lives for pair in pairs]
        known = {pair.job: pair.count_new() for pair in pairs}
        watch(pairs, lambda pair: pair.count_new() >= known[pair.job] + _ENOUGH, _END_S)
        found = [judge(pair, ended=each) for pair, each in zip(pairs, ended, strict=True)]
        bed.run(["scancel", *(pair.job for pair in pairs)], check=False)
    return found


def start_first(bed: Bed, root: Path, count: int) -> list[Pair]:
    """The trials, each training on one of the nodes that will be lost."""
    update_nodes(bed, NEW, "drain")
    features = write_features(root / "features")
    kinds = itertools.islice(itertools.cycle((SUPERVISOR, NODE)), count)
    pairs = [start_trial(bed, root, features, number, kind) for number, kind in enumerate(kinds)]
    watch(pairs, lambda pair: bool(pair.seen), _START_S)
    update_nodes(bed, NEW, "resume")
    return pairs


def start_trial(bed: Bed, root: Path, features: Path, number: int, kind: str) -> Pair:
    folder = trial_folder(root, f"{number:016x}")
    settings = trial_settings(model=MODEL, steps=_ENDLESS, checkpoint_every=_SAVE_EVERY, log_every=_SAVE_EVERY)
    config = write_trial(folder.path, features, settings.model_copy(update={"cluster": SLURM}))
    shape = replace(config.trial.shape, partition=PARTITION, time_min=60)
    trial = replace(config.trial, shape=shape)
    write_artifact(folder.config, replace(config, trial=trial, identity=read_identity(features), lost_retries=9))
    options = ["--ntasks=1", "--mem=1024M", "--time=60", f"--partition={PARTITION}", "--requeue"]
    files = [f"--output={folder.path}/job.txt", "--open-mode=append"]
    command = f"export {PACE}={_PACE_S}; exec {sys.executable} -m windtunnel.cli.main trial {folder.path}"
    job = bed.run(["sbatch", "--parsable", *options, *files, f"--wrap={command}"], cwd=ROOT).stdout.strip()
    return Pair(kind, folder, job)


def lose_nodes(bed: Bed, pairs: Sequence[Pair], chance: random.Random) -> None:
    """Let the first writers hang, each at a moment of its own, and kill the nodes' slurmds."""
    for pair in pairs:
        holder = read_live_holder(pair.folder.lease)
        assert holder is not None, f"{pair.folder.path} has no supervisor"
        children = list_children(holder.pid)
        pids = [holder.pid, *children, *itertools.chain(*map(list_children, children)), *list_ranks(pair.folder)]
        pair.old = {pid: start for pid in pids if (start := read_process_start(pid)) is not None}
        pair.stopped = list(pair.old) if pair.kind == NODE else [holder.pid]
    for pair in chance.sample(list(pairs), len(pairs)):
        time.sleep(chance.uniform(0.0, 0.2))
        for pid in pair.stopped:
            send(pid, signal.SIGSTOP)
    for started in need_state(bed.spec.folder).processes:
        if started.name in [f"slurmd-{host}" for host in OLD]:
            os.kill(started.pid, signal.SIGKILL)


def watch(pairs: Sequence[Pair], holds: Callable[[Pair], bool], timeout_s: float) -> None:
    """Look until it holds for all; what does not by then is seen by the judge."""

    def look() -> bool:
        for pair in pairs:
            pair.look()
        return all(holds(pair) for pair in pairs)

    try:
        wait_for(look, timeout_s, "writers")
    except AssertionError:
        late = [pair.folder.path.name for pair in pairs if not holds(pair)]
        print(f"faults: after {timeout_s:.0f} s it does not hold for {', '.join(late)}", flush=True)


def judge(pair: Pair, *, ended: bool) -> Lost:
    """What the first writer did after the second had chosen."""
    resumed = pair.find_resumed()
    assert resumed is not None, f"the second writer of {pair.folder.path} did not come to be"
    published = sorted(step for generation, step in pair.seen.values() if generation == 1 and step > resumed)
    newest = list_checkpoints(pair.checkpoints)[:2]
    harmed = [f"step {step_of(path)} {problem}" for path in newest for problem in verify_checkpoint(path)]
    if len(newest) < _ENOUGH or any(read_manifest(path).generation == 1 for path in newest):
        harmed.append(f"its newest are {[path.name for path in newest]}")
    return Lost(pair.kind, tuple(published), tuple(harmed), ended)


def update_nodes(bed: Bed, hosts: Sequence[str], state: str) -> None:
    bed.run(["scontrol", "update", f"nodename={','.join(hosts)}", f"state={state}", "reason=later"])


def send(pid: int, signum: signal.Signals) -> None:
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        pass
