"""Which processes an attempt starts, with what environment, on which hosts. Pure: it prints and tests as a value."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import windtunnel
from windtunnel.attempt.container import render_srun_options, wrap_command
from windtunnel.attempt.grant import Grant
from windtunnel.attempt.limits import LINGER_S
from windtunnel.attempt.program import AttemptFiles, Program, fill_launcher, make_command, make_trainer
from windtunnel.errors import ClusterError
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.container import ContainerSettings

TRAINING = ("-m", "windtunnel.training")
_MIB = 1 << 20
# A rank learns its number from its launcher; this gives it torchrun's names for it.
_NAME_RANK = (
    "RANK=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}"
    " LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-0}}};"
    ' export RANK LOCAL_RANK; exec "$@"'
)


@dataclass(frozen=True)
class Process:
    """A command, what it adds to the environment, and the file that takes its output."""

    argv: tuple[str, ...]
    env: dict[str, str]
    log: Path
    directory: Path | None = None
    """Working folder; None for the supervisor's own."""
    labelled_ranks: int = 0
    """Ranks whose lines its output carries, each under its number; 0 when it is one's own."""


class StopBy(StrEnum):
    """How ranks are asked to end in order; srun itself answers SIGTERM by killing them at once."""

    SIGTERM = "SIGTERM"
    """To each process, or to MPI's launcher, which hands it on."""
    SIGUSR1 = "SIGUSR1"
    """To srun, which hands it on; our trainer takes it for SIGTERM."""
    SCANCEL = "scancel --signal=TERM"
    """Through the controller, for programs that know SIGTERM alone."""


@dataclass(frozen=True)
class LaunchPlan:
    """The processes that the supervisor starts: one a rank on this machine, or one launcher for all."""

    processes: tuple[Process, ...]
    rank_hosts: tuple[str, ...]
    """Host of each rank."""
    hostfile: Path | None
    """Where `rank_hosts` are written; None when nobody reads them."""
    time_limit_s: float | None
    """Limit that the supervisor holds itself; None where the scheduler does."""
    launcher: str = ""
    """What starts the ranks in our stead: `srun` or MPI's own; empty when the processes are the program's."""
    log_limit_bytes: int = 64 * _MIB
    stop_by: StopBy = StopBy.SIGTERM
    """How the ranks are asked to end in order."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts in rank order, each once."""
        return tuple(dict.fromkeys(self.rank_hosts))


def plan_attempt(
    config: TrialConfig, grant: Grant, *, files: AttemptFiles, rank_command: Sequence[str], path: str
) -> LaunchPlan:
    """The launch of one attempt; `grant.hosts` are in rank order, `path` is the PYTHONPATH so far.

    `rank_command` starts a rank of our trainer. Raises ClusterError when the grant has fewer hosts than the
    trial's shape.
    """
    shape, container = config.trial.shape, _container_of(config)
    if len(grant.hosts) < shape.nodes and grant.slurm:
        raise ClusterError(
            f"trial {config.trial.id} needs {shape.nodes} nodes but job {grant.job_id} has {len(grant.hosts)}: "
            "submit it with its own shape"
        )
    command = config.trial.runs_command
    if command:
        first = grant.hosts[0] if grant.slurm else "127.0.0.1"
        program = make_command(config, files, first_host=first, path=path)
    else:
        program = make_trainer(config, files, rank_command=rank_command, path=path)
    start = config.trial.settings["workload"]["start"] if command else "ranks"
    if start != "ranks":
        plan = _plan_launcher(config, grant, files, replace(program, argv=wrap_command(program, container)))
    elif grant.slurm:
        plan = _plan_srun(config, grant, files, program)
    else:
        plan = _plan_here(config, grant, files, replace(program, argv=wrap_command(program, container)))
    limit_bytes = config.trial.settings["cluster"]["log_limit"] * _MIB
    limit_s = None if grant.slurm else shape.time_min * 60.0
    return replace(plan, time_limit_s=limit_s, log_limit_bytes=limit_bytes)


def keeps_slurms_order(config: TrialConfig) -> bool:
    """Whether ranks land in the scheduler's own order: MPI's launcher was not given the file of hosts."""
    workload = config.trial.settings.get("workload", {})
    mpi = config.trial.runs_command and workload["start"] == "mpiexec"
    return mpi and not any("{hosts}" in word for word in workload["mpiexec"])


def find_rank_command(container: ContainerSettings) -> tuple[str, ...]:
    """What starts a rank of our trainer: this Python, or the container's."""
    return (container.python if container.image else sys.executable, *TRAINING)


def find_import_path(container: ContainerSettings, path: str) -> str:
    """PYTHONPATH of ranks: as it is, and in a container this very Windtunnel after it."""
    own = str(Path(windtunnel.__file__).resolve().parents[1])
    return ":".join(part for part in (path, own) if part) if container.image else path


def render_hostfile(plan: LaunchPlan) -> str:
    """SLURM_HOSTFILE's content: the host of each task, one a line, in rank order."""
    return "".join(f"{host}\n" for host in plan.rank_hosts)


def _plan_here(config: TrialConfig, grant: Grant, files: AttemptFiles, program: Program) -> LaunchPlan:
    ranks = config.trial.shape.ranks
    processes = tuple(
        Process(
            program.argv,
            {**program.env, **_rank_env(rank, ranks)},
            files.folder.rank_log(files.attempt, rank),
            program.directory,
        )
        for rank in range(ranks)
    )
    hostfile = files.hosts if config.trial.runs_command else None
    return LaunchPlan(processes, grant.hosts[:1] * ranks, hostfile, None)


def _plan_launcher(config: TrialConfig, grant: Grant, files: AttemptFiles, program: Program) -> LaunchPlan:
    """One process here, on the job's first node, that starts the ranks."""
    env, argv, name = program.env, program.argv, ""
    if config.trial.settings["workload"]["start"] == "mpiexec":
        launcher = fill_launcher(config, files)
        argv, name = (*launcher, *_with_rank_names(program.argv)), Path(launcher[0]).name
    log = files.folder.rank_log(files.attempt, 0)
    return LaunchPlan(
        (Process(argv, env, log, program.directory),), _rank_hosts(config, grant), files.hosts, None, name
    )


def _plan_srun(config: TrialConfig, grant: Grant, files: AttemptFiles, program: Program) -> LaunchPlan:
    shape, container = config.trial.shape, _container_of(config)
    command = config.trial.runs_command
    workload = config.trial.settings.get("workload", {})
    rank_argv = wrap_command(program, container)
    argv = (
        "srun",
        f"--nodes={shape.nodes}",
        f"--ntasks={shape.ranks}",
        f"--ntasks-per-node={shape.ranks_per_node}",
        # srun does not take over the batch script's --cpus-per-task since Slurm 22.05.
        f"--cpus-per-task={shape.cpus_per_rank}",
        "--distribution=arbitrary",
        "--cpu-bind=none",
        # Our ranks meet over a file and TCP; a PMI of the site's default would only fail in its own ways.
        f"--mpi={workload['srun_mpi'] if command else 'none'}",
        # A rank that fails ends the others by the supervisor, after a grace: srun would lose its last words.
        "--kill-on-bad-exit=0",
        f"--wait={LINGER_S:.0f}",
        # Every rank's output comes to the supervisor, which alone can keep logs from filling the disk.
        "--label",
        *render_srun_options(program, container),
        "--",
        *(_with_rank_names(rank_argv) if command else rank_argv),
    )
    process = Process(
        argv,
        {**program.env, "SLURM_HOSTFILE": str(files.hosts)},
        files.path / "srun.log",
        program.directory,
        labelled_ranks=shape.ranks,
    )
    stop_by = StopBy.SCANCEL if command else StopBy.SIGUSR1
    return LaunchPlan((process,), _rank_hosts(config, grant), files.hosts, None, "srun", stop_by=stop_by)


def _with_rank_names(argv: Sequence[str]) -> tuple[str, ...]:
    return ("sh", "-c", _NAME_RANK, "windtunnel", *argv)


def _rank_hosts(config: TrialConfig, grant: Grant) -> tuple[str, ...]:
    shape = config.trial.shape
    return tuple(host for host in grant.hosts[: shape.nodes] for _ in range(shape.ranks_per_node))


def _rank_env(rank: int, ranks: int) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}


def _container_of(config: TrialConfig) -> ContainerSettings:
    return ContainerSettings.model_validate(config.trial.settings["cluster"]["container"])
