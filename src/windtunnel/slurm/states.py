"""Slurm's job states, and what each says of a trial. Source: squeue(1) and sacct(1), section JOB STATE CODES."""

from windtunnel.ledger.reconcile import JobSight, Phase
from windtunnel.records.trial import Verdict

_HELD = frozenset({"REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
_HELD_REASONS = frozenset({"JobHeldUser", "JobHeldAdmin"})
_QUEUED = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED"}) | _HELD
_RUNNING = frozenset({"RUNNING", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED"})
_VERDICTS: dict[str, Verdict | None] = {
    # Whether a trial that Slurm calls done is done, only its own DONE.json says.
    "COMPLETED": None,
    # The supervisor itself died or refused; a trial's own failure is in its END.json. Slurm's reason does not tell
    # more: JobLaunchFailure is a node that could not start the job, and also a supervisor that was killed.
    "FAILED": None,
    "REVOKED": None,
    "TIMEOUT": Verdict.TIMEOUT,
    "DEADLINE": Verdict.TIMEOUT,
    "OUT_OF_MEMORY": Verdict.OOM,
    "PREEMPTED": Verdict.PREEMPTED,
    "CANCELLED": Verdict.CANCELLED,
    "NODE_FAIL": Verdict.NODE_FAIL,
    "BOOT_FAIL": Verdict.NODE_FAIL,
    "LAUNCH_FAILED": Verdict.NODE_FAIL,
    "RECONFIG_FAIL": Verdict.NODE_FAIL,
}

REVOCABLE = frozenset({"NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL", "PREEMPTED"})
"""Ends that Slurm itself may take back a moment later, by putting the job into the queue again."""
STARTS_FAILED = frozenset({"JobHoldMaxRequeue", "launch failed requeued held"})
"""Reasons of a held job that Slurm has tried to start, and gave up on."""
NEVER_STARTS = frozenset(
    {
        "AccountNotAllowed",
        "AssocMaxCpuPerJobLimit",
        "AssocMaxMemPerJob",
        "AssocMaxNodePerJobLimit",
        "AssocMaxWallDurationPerJobLimit",
        "BadConstraints",
        "DependencyNeverSatisfied",
        "InvalidAccount",
        "InvalidQOS",
        "MaxMemPerLimit",
        "PartitionConfig",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "QOSMaxCpuPerJobLimit",
        "QOSMaxMemoryPerJob",
        "QOSMaxNodePerJobLimit",
        "QOSMaxWallDurationPerJobLimit",
        "QOSNotAllowed",
    }
)
"""Reasons for which a job would wait for ever, where a site lets sbatch accept such jobs (EnforcePartLimits=NO)."""


def read_state_name(text: str) -> str:
    """The bare state of sacct's `CANCELLED by 1000` or of a state with a trailing `+`."""
    return text.split()[0].rstrip("+") if text.strip() else ""


def is_held(state: str, reason: str) -> bool:
    """Whether a job waits for someone to release it."""
    name = read_state_name(state)
    return name in _HELD or (name in _QUEUED and reason in _HELD_REASONS | STARTS_FAILED)


def is_known(state: str) -> bool:
    """Whether this module knows a state."""
    return read_state_name(state) in _QUEUED | _RUNNING | _VERDICTS.keys()


def sight_of_state(state: str, *, job_id: str, detail: str = "", hosts: tuple[str, ...] = ()) -> JobSight:
    """What a state says of a trial; an unknown one counts as alive, so that nothing is submitted twice."""
    name = read_state_name(state)
    if name in _QUEUED:
        return JobSight(Phase.QUEUED, evidence=detail)
    if name in _VERDICTS:
        told = f"Slurm says {name} of job {job_id}{f' ({detail})' if detail else ''}"
        return JobSight(Phase.ENDED, _VERDICTS[name], told, hosts=hosts)
    told = detail if name in _RUNNING else f"unknown Slurm state {state!r}"
    return JobSight(Phase.RUNNING, evidence=told, hosts=hosts)
