"""What is done to trials of the soak: each fault is a function that strikes one trial, or says that it cannot now."""

import heapq
import itertools
import math
import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults_recovery import list_ranks, read_place
from benchmarks.faults_soak_bed import Driver, Soaked
from benchmarks.sweep_bed import Bed
from windtunnel.checkpoints.manifest import list_checkpoints
from windtunnel.checkpoints.verify import verify_checkpoint
from windtunnel.ledger.layout import read_attempt_numbers
from windtunnel.ledger.lease import Holder, read_live_holder, read_process_start
from windtunnel.ledger.log import read_events
from windtunnel.testbed.daemons import plan_slurmds
from windtunnel.testbed.hosts import enter_argv, host_env
from windtunnel.testbed.places import log_file
from windtunnel.testbed.processes import is_alive, start_process
from windtunnel.testbed.state import Started, need_state

_MOST_NODES_OUT = 2
_BALLAST = ".ballast"
_LAST_INTERVALS = 2
"""Damage that is done to the last checkpoint after the last step would be found by nobody who resumes."""


@dataclass(frozen=True)
class Hit:
    """A fault that was applied."""

    kind: str
    trial: int
    at: float
    """Just before it, in seconds since 1970."""

    @property
    def kills(self) -> bool:
        return self.kind in KILLS


class Storm:
    """Strikes each trial at random moments, `mean_s` apart on average: a Poisson process of its own for each."""

    def __init__(
        self,
        bed: Bed,
        trials: Sequence[Soaked],
        driver: Driver,
        *,
        chance: random.Random,
        mean_s: float,
        most: int,
        every: int,
    ) -> None:
        """`most` faults a trial; `every` is the number of steps between checkpoints."""
        self.bed = bed
        self.trials = trials
        self.driver = driver
        self.chance = chance
        self.every = every
        self.hits: list[Hit] = []
        self.damaged = 0
        """Checkpoints that were damaged and were still the newest when their ranks were killed."""
        self.out: set[str] = set()
        """Nodes that something was done to, and that are not back yet."""
        self._mean_s = mean_s
        self._left = [most for _ in trials]
        self._due = [math.inf] * len(trials)
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        slurmds = need_state(bed.spec.folder).processes
        self.slurmds: dict[str, Started] = {each.name: each for each in slurmds if each.name.startswith("slurmd-")}

    def begin(self, *, slow_down: float = 1.0) -> None:
        """Draw each trial's first moment; faults are `slow_down` times as far apart."""
        self._mean_s *= slow_down
        now = time.monotonic()
        self._due = [now + self.chance.expovariate(1 / self._mean_s) for _ in self.trials]

    def tick(self, faults: Mapping[str, tuple[int, "Fault"]]) -> None:
        """Strike those whose moment has come, and take back what was for a while."""
        now = time.monotonic()
        for number, trial in enumerate(self.trials):
            if self._due[number] <= now:
                self._due[number] = now + self.chance.expovariate(1 / self._mean_s)
                if not trial.done and self._left[number]:
                    self._strike(number, faults)
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        """Do it later, or at the end at the latest."""
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._count), what))

    def end(self) -> None:
        """Take everything back that is still done to anything."""
        while self._later:
            heapq.heappop(self._later)[2]()

    def _strike(self, number: int, faults: Mapping[str, tuple[int, "Fault"]]) -> None:
        names = list(faults)
        while names:
            kind = self.chance.choices(names, [faults[name][0] for name in names])[0]
            names.remove(kind)
            at = time.time()
            if faults[kind][1](self, self.trials[number]):
                self.hits.append(Hit(kind, number, at))
                self._left[number] -= 1
                return


Fault = Callable[[Storm, Soaked], bool]
"""Strikes the trial; False where it finds nothing to strike."""


def kill_one_rank(storm: Storm, trial: Soaked) -> bool:
    ranks = list_ranks(trial.folder)
    return bool(ranks) and send(storm.chance.choice(ranks), signal.SIGKILL)


def kill_all_ranks(storm: Storm, trial: Soaked) -> bool:
    struck = [send(pid, signal.SIGKILL) for pid in list_ranks(trial.folder)]
    return any(struck)


def kill_supervisor(storm: Storm, trial: Soaked) -> bool:
    holder = find_supervisor(trial)
    return holder is not None and send(holder.pid, signal.SIGKILL)


def terminate_rank(storm: Storm, trial: Soaked) -> bool:
    ranks = list_ranks(trial.folder)
    return bool(ranks) and send(storm.chance.choice(ranks), signal.SIGTERM)


def terminate_supervisor(storm: Storm, trial: Soaked) -> bool:
    holder = find_supervisor(trial)
    return holder is not None and send(holder.pid, signal.SIGTERM)


def requeue_job(storm: Storm, trial: Soaked) -> bool:
    holder = find_supervisor(trial)
    return holder is not None and not storm.bed.run(["scontrol", "requeue", holder.job_id], check=False).code


def kill_slurmd(storm: Storm, trial: Soaked) -> bool:
    """The node's daemon, not its tasks; it comes back, before or after the controller takes the node for lost."""
    host = choose_host(storm, trial)
    if host is None or not send_to(storm.slurmds[f"slurmd-{host}"], signal.SIGKILL):
        return False
    storm.out.add(host)
    storm.after(storm.chance.uniform(3.0, 30.0), lambda: start_slurmd(storm, host))
    return True


def take_node_down(storm: Storm, trial: Soaked) -> bool:
    return update_node(storm, trial, "down")


def drain_node(storm: Storm, trial: Soaked) -> bool:
    return update_node(storm, trial, "drain")


def stop_rank(storm: Storm, trial: Soaked) -> bool:
    """SIGSTOP: for good where another rank waits for it, for some seconds where it is alone."""
    attempts = read_attempt_numbers(trial.folder) if trial.folder.attempts.is_dir() else [0]
    place, ranks = read_place(trial.folder), list_ranks(trial.folder)
    if place.attempt != attempts[-1] or not ranks:  # before its first line nobody knows how long a step takes
        return False
    pid = storm.chance.choice(ranks)
    start = read_process_start(pid)
    if not send(pid, signal.SIGSTOP):
        return False

    def go_on() -> None:
        if start is not None and read_process_start(pid) == start:
            send(pid, signal.SIGCONT)

    storm.after(60.0 if trial.ranks > 1 else storm.chance.uniform(2.0, 9.0), go_on)
    return True


def flip_bit(storm: Storm, trial: Soaked) -> bool:
    return damage(storm, trial, _flip)


def cut_file(storm: Storm, trial: Soaked) -> bool:
    return damage(storm, trial, _cut)


def fill_disk(storm: Storm, trial: Soaked) -> bool:
    """No byte is left on the trial's disk for some seconds."""
    ballast = trial.folder.path / _BALLAST
    if ballast.exists():
        return False
    with ballast.open("wb") as file:
        while fill(file.fileno()):
            pass
    storm.after(storm.chance.uniform(6.0, 14.0), lambda: ballast.unlink(missing_ok=True))
    return True


def kill_driver(storm: Storm, trial: Soaked) -> bool:
    storm.driver.kill()
    storm.driver.start()
    return True


FAULTS: dict[str, tuple[int, Fault]] = {
    "a rank killed": (14, kill_one_rank),
    "all ranks killed": (10, kill_all_ranks),
    "the supervisor killed": (8, kill_supervisor),
    "SIGTERM to a rank": (8, terminate_rank),
    "SIGTERM to the supervisor": (6, terminate_supervisor),
    "scontrol requeue": (8, requeue_job),
    "slurmd killed": (8, kill_slurmd),
    "its node set down": (5, take_node_down),
    "its node drained": (5, drain_node),
    "a rank stopped": (8, stop_rank),
    "a bit flipped, then killed": (6, flip_bit),
    "a file cut, then killed": (4, cut_file),
    "its disk full": (4, fill_disk),
    "the driver killed": (6, kill_driver),
}
"""With how often each is drawn, in parts of 100. One that finds nothing to strike is drawn again as another."""
KILLS = (
    "a rank killed",
    "all ranks killed",
    "the supervisor killed",
    "a bit flipped, then killed",
    "a file cut, then killed",
)
"""After these a trial does nothing more until it is started again."""
ON_A_DISK_OF_ITS_OWN = ("its disk full",)


def damage(storm: Storm, trial: Soaked, how: Callable[[Path, random.Random], None]) -> bool:
    """Damage the newest checkpoint where the one before it is whole, and kill the ranks before they save again."""
    place = read_place(trial.folder)
    if place.step > trial.steps - _LAST_INTERVALS * storm.every or not list_ranks(trial.folder):
        return False
    found = list_checkpoints(trial.folder.path / "checkpoints")
    if len(found) < 2 or verify_checkpoint(found[1]):
        return False
    newest = found[0]
    try:
        how(newest / storm.chance.choice(sorted(path.name for path in newest.iterdir())), storm.chance)
    except FileNotFoundError:
        return False
    kill_all_ranks(storm, trial)
    storm.damaged += list_checkpoints(newest.parent)[:1] == [newest]
    return True


def _flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    with path.open("r+b") as file:
        file.write(data)


def _cut(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def fill(descriptor: int) -> bool:
    """Write one more block; False when there is no room for it, nor for a smaller one."""
    for size in (1 << 20, 4096):
        try:
            os.write(descriptor, bytes(size))
            return True
        except OSError:
            continue
    return False


def update_node(storm: Storm, trial: Soaked, state: str) -> bool:
    host = choose_host(storm, trial)
    if host is None:
        return False
    storm.bed.run(["scontrol", "update", f"nodename={host}", f"state={state}", "reason=soak"])
    storm.out.add(host)
    storm.after(storm.chance.uniform(6.0, 15.0), lambda: resume_node(storm, host))
    return True


def resume_node(storm: Storm, host: str) -> None:
    # A node that has come back by itself needs no word, and takes none.
    storm.bed.run(["scontrol", "update", f"nodename={host}", "state=resume"], check=False)
    storm.out.discard(host)


def start_slurmd(storm: Storm, host: str) -> None:
    spec = storm.bed.spec
    daemon = next(each for each in plan_slurmds(spec, os.environ["PATH"]) if each.host == host)
    argv = enter_argv(spec, host, ("env", "--chdir=/", *daemon.argv))
    log = log_file(spec.folder, daemon.name)
    storm.slurmds[daemon.name] = start_process(daemon.name, argv, env=host_env(spec), log=log)
    storm.out.discard(host)


def choose_host(storm: Storm, trial: Soaked) -> str | None:
    """A node under the trial, none where enough nodes are out already."""
    holder = find_supervisor(trial)
    if holder is None or len(storm.out) >= _MOST_NODES_OUT:
        return None
    started = [event for event in read_events(trial.folder.path) if event.kind == "started"]
    hosts = [host for host in started[-1].details["hosts"] if host not in storm.out] if started else []
    return str(storm.chance.choice(hosts)) if hosts else None


def find_supervisor(trial: Soaked) -> Holder | None:
    """The trial's live supervisor, whose process is one of this machine's, whatever its host is called."""
    holder = read_live_holder(trial.folder.lease)
    live = holder is not None and read_process_start(holder.pid) == holder.started
    return holder if live else None


def send(pid: int, signum: signal.Signals) -> bool:
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return False
    return True


def send_to(process: Started, signum: signal.Signals) -> bool:
    return is_alive(process) and send(process.pid, signum)
