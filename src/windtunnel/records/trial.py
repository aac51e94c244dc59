"""What a trial's folder holds: its order, its outcome, and the sweep's view of all of them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from windtunnel.records.meter import Energy, RankMemory, RankPhases, StepWork
from windtunnel.records.plan import Identity, PlannedTrial


class Verdict(StrEnum):
    """How a trial ended, or that it has not."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    OOM = "OOM"
    TIMEOUT = "TIMEOUT"
    PREEMPTED = "PREEMPTED"
    NODE_FAIL = "NODE_FAIL"
    CANCELLED = "CANCELLED"
    LOST = "LOST"
    SKIPPED = "SKIPPED"
    PRUNED = "PRUNED"


FINAL = frozenset({Verdict.COMPLETED, Verdict.OOM, Verdict.PRUNED, Verdict.SKIPPED, Verdict.FAILED})
"""Verdicts that no later attempt changes. FAILED is final unless `sweep.strict`."""


STOPPED_CODE = 75
"""Exit code of a rank that was told to stop and left a checkpoint (EX_TEMPFAIL of sysexits.h)."""

STORAGE_CODE = 74
"""Exit code of a rank whose file system takes no more, which may not even take its last words (EX_IOERR)."""

PARTIAL_SWEEP = "sweep.partial.json"
"""Beside `sweep.json`: what there is while a verdict is not final."""


@dataclass(frozen=True)
class TrialConfig:
    """`trials/<id>/config.yaml`: all that an attempt needs, written before it is submitted."""

    SCHEMA: ClassVar[str] = "windtunnel.trial/1"

    trial: PlannedTrial
    identity: Identity
    features_manifest: str
    """Absolute path of the feature shards' MANIFEST.json."""
    topology: str
    """Absolute path of topology.json, for the order of ranks; empty when there is none."""
    import_root: str
    """Folder put first on the import path, for the user's own models; empty when there are none."""
    lost_retries: int = 0
    """Times that it may be begun again after its ranks were gone, in the same job or in another."""
    check_nodes: bool = True
    """Whether an attempt looks at its nodes before it begins."""


@dataclass(frozen=True)
class StepRecord:
    """One line of `metrics.jsonl`: means over the steps since the line before, on all ranks' samples."""

    step: int
    attempt: int
    # Our trainer gives every number; a program of the user's those that it knows.
    loss: float | None
    learning_rate: float | None
    samples_per_s: float | None
    step_s: float | None
    """Median step time since the line before."""
    elapsed_s: float
    """Seconds since this attempt's first step."""
    phases_s: dict[str, float] | None = None
    """Of a step, by records.meter.StepPhase: means over the steps since the line before, and over ranks."""


@dataclass(frozen=True)
class Evaluation:
    """Loss and metrics over one range of time, in samples as many as it has."""

    split: str
    samples: int
    loss: float
    metrics: dict[str, float]
    part_losses: tuple[float, ...] = ()
    """Mean loss of consecutive parts of the range: trials on the same samples are compared part by part."""


@dataclass(frozen=True)
class TrialOutcome:
    """`trials/<id>/DONE.json`: written once, by the attempt that reached the last step."""

    SCHEMA: ClassVar[str] = "windtunnel.outcome/1"

    trial_id: str
    attempt: int
    steps: int
    final_train_loss: float | None
    evaluations: tuple[Evaluation, ...]
    samples_per_s: float | None
    """Global batch over the median step time, warm-up discarded; null where a program does not tell it."""
    step_s_median: float | None
    step_s_p90: float | None
    steps_timed: int
    steps_discarded: int
    params: int | None
    peak_rss_mib: float | None
    """Largest rank."""
    checkpoint: str
    """Folder of the final checkpoint, relative to the trial's folder; empty where a program keeps its own."""
    resumed_from_step: int | None
    """Step of the checkpoint that this attempt began from; null for a fresh start."""
    device: str
    rank_hosts: tuple[str, ...]
    """Host of each rank, as granted."""
    phases_s: dict[str, float]
    """Wall seconds of this attempt by phase: setup, train, checkpoint, evaluate."""
    kernels: str = ""
    """What ran the time-series operators: `cpp` or `reference`; empty where a program does not tell it."""
    notes: tuple[str, ...] = ()
    """What its reader should know: faults that training got over, or what was passed over in a program's metrics."""
    rank_phases: tuple[RankPhases, ...] = ()
    """Of each rank in this attempt; none where a program keeps its own time."""
    work: StepWork | None = None
    """Of one step."""
    rank_memory: tuple[RankMemory, ...] = ()
    energy: Energy | None = None
    """Null where no host of the trial, or not every one, has a source that may be read."""


@dataclass(frozen=True)
class NodeFault:
    """What makes a node unfit, as an attempt's own look at it found."""

    node: str
    text: str
    hard: bool
    """Whether any job there would meet it until somebody repairs it."""


@dataclass(frozen=True)
class AttemptEnd:
    """`trials/<id>/attempts/N/END.json`: how the supervisor saw the attempt end."""

    SCHEMA: ClassVar[str] = "windtunnel.attempt/1"

    attempt: int
    exit_code: int
    """Of the ranks' launcher; negative for a signal."""
    verdict: Verdict
    evidence: str
    """One or two sentences: the cause, with the exception's last line where there is one."""
    hosts: tuple[str, ...]
    job_id: str
    wall_s: float
    node_faults: tuple[NodeFault, ...] = ()
    """With NODE_FAIL: the nodes that were found unfit before any rank began; none where Slurm took one away."""


@dataclass(frozen=True)
class SweepEntry:
    """A trial's verdict, its cause, and what it used."""

    trial_id: str
    name: str
    choices: dict[str, str]
    verdict: Verdict
    evidence: str
    attempts: int
    node_seconds: float
    """Nodes times wall seconds, over all attempts."""
    outcome: TrialOutcome | None
    hosts: tuple[str, ...] = ()
    """Of its newest attempt, where there is no outcome to tell."""
    step: int | None = None
    """The last one that its metrics tell of, where there is no outcome."""
    loss: float | None = None
    """Of that step."""


@dataclass(frozen=True)
class Sweep:
    """`sweep.json` when every verdict is final, `sweep.partial.json` before."""

    SCHEMA: ClassVar[str] = "windtunnel.sweep/1"

    study: str
    trials_dir: str
    entries: tuple[SweepEntry, ...]
    settings: dict[str, Any]
    """The sweep's settings and cluster, resolved."""
