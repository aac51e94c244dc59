"""What plan hands to sweep: the trials, what each asks of the scheduler, and what was refused."""

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Shape:
    """What one trial asks of the scheduler. Trials of one shape share a job array."""

    nodes: int
    ranks_per_node: int
    cpus_per_rank: int
    gpus_per_node: int
    mem_mib: int
    """Memory a node."""
    time_min: int
    partition: str
    account: str = ""
    qos: str = ""
    constraint: str = ""
    gpu_type: str = ""
    flags: tuple[tuple[str, str], ...] = ()
    """More flags of sbatch; one without a value has an empty one."""

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Identity:
    """What a trial's id is made of besides its settings."""

    data_sha256: str
    """SHA-256 of the feature manifest's content."""
    source_sha256: str
    """SHA-256 over the packages that can change a result."""
    torch_version: str


@dataclass(frozen=True)
class PlannedTrial:
    """One trial: its identity, its settings, and its shape."""

    id: str
    """First 16 hex digits of the hash of settings and identity."""
    name: str
    """For people: `tcn ddp2 bf16`; not unique over studies."""
    choices: dict[str, str]
    """What sets it apart in its study: `{"model": "tcn", "parallelism": "ddp", "training.precision": "bf16"}`."""
    settings: dict[str, Any]
    """The resolved TrialSettings."""
    user_sha256: str
    """SHA-256 over the user's files that the model's `_target_` reaches; empty for our own models."""
    shape: Shape

    @property
    def runs_command(self) -> bool:
        """Whether it runs a program of the user's instead of our trainer."""
        return bool(self.settings.get("workload", {}).get("kind") == "command")

    @property
    def reads_data(self) -> bool:
        """Whether it reads feature shards: our trainer does, a program only if it says so."""
        return not self.runs_command or bool(self.settings["workload"]["data"])

    @property
    def steps(self) -> int:
        """Steps after which it is done; 0 for a program that says so itself."""
        group = "workload" if self.runs_command else "training"
        return int(self.settings[group]["steps"])


@dataclass(frozen=True)
class Pruned:
    """A combination that is not run, and why."""

    name: str
    choices: dict[str, str]
    reason: str


@dataclass(frozen=True)
class Plan:
    """`plan.json`: the study's space; never rewritten by a sweep."""

    SCHEMA: ClassVar[str] = "windtunnel.plan/1"

    study: str
    identity: Identity
    trials: tuple[PlannedTrial, ...]
    pruned: tuple[Pruned, ...]
