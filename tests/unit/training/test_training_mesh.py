import pytest
import torch

from windtunnel.comm.ranks import RankEnv
from windtunnel.comm.single import SingleComm
from windtunnel.errors import ClusterError, LayoutError
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.parallelism import ParallelismSettings
from windtunnel.training.mesh import Mesh, check_layout, choose_backend, choose_device, open_mesh, read_host

CPU = ClusterSettings(kind="local", partition="local")


def test_a_rank_alone_joins_no_group(tmp_path):
    mesh = open_mesh(ParallelismSettings(name="one"), CPU, env=RankEnv(0, 1), rendezvous=tmp_path / "r.json")
    assert (mesh.world_size, mesh.is_root, mesh.devices) == (1, True, None)
    assert mesh.device == torch.device("cpu")
    assert not torch.distributed.is_initialized()


def test_ranks_that_do_not_fit_the_layout_are_refused():
    with pytest.raises(LayoutError, match="'ddp' needs 4 ranks, but 2 were started"):
        check_layout(ParallelismSettings(name="ddp", data=4), RankEnv(0, 2))


def test_ranks_that_divide_a_model_unequally_are_refused():
    with pytest.raises(LayoutError, match=r"over shard=3 of data=4 ranks: set parallelism.shard to a divisor"):
        check_layout(ParallelismSettings(name="hsdp", data=4, shard=3), RankEnv(0, 4))


def test_a_layout_that_training_cannot_do_is_refused():
    with pytest.raises(LayoutError, match="asks for pipeline=2, which training cannot do"):
        check_layout(ParallelismSettings(name="pp", pipeline=2), RankEnv(0, 2))


def test_tensor_parallel_ranks_share_a_part_of_the_batch():
    places = [Mesh(rank, 4, torch.device("cpu"), SingleComm(), None, tensor=2) for rank in range(4)]
    assert [(place.data_rank, place.data_size) for place in places] == [(0, 2), (0, 2), (1, 2), (1, 2)]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator")
def test_an_accelerator_that_is_not_there_is_named():
    with pytest.raises(ClusterError, match="finds no accelerator"):
        choose_device(CPU.model_copy(update={"gpus_per_rank": 1}), RankEnv(0, 1))


def test_ranks_on_the_cpu_talk_over_gloo():
    assert choose_backend(torch.device("cpu")) == "gloo"


def test_a_host_is_named_as_the_scheduler_names_its_node(monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "n3")
    assert read_host() == "n3"
