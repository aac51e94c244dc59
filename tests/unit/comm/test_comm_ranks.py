import pytest

from windtunnel.comm.ranks import RankEnv, read_rank_env
from windtunnel.errors import SettingsError


def test_a_process_without_a_launcher_is_alone():
    assert read_rank_env({}) == RankEnv(rank=0, world_size=1, local_rank=0)


@pytest.mark.parametrize(
    "env",
    [
        {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"},
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
        {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"},
        {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0"},
    ],
)
def test_every_launcher_tells_rank_size_and_place_on_the_node(env):
    assert read_rank_env(env) == RankEnv(rank=3, world_size=8, local_rank=1)


def test_a_batch_script_with_many_tasks_is_not_one_of_their_ranks():
    assert read_rank_env({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}) == RankEnv(0, 1)


def test_the_innermost_launcher_counts():
    slurm = {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "0"}
    assert read_rank_env({**slurm, "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}).rank == 1
    assert read_rank_env({**slurm, "RANK": "2", "WORLD_SIZE": "4"}).world_size == 4


@pytest.mark.parametrize("size", ["", "two", "-1"])
def test_a_world_size_that_is_no_count_is_refused_by_name(size):
    with pytest.raises(SettingsError, match="WORLD_SIZE"):
        read_rank_env({"RANK": "0", "WORLD_SIZE": size})


def test_a_missing_world_size_is_refused_by_name():
    with pytest.raises(SettingsError, match="WORLD_SIZE is None"):
        read_rank_env({"RANK": "0"})


def test_a_rank_outside_its_world_is_refused():
    with pytest.raises(SettingsError, match="rank 4 is outside a world of 4"):
        read_rank_env({"RANK": "4", "WORLD_SIZE": "4"})
