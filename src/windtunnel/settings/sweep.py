"""Settings of a sweep: how trials are run, and what counts as done."""

from typing import Self

from pydantic import Field, field_validator, model_validator

from windtunnel.settings.base import YEAR_HOURS, YEAR_S, MemoryMib, Settings, TimeMin

_OUTCOME_FIELDS = ("final_train_loss", "params", "peak_rss_mib", "samples_per_s", "step_s_median", "step_s_p90")
_VALIDATION = "validation_"


class RetrySettings(Settings):
    node_fail: int = Field(default=5, ge=0)
    """Times that a trial is tried again after a node under it failed."""
    lost: int = Field(default=3, ge=0)
    """Times after its supervisor was gone without a word, or a rank was killed by nobody known."""
    preempted: int = Field(default=20, ge=0)
    """Times after a preemption that ended its job. What Slurm requeues by itself is not counted."""
    timeout: int = Field(default=5, ge=0)
    """Times after its time limit, each time only if it left a newer checkpoint than before."""
    out_of_memory: int = Field(default=0, ge=0)
    """Times after it ran out of memory."""
    failed: int = Field(default=0, ge=0)
    """Times after an error of its own."""


class ExclusionSettings(Settings):
    failures: int = Field(default=2, ge=1)
    """Failures of a node, of different trials and each begun after the one before, for which it is left out."""
    within_hours: float = Field(default=24.0, gt=0, le=YEAR_HOURS)
    """Hours within which they count together."""
    hours: float = Field(default=12.0, ge=0, le=YEAR_HOURS)
    """Hours for which the node is left out of submissions, from the last of them; 0 leaves none out."""
    at_most: float = Field(default=0.1, ge=0, le=1)
    """Share of a partition's nodes that may be left out, rounded down: with 0.1, none of fewer than 10."""


class DriverSettings(Settings):
    partition: str = ""
    """Partition of the driver's own job, with `windtunnel sweep --driver=sbatch`; the cluster's when empty."""
    time: TimeMin = 1440
    """Its time limit, in Slurm's syntax. Two minutes before, it asks Slurm to start it again."""
    memory: MemoryMib = 1024
    """Its memory, in Slurm's syntax."""


class SweepSettings(Settings):
    objective: tuple[str, ...] = ("validation_loss",)
    """What a sampler optimizes, one number for each of its directions: `validation_loss`, another metric of the
    validation range as `validation_<metric>`, `final_train_loss`, `samples_per_s`, `step_s_median`, `step_s_p90`,
    `params` or `peak_rss_mib`. Nothing of the test range: it would then test nothing."""
    driver: DriverSettings = DriverSettings()
    """The driver as a job of its own."""
    strict: bool = False
    """Keep the sweep unfinished while a trial has FAILED, so that the same command tries it again."""
    local_trials: int = Field(default=1, ge=1)
    """Trials at a time on this machine. More than one changes their speed, which is a result."""
    trials_per_job: int = Field(default=1, ge=1)
    """Trials of one shape that a Slurm job runs one after the other; more than one spares short trials the wait."""
    successor: bool = False
    """Keep each trial's next job in the queue behind its present one, so that Slurm itself goes on with the trial
    when a node fails, its time is up, it is preempted or its supervisor dies. Twice as many jobs are in the queue."""
    budget: float = Field(default=0.0, ge=0, le=1e15)
    """Money, in `cluster.currency`, past which a sweep is refused before it begins; 0 sets no bound."""
    budget_node_hours: float = Field(default=0.0, ge=0, le=1e12)
    """Node-hours past which a sweep is refused before it begins; 0 sets no bound."""
    retries: RetrySettings = RetrySettings()
    """How often a trial is tried again, by the cause of its end."""
    exclusion: ExclusionSettings = ExclusionSettings()
    """Which nodes are left out after they failed."""
    check_nodes: bool = True
    """Look at each node of a Slurm job before an attempt begins: its GPUs, CPUs, memory, clock, and whether it can
    write. An attempt on an unfit one ends as NODE_FAIL, which names it."""
    poll_s: float = Field(default=30.0, gt=0, le=YEAR_S)
    """Seconds between two looks at squeue."""
    marker_poll_s: float = Field(default=1.0, gt=0, le=YEAR_S)
    """Seconds between two looks at the trials' own records."""
    lost_after_s: float = Field(default=120.0, gt=0, le=YEAR_S)
    """Seconds without a sign of life, in Slurm or in a trial's records, before a trial is LOST."""
    settle_s: float = Field(default=60.0, ge=0, le=YEAR_S)
    """Seconds that a job's records may take to be seen here after its end, on a slow shared file system."""
    held_hours: float = Field(default=24.0, gt=0, le=YEAR_HOURS)
    """Hours that a job may stay held before it is cancelled. A job that only waits its turn waits for ever."""
    silence_hours: float = Field(default=6.0, gt=0, le=YEAR_HOURS)
    """Hours that Slurm may not answer before the trials are left to the next command."""

    @model_validator(mode="after")
    def _keep_successors_alone(self) -> Self:
        if self.successor and self.trials_per_job > 1:
            raise ValueError(
                f"sweep.successor=true keeps a job behind each trial's own, but sweep.trials_per_job="
                f"{self.trials_per_job} lets trials share one: set trials_per_job=1, or successor=false"
            )
        return self

    @field_validator("objective", mode="before")
    @classmethod
    def _take_one_name(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("objective")
    @classmethod
    def _know_each_name(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("it is empty: name what a sampler optimizes, such as validation_loss")
        for name in value:
            if name not in _OUTCOME_FIELDS and not (name.startswith(_VALIDATION) and name != _VALIDATION):
                known = ", ".join((f"{_VALIDATION}<metric>", *_OUTCOME_FIELDS))
                raise ValueError(f"{name!r} is not known, expected one of {known}")
        return value
