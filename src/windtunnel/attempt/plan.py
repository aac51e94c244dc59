"""Which processes an attempt starts, with what environment, on which hosts. Pure: it prints and tests as a value."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel.attempt.grant import Grant
from windtunnel.attempt.limits import LINGER_S
from windtunnel.errors import ClusterError
from windtunnel.ledger.layout import TrialFolder
from windtunnel.records.trial import TrialConfig


@dataclass(frozen=True)
class Process:
    """A command, what it adds to the environment, and the file that takes its output."""

    argv: tuple[str, ...]
    env: dict[str, str]
    log: Path


@dataclass(frozen=True)
class LaunchPlan:
    """The processes that the supervisor starts: one a rank on this machine, or one `srun` for all."""

    processes: tuple[Process, ...]
    rank_hosts: tuple[str, ...]
    """Host of each rank."""
    hostfile: Path | None
    """Where srun reads `rank_hosts`; None without srun."""
    time_limit_s: float | None
    """Limit that the supervisor holds itself; None where the scheduler does."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts in rank order, each once."""
        return tuple(dict.fromkeys(self.rank_hosts))


def plan_attempt(
    config: TrialConfig, grant: Grant, *, folder: TrialFolder, attempt: int, rank_command: Sequence[str], path: str
) -> LaunchPlan:
    """The launch of one attempt; `grant.hosts` are in rank order, `path` is the PYTHONPATH so far.

    Raises ClusterError when the grant has fewer hosts than the trial's shape.
    """
    shape = config.trial.shape
    if len(grant.hosts) < shape.nodes and grant.slurm:
        raise ClusterError(
            f"trial {config.trial.id} needs {shape.nodes} nodes but job {grant.job_id} has {len(grant.hosts)}: "
            "submit it with its own shape"
        )
    arguments = ("--trial-dir", str(folder.path), "--attempt", str(attempt))
    command = (*rank_command, *arguments)
    env = _common_env(config, path)
    if grant.slurm:
        return _plan_srun(config, grant, folder.attempt(attempt), Process(command, env, Path()))
    processes = tuple(
        Process(command, {**env, **_rank_env(rank, shape.ranks)}, folder.rank_log(attempt, rank))
        for rank in range(shape.ranks)
    )
    return LaunchPlan(processes, grant.hosts[:1] * shape.ranks, None, shape.time_min * 60.0)


def render_hostfile(plan: LaunchPlan) -> str:
    """SLURM_HOSTFILE's content: the host of each task, one a line, in rank order."""
    return "".join(f"{host}\n" for host in plan.rank_hosts)


def _plan_srun(config: TrialConfig, grant: Grant, attempt_dir: Path, rank: Process) -> LaunchPlan:
    shape = config.trial.shape
    rank_hosts = tuple(host for host in grant.hosts[: shape.nodes] for _ in range(shape.ranks_per_node))
    hostfile = attempt_dir / "hosts"
    argv = (
        "srun",
        f"--nodes={shape.nodes}",
        f"--ntasks={shape.ranks}",
        f"--ntasks-per-node={shape.ranks_per_node}",
        # srun does not take over the batch script's --cpus-per-task since Slurm 22.05.
        f"--cpus-per-task={shape.cpus_per_rank}",
        "--distribution=arbitrary",
        "--cpu-bind=none",
        # Ranks meet over a file and TCP; a PMI of the site's default would only fail in its own ways.
        "--mpi=none",
        "--kill-on-bad-exit=1",
        f"--wait={LINGER_S:.0f}",
        f"--output={attempt_dir}/rank-%t.log",
        f"--error={attempt_dir}/rank-%t.log",
        "--",
        *rank.argv,
    )
    env = {**rank.env, "SLURM_HOSTFILE": str(hostfile)}
    return LaunchPlan((Process(argv, env, attempt_dir / "srun.log"),), rank_hosts, hostfile, None)


def _common_env(config: TrialConfig, path: str) -> dict[str, str]:
    settings = config.trial.settings
    interface = settings["cluster"]["network_interface"]
    roots = [part for part in (config.import_root, path) if part]
    env = {"OMP_NUM_THREADS": str(settings["training"]["threads_per_rank"]), "PYTHONUNBUFFERED": "1"}
    if roots:
        env["PYTHONPATH"] = ":".join(roots)
    if interface:
        env |= {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
    return env


def _rank_env(rank: int, ranks: int) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
