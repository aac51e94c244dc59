import json
import socket

import pytest
import torch.distributed as dist

from windtunnel.comm.ranks import RankEnv
from windtunnel.comm.torch import TorchComm, init_process_group, read_address
from windtunnel.errors import ClusterError, RendezvousError


@pytest.fixture
def alone(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    init_process_group(tmp_path / "rendezvous.json", RankEnv(0, 1), backend="gloo", timeout_s=20)
    yield tmp_path / "rendezvous.json"
    dist.destroy_process_group()


def test_rank_0_publishes_where_it_listens(alone):
    place = json.loads(alone.read_text())
    assert place["host"] == socket.gethostname()
    assert place["address"] == "127.0.0.1"
    assert place["port"] > 0


def test_a_world_of_one_exchanges_with_itself(alone):
    comm = TorchComm()
    comm.barrier()
    assert (comm.rank, comm.size) == (0, 1)
    assert comm.gather({"a": 1}) == comm.allgather({"a": 1}) == [{"a": 1}]


def test_a_rank_whose_rank_0_never_comes_says_so(tmp_path):
    with pytest.raises(RendezvousError, match=r"rank 1 waited 0.1 s for .*rank 0 did not start"):
        init_process_group(tmp_path / "rendezvous.json", RankEnv(1, 2), backend="gloo", timeout_s=0.1)


def test_an_interface_that_is_not_there_is_named_beside_those_that_are():
    with pytest.raises(ClusterError, match=r"'nope0' has no IPv4 address .*interfaces here: .*lo"):
        read_address("nope0")


def test_without_an_interface_the_host_name_is_published():
    assert read_address("") == socket.gethostname()
