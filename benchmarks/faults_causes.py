"""Live trials that Slurm signals for each of five reasons: do their supervisors know which, and do they go on?

The ranks are a small script; driver, supervisors, jobs and all that Slurm does to them are real. A first attempt
trains until it is told to stop; the next one of the same trial ends well at once.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.harness import ROOT, PartResult, make_share_row
from benchmarks.sweep_bed import Bed, open_bed, wait_for
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.attempt.pack import run_pack
from windtunnel.launch.run import run_sweep
from windtunnel.ledger.facts import read_end
from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers, trial_folder
from windtunnel.ledger.log import read_events
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import STOPPED_CODE, AttemptEnd, TrialConfig, Verdict
from windtunnel.settings.base import read_settings
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import SweepSettings
from windtunnel.testbed.places import slurm_conf
from windtunnel.testbed.render import CRED_EXPIRE_S

sys.path.insert(0, str(ROOT / "tests"))  # the tests' small trial, which is no part of the package either
from fake_driver import write_study
from fake_trials import make_outcome, make_trial

TIME_LIMIT, PREEMPTION, REQUEUE, SCANCEL, NODE = "time limit", "preemption", "requeue", "scancel", "node"
EXPECTED = {
    TIME_LIMIT: (Verdict.TIMEOUT, ("stopped at its time limit",)),
    PREEMPTION: (Verdict.PREEMPTED, ("preempted by Slurm",)),
    REQUEUE: (Verdict.PREEMPTED, ("requeued by Slurm",)),
    SCANCEL: (Verdict.CANCELLED, ("cancelled by scancel",)),
    # The second is srun's own word, where that comes before the signal.
    NODE: (Verdict.NODE_FAIL, ("its node was taken from it", "Node failure on")),
}
"""What END.json of the first attempt must say: the verdict, and either of these words in its evidence."""
GOES_ON = (PREEMPTION, REQUEUE, NODE)
SPARE, CHEAP, FRAIL, CALM = "spare", "cheap", "frail", "calm"
PARTITIONS = {
    SPARE: ("n2", "REQUEUE"),
    CHEAP: ("n1", "CANCEL"),
    FRAIL: ("n4,n5,n6,n7", "REQUEUE"),
    CALM: ("n0,n3", "OFF"),
}
"""Nodes, and what a preemption does there."""
CPUS = 8
"""Of a node: a trial that takes all of them has the node to itself."""
EACH = 4
"""Trials of each cause in a run."""
_CLUSTER = ClusterSettings(kind="slurm", partition="main", network_interface="eth0")
_SWEEP = SweepSettings(marker_poll_s=0.5, poll_s=2.0, settle_s=3.0)
_START_TIMEOUT_S, _END_TIMEOUT_S = 180.0, 300.0
_CALM_S = CRED_EXPIRE_S + 5.0
"""After the driver's end nothing may begin again for so long: a requeued job starts sooner."""
_KILL_WAIT_S = 30
_SETTLE_S = 5.0
_SELF = (sys.executable, "-m", "benchmarks.faults_causes")


@dataclass(frozen=True)
class Victim:
    """A trial, and what will be done to it."""

    cause: str
    trial: PlannedTrial
    folder: TrialFolder

    @property
    def started(self) -> bool:
        return (self.folder.path / "training").exists()

    def find(self, what: str) -> str:
        """A detail of the event with which its first attempt began."""
        found = next(event.details[what] for event in read_events(self.folder.path) if event.kind == "started")
        return str(found[0] if isinstance(found, list) else found)


@dataclass(frozen=True)
class Fate:
    """What became of a trial."""

    cause: str
    end: AttemptEnd | None
    """Of its first attempt."""
    attempts: int
    submissions: int
    done: bool

    @property
    def right(self) -> bool:
        """Whether the supervisor knew why it was signalled."""
        verdict, words = EXPECTED[self.cause]
        end = self.end
        return end is not None and end.verdict == verdict and any(told in end.evidence for told in words)


def run_causes(quick: bool) -> PartResult:
    """Trials of all causes at once; a quick run leaves out the time limit, whose warning takes up to a minute."""
    causes = (PREEMPTION, REQUEUE, SCANCEL) if quick else tuple(EXPECTED)
    with open_bed(f"--cpus={CPUS}", quick=quick) as bed, tempfile.TemporaryDirectory(prefix="wt-") as folder:
        if not quick:
            be_patient(bed)
        fates = harm_trials(bed, Path(folder), causes, each=1 if quick else EACH)
    return make_result(fates)


def harm_trials(bed: Bed, root: Path, causes: Sequence[str], *, each: int) -> list[Fate]:
    """Let a driver run the trials, harm each when all of them train, and see them to their ends."""
    victims = write_victims(root, causes, each)
    with open_partitions(bed), started_driver(bed, root) as driver:
        # A time limit may be near before a rank trains: its supervisor has to know even then.
        due = [victim for victim in victims if victim.cause != TIME_LIMIT]
        wait_for(lambda: all(victim.started for victim in due), _START_TIMEOUT_S, f"the start of {len(due)} trials")
        harm(bed, victims, root)
        wait_for(lambda: driver.poll() is not None, _END_TIMEOUT_S, "the driver's end")
        cancelled = [victim for victim in victims if victim.cause == SCANCEL]
        watch(lambda: all(count_attempts(victim.folder) == 1 for victim in cancelled), _CALM_S)
        bed.wait_until_quiet()
    return [read_fate(victim) for victim in victims]


def be_patient(bed: Bed) -> None:
    """Give jobs the time between SIGTERM and SIGKILL that Slurm gives by default; a testbed's is short."""
    file = slurm_conf(bed.spec.folder)
    lines = [line for line in file.read_text().splitlines() if not line.startswith("KillWait=")]
    file.write_text("\n".join([*lines, f"KillWait={_KILL_WAIT_S}", ""]))
    bed.run(["scontrol", "reconfigure"])


def write_victims(root: Path, causes: Sequence[str], each: int) -> list[Victim]:
    """The study, with trials of one rank each."""
    victims = []
    for cause in causes:
        for number in range(each):
            trial = make_victim(f"{cause.replace(' ', '_')}_{number}", cause, number, of=len(victims))
            victims.append(Victim(cause, trial, trial_folder(root, trial.id)))
    trials = [victim.trial for victim in victims]
    write_study(root, trials, SweepStageSettings(study="causes", cluster=_CLUSTER, sweep=_SWEEP))
    return victims


def make_victim(name: str, cause: str, number: int, *, of: int) -> PlannedTrial:
    """A trial where its cause can be inflicted on it and on nobody else; preemptions are of both kinds in turn."""
    trial = make_trial(name, cluster=_CLUSTER, time_min=1 if cause == TIME_LIMIT else 10)
    partition = {NODE: FRAIL, PREEMPTION: (SPARE, CHEAP)[number % 2]}.get(cause, CALM)
    shape = replace(trial.shape, partition=partition, cpus_per_rank=CPUS if cause == NODE else 1)
    return replace(trial, id=f"{of:016x}", shape=shape)


@contextmanager
def open_partitions(bed: Bed) -> Iterator[None]:
    """Make them, and remove them."""
    made = []
    try:
        for name, (nodes, mode) in PARTITIONS.items():
            wanted = (f"PartitionName={name}", f"Nodes={nodes}", f"PreemptMode={mode}", "PriorityTier=1", "State=UP")
            bed.run(["scontrol", "create", *wanted])
            made.append(name)
        yield
    finally:
        for name in made:
            bed.run(["scancel", f"--partition={name}"], check=False)
            bed.run(["scontrol", "delete", f"PartitionName={name}"], check=False)


@contextmanager
def started_driver(bed: Bed, root: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A driver on the login host; what it says is kept beside the study."""
    argv = bed.argv([*_SELF, "drive", str(root)])
    with (root / "driver.txt").open("w") as said:
        env = {**os.environ, **bed.env()}
        driver = subprocess.Popen(argv, stdout=said, stderr=subprocess.STDOUT, env=env, start_new_session=True)
    try:
        yield driver
    finally:
        driver.kill()
        driver.wait()


def harm(bed: Bed, victims: Sequence[Victim], root: Path) -> None:
    """What each cause is; time limits come by themselves. Nodes that were lost come back once their trials ended."""
    for host in sorted({victim.find("hosts") for victim in victims if victim.cause == PREEMPTION}):
        where = ("--partition=urgent", f"--nodelist={host}", "--exclusive", "--mem=100", "--time=1")
        bed.run(["sbatch", *where, "--output=/dev/null", "--wrap=sleep 1"], cwd=root)
    for cause, command in ((REQUEUE, ("scontrol", "requeue")), (SCANCEL, ("scancel",))):
        for victim in victims:
            if victim.cause == cause:
                bed.run([*command, victim.find("job_id")])
    lost = [victim for victim in victims if victim.cause == NODE]
    for victim in lost:
        bed.run(["scontrol", "update", f"nodename={victim.find('hosts')}", "state=down", "reason=taken"])
    try:
        wait_for(lambda: all(read_first_end(victim.folder) for victim in lost), 60.0, "trials of lost nodes")
        # Slurm would start the jobs at once, and fail, where it has just told the node to end them.
        watch(lambda: True, CRED_EXPIRE_S + _SETTLE_S)
    finally:
        for victim in lost:
            # A node that has come back by itself needs no word, and takes none.
            bed.run(["scontrol", "update", f"nodename={victim.find('hosts')}", "state=resume"], check=False)


def watch(holds: Callable[[], bool], seconds: float) -> None:
    """Look for so long, or until it does not hold any more."""
    deadline = time.monotonic() + seconds
    while holds() and time.monotonic() < deadline:
        time.sleep(0.5)


def read_fate(victim: Victim) -> Fate:
    submitted = [event.kind for event in read_events(victim.folder.path)].count("submitted")
    end, attempts = read_first_end(victim.folder), count_attempts(victim.folder)
    fate = Fate(victim.cause, end, attempts, submitted, victim.folder.done.exists())
    if not fate.right:
        print(f"faults: {victim.cause} of trial {victim.trial.name} was taken for {end}", flush=True)
    return fate


def read_first_end(folder: TrialFolder) -> AttemptEnd | None:
    return read_end(folder.end(1))


def count_attempts(folder: TrialFolder) -> int:
    return len(read_attempt_numbers(folder))


def make_result(fates: Sequence[Fate]) -> PartResult:
    """The shares, and how each cause fared."""
    rows = []
    for cause in EXPECTED:
        mine = [fate for fate in fates if fate.cause == cause]
        if mine:
            rows.append(make_share_row(f"told right: {cause}", [fate.right for fate in mine]))
        if mine and cause in GOES_ON:
            rows.append(make_share_row(f"completed afterwards: {cause}", [fate.done for fate in mine]))
    again = [fate.attempts > 1 or fate.submissions > 1 for fate in fates if fate.cause == SCANCEL]
    figures = {
        "causes_right_fraction": sum(fate.right for fate in fates) / len(fates),
        "requeued_after_scancel": sum(again) / len(again),
    }
    cases = {"causes_right_fraction": len(fates), "requeued_after_scancel": len(again)}
    return PartResult(figures, cases, tuple(rows))


def drive(root: Path) -> None:
    """`windtunnel sweep` of the study in `root`, whose supervisors start our ranks."""
    run_sweep(
        read_settings(SweepStageSettings, root / "study" / "sweep.yaml"),
        plan=root / "study" / "plan.json",
        features=root / "MANIFEST.json",
        topology=None,
        store=root,
        import_root="",
        out=root / "study" / "sweep.json",
        supervisor=(*_SELF, "supervise"),
    )


def train(trial_dir: Path, attempt: int) -> int:
    """A rank: it trains until it is told to stop, as ours ends then; after that it has nothing left to do."""
    config = read_artifact(trial_dir / "config.yaml", TrialConfig)
    if attempt > 1:
        write_artifact(trial_dir / "DONE.json", make_outcome(config.trial.id, attempt=attempt))
        return 0
    wanted = {signal.SIGTERM, signal.SIGUSR1}
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    (trial_dir / "training").touch()
    signal.sigwait(wanted)
    return STOPPED_CODE


def main(words: Sequence[str]) -> int:
    """`drive ROOT`, `supervise DIR...`, or `train` with what a supervisor adds: `--trial-dir DIR --attempt N`."""
    if words[0] == "drive":
        drive(Path(words[1]))
        return 0
    if words[0] == "supervise":
        return run_pack([Path(word) for word in words[1:]], rank_command=(*_SELF, "train"))
    return train(Path(words[2]), int(words[4]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
