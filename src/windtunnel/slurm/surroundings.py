"""Variables of the job, or of the MPI program, that a command was typed in: they would bend a new job's request."""

from collections.abc import Iterable

STRANGE_PREFIXES = (
    "SLURM_",
    "SLURMD_",
    "SBATCH_",
    "SALLOC_",
    "SRUN_",
    "PMI",
    "OMPI_COMM_",
    "OMPI_UNIVERSE_",
    "HYDI_",
    "MPI_LOCAL",
)
"""What people set themselves, such as OMPI_MCA_*, is not among them."""
KEPT = "SLURM_CONF"
"""Says where the cluster is."""


def find_strange_variables(names: Iterable[str]) -> list[str]:
    """Those of `names` that a new job, and the ranks in it, must not see."""
    return [name for name in names if name.startswith(STRANGE_PREFIXES) and name != KEPT]
