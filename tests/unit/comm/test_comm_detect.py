import subprocess
import sys

import pytest

from windtunnel.comm.detect import Launch, detect_comm, read_launch
from windtunnel.comm.single import SingleComm
from windtunnel.errors import ClusterError


@pytest.mark.parametrize(
    ("env", "launch"),
    [
        ({}, Launch("none", 1)),
        ({"OMPI_COMM_WORLD_SIZE": "4"}, Launch("Open MPI", 4)),
        ({"PMI_SIZE": "3", "PMI_RANK": "0"}, Launch("PMI", 3)),
        ({"PMIX_RANK": "1", "SLURM_STEP_NUM_TASKS": "8"}, Launch("PMIx", 8)),
        ({"SLURM_STEP_NUM_TASKS": "2"}, Launch("srun", 2)),
    ],
)
def test_the_launcher_is_read_from_the_environment(env, launch):
    assert read_launch(env) == launch


def test_a_batch_script_of_several_tasks_is_one_process():
    assert read_launch({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}).size == 1


def test_mpiexec_inside_a_slurm_step_counts_its_own_ranks():
    assert read_launch({"PMI_SIZE": "4", "SLURM_STEP_NUM_TASKS": "1"}).size == 4


def test_a_number_of_ranks_that_does_not_parse_is_refused_by_name():
    with pytest.raises(ClusterError, match="PMI_SIZE is 'two'"):
        read_launch({"PMI_SIZE": "two"})


def test_a_process_started_alone_gets_a_world_of_one():
    assert isinstance(detect_comm({}), SingleComm)


def test_a_process_started_alone_loads_no_mpi():
    code = (
        "import sys; from windtunnel.comm.detect import detect_comm; detect_comm({}); print('mpi4py' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
