"""What a cluster's configuration means for a sweep. Pure: `scontrol show config` in, findings out."""

import re
from collections.abc import Callable, Mapping, Sequence

from windtunnel.cli.doctor.findings import Finding, fail, warn

AREA = "cluster"
TESTED = (22, 5)
"""The version whose behaviour the tests have seen; older ones differ in what commands print."""
OLDEST = (20, 2)
"""Before it squeue has no `--me`."""
_NONE = frozenset({"", "(null)", "none", "N/A"})
_POLL_S = 30
_FEW_TASKS = 100
_CRED_EXPIRE_S = 120  # Slurm's default
_LEAD_S = 60
_UNCONFIGURED = ("Could not establish a configuration source", "DNS SRV lookup failed")

Config = Mapping[str, str]


def judge_config(config: Config) -> list[Finding]:
    """One finding for each of what matters to a sweep."""
    return [finding for judge in _JUDGES if (finding := judge(config)) is not None]


def judge_slurm_version(text: str) -> Finding:
    """The version as the controller tells it, such as `22.05.8`."""
    numbers = re.match(r"(\d+)\.(\d+)", text)
    if numbers is None:
        effect = "what its commands print is not known."
        return warn(AREA, "Slurm", text or "no version", effect, "Try a small study first.")
    version = (int(numbers[1]), int(numbers[2]))
    if version < OLDEST:
        needed = "{}.{:02}".format(*OLDEST)
        return fail(AREA, "Slurm", text, "squeue --me and other options are missing.", f"Needs {needed} or newer.")
    if version < TESTED:
        tested = "{}.{:02}".format(*TESTED)
        return warn(AREA, "Slurm", text, f"it is older than what is tested ({tested}).", "Try a small study first.")
    return Finding(AREA, "Slurm", text)


def judge_silence(words: str) -> Finding:
    """Why scontrol knows nothing: no cluster here at all, or one that does not answer."""
    if any(sign in words for sign in _UNCONFIGURED):
        found = "its commands are here, but no cluster is configured: studies run here, with cluster=local"
        return Finding(AREA, "Slurm", found)
    told = words.strip().splitlines()[-1].strip()
    remedy = "Try again; ask the site whether slurmctld runs, and whether this is a login node."
    return fail(AREA, "Slurm", told, "nothing can be submitted.", remedy)


def judge_accounting_answer(code: int, words: str, wall_s: float) -> Finding:
    """How sacct answered."""
    if code:
        effect = "how a job ended is known only from its own records, and from squeue for MinJobAge."
        return warn(AREA, "sacct", words or f"exit {code}", effect, "Ask the site whether slurmdbd runs.")
    return Finding(AREA, "sacct", f"answers in {wall_s:.1f} s")


def judge_switches(count: int, plugin: str) -> Finding:
    """Whether the network's shape is known."""
    if count:
        return Finding(AREA, "topology", f"{plugin or 'topology'}: {count} switches or blocks")
    effect = "ranks cannot be placed by switch: placement=leaf does what placement=slurm does."
    remedy = "Ask the site for a topology.conf, or set placement=slurm."
    return warn(AREA, "topology", plugin or "none", effect, remedy)


def _accounting(config: Config) -> Finding:
    found = config.get("AccountingStorageType", "")
    if found.removeprefix("accounting_storage/") in _NONE:
        effect = f"squeue alone tells how jobs ended, for MinJobAge ({config.get('MinJobAge', 'unknown')})."
        return warn(AREA, "accounting", "none", effect, "Keep a driver running, and sweep.poll_s below MinJobAge.")
    return Finding(AREA, "accounting", found)


def _preemption(config: Config) -> Finding:
    mode, kind = config.get("PreemptMode", "OFF"), config.get("PreemptType", "")
    found = f"PreemptMode={mode}" + ("" if kind.removeprefix("preempt/") in _NONE else f", {kind}")
    words = set(mode.split(","))
    if words & {"SUSPEND", "GANG"}:
        effect = "a suspended trial's measured speed is wrong, and its memory stays taken."
        return warn(AREA, "preemption", found, effect, "Choose a partition or cluster.qos that is not preempted.")
    if "CANCEL" in words:
        effect = "a preempted trial's job is gone; the sweep submits it again, from its last checkpoint."
        remedy = "Set training.checkpoint_every small enough, and sweep.retries.preempted high enough."
        return warn(AREA, "preemption", found, effect, remedy)
    return Finding(AREA, "preemption", found)


def _requeue(config: Config) -> Finding:
    waits = _read_credential_s(config)
    found = f"JobRequeue={config.get('JobRequeue', 'unknown')}; trials ask for it themselves"
    return Finding(AREA, "requeue", f"{found}; a requeued job waits {waits} s or more")


def _arrays(config: Config) -> Finding:
    size = _read_number(config, "MaxArraySize")
    if size is None:
        return warn(AREA, "arrays", "MaxArraySize is not told", "1001 is taken.", "Check scontrol show config.")
    if size < 2:
        return fail(
            AREA, "arrays", f"MaxArraySize={size}", "job arrays are off.", "Ask the site to raise MaxArraySize."
        )
    found = f"MaxArraySize={size}, MaxJobCount={config.get('MaxJobCount', 'unknown')}"
    if size < _FEW_TASKS:
        effect = f"a sweep of {10 * size} trials takes 10 or more submissions."
        return warn(AREA, "arrays", found, effect, "Set sweep.trials_per_job for short trials.")
    return Finding(AREA, "arrays", found)


def _kill_wait(config: Config) -> Finding | None:
    seconds = _read_number(config, "KillWait")
    if seconds is None:
        return None
    found = f"KillWait={seconds} s"
    if seconds < 5:
        effect = "a cancelled or preempted trial has no time to write a checkpoint."
        return warn(AREA, "end of jobs", found, effect, "Set training.checkpoint_every small enough.")
    return Finding(AREA, "end of jobs", f"{found}; trials are told {_LEAD_S} s before their time limit")


def _memory_of_jobs(config: Config) -> Finding | None:
    seconds = _read_number(config, "MinJobAge")
    if seconds is None:
        return None
    found = f"MinJobAge={seconds} s"
    if 0 < seconds < 2 * _POLL_S:
        effect = "a job may end and be forgotten between two looks at squeue."
        return warn(AREA, "ended jobs", found, effect, f"Set sweep.poll_s={max(1, seconds // 3)}.")
    return Finding(AREA, "ended jobs", f"{found}: squeue shows them so long")


def _resources(config: Config) -> Finding:
    kind, options = config.get("SelectType", ""), config.get("SelectTypeParameters", "")
    found = f"{kind} {'' if options in _NONE else options}".strip()
    if kind.endswith("linear"):
        effect = "every trial gets whole nodes, however little it asks for."
        return warn(
            AREA, "resources", found, effect, "Let trials use a whole node: parallelism.data, cluster.cpus_per_rank."
        )
    if "MEMORY" not in options.upper():
        effect = "memory is not shared out: a neighbour's job can starve a trial, or kill it."
        return warn(
            AREA, "resources", found, effect, "Set cluster.sbatch: {exclusive: true}, or ask for CR_Core_Memory."
        )
    return Finding(AREA, "resources", found)


def _processes(config: Config) -> Finding:
    found = config.get("ProctrackType", "")
    if found.endswith("cgroup"):
        return Finding(AREA, "processes", found)
    effect = "processes may outlive their job; a trial clears away those of its own earlier attempts only."
    return warn(AREA, "processes", found or "unknown", effect, "Ask the site for proctrack/cgroup.")


def _late_refusals(config: Config) -> Finding | None:
    found = config.get("EnforcePartLimits", "")
    if found.upper() not in ("NO", "0"):
        return None
    effect = "sbatch takes jobs that can never start; the sweep cancels them by their reason."
    return warn(
        AREA, "limits", f"EnforcePartLimits={found}", effect, "windtunnel plan STUDY --dry-run shows them before."
    )


def _rate_limit(config: Config) -> Finding | None:
    options = [word for word in config.get("SlurmctldParameters", "").split(",") if word.startswith("rl_")]
    if "rl_enable" not in options:
        return None
    return Finding(
        AREA, "rate limit", f"{','.join(options)}; a study asks squeue once each sweep.poll_s ({_POLL_S} s)"
    )


def _privacy(config: Config) -> Finding | None:
    hidden = {word.strip() for word in config.get("PrivateData", "").lower().split(",")}
    if not hidden & {"nodes", "partitions"}:
        return None
    effect = "the partition's nodes cannot be checked before submission, nor drawn."
    return warn(
        AREA, "privacy", f"PrivateData={config['PrivateData']}", effect, "Ask the site to show nodes to users."
    )


_JUDGES: Sequence[Callable[[Config], Finding | None]] = (
    _accounting,
    _preemption,
    _requeue,
    _arrays,
    _kill_wait,
    _memory_of_jobs,
    _resources,
    _processes,
    _late_refusals,
    _rate_limit,
    _privacy,
)


def _read_number(config: Config, key: str) -> int | None:
    word = (config.get(key) or "").split()
    return int(word[0]) if word and word[0].isdecimal() else None


def _read_credential_s(config: Config) -> int:
    told = re.search(r"cred_expire=(\d+)", config.get("AuthInfo", ""))
    return int(told[1]) if told else _CRED_EXPIRE_S
