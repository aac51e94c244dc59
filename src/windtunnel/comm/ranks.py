"""Which rank this process is, as its launcher says in the environment. No torch and no MPI here."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from windtunnel.errors import SettingsError


@dataclass(frozen=True)
class RankEnv:
    """A process's place among the ranks of one trial; `local_rank` counts within its node."""

    rank: int
    world_size: int
    local_rank: int = 0


# (rank, world size, local rank, present only in a real step), innermost launcher first. Open MPI and
# PMI come before Slurm because `mpiexec` in a batch script inherits the script's own SLURM_PROCID=0;
# that script has SLURM_NTASKS too but no SLURM_STEP_ID, and is not one of the ranks.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"),
)


def read_rank_env(env: Mapping[str, str] | None = None) -> RankEnv:
    """The rank that torchrun's names, Open MPI, PMI or a Slurm step give this process; alone without any.

    Raises SettingsError for numbers that do not parse or a rank outside its world.
    """
    env = os.environ if env is None else env
    for rank_name, size_name, local_name, marker in _LAUNCHERS:
        if rank_name in env and marker in env:
            rank = _read_number(env, rank_name)
            size = _read_number(env, size_name)
            local_rank = _read_number(env, local_name) if local_name in env else 0
            return _check_range(RankEnv(rank, size, local_rank), f"{rank_name} and {size_name}")
    return RankEnv(rank=0, world_size=1)


def _read_number(env: Mapping[str, str], name: str) -> int:
    text = env.get(name)
    if text is None or not text.isdecimal():
        raise SettingsError(
            f"environment variable {name} is {text!r}, expected a count: start ranks with their launcher"
        )
    return int(text)


def _check_range(found: RankEnv, names: str) -> RankEnv:
    if not 0 <= found.rank < found.world_size:
        raise SettingsError(f"rank {found.rank} is outside a world of {found.world_size}: check {names}")
    return found
