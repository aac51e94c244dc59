import pytest

from windtunnel.slurm.surroundings import find_strange_variables


@pytest.mark.parametrize(
    "name",
    ["SLURM_JOB_ID", "SLURMD_NODENAME", "SBATCH_PARTITION", "SALLOC_ACCOUNT", "SRUN_DEBUG", "PMI_RANK", "PMIX_RANK"],
)
def test_what_slurm_says_of_a_job_is_strange_to_the_next_one(name):
    assert find_strange_variables({name: "5", "HOME": "/"}) == [name]


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_RANK", "OMPI_UNIVERSE_SIZE", "HYDI_CONTROL_FD", "MPI_LOCALRANKID"])
def test_what_mpi_says_of_a_rank_is_strange_to_the_next_program(name):
    assert find_strange_variables({name: "5"}) == [name]


@pytest.mark.parametrize("name", ["SLURM_CONF", "OMPI_MCA_btl", "OMPI_ALLOW_RUN_AS_ROOT", "HYDRA_FULL_ERROR"])
def test_where_the_cluster_is_and_what_people_set_themselves_stays(name):
    assert find_strange_variables({name: "5"}) == []
