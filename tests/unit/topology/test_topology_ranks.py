from pathlib import Path

import pytest

from windtunnel.records.cluster import Node, Topology
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.topology.collectives_rank import allreduce_busbw_gbps, choose_repeats
from windtunnel.topology.ranks import Measurement, render_hostfile, render_rank_command, render_srun
from windtunnel.topology.run import plan_measurement

NODES = tuple(Node(f"n{i}", 2, 100, 4, "IDLE", ("spine", f"leaf{i % 2}")) for i in range(4))
TOPOLOGY = Topology("debug", "slurm", NODES, None, "f")
SETTINGS = ClusterSettings(kind="slurm", partition="debug", network_interface="eth0")


def test_several_nodes_get_one_rank_each_in_the_order_of_leaves():
    measurement = plan_measurement(SETTINGS, TOPOLOGY, ("n0", "n1", "n2", "n3"))
    assert measurement.hosts == ("n0", "n2", "n1", "n3")
    assert (measurement.ranks_per_node, measurement.backend, measurement.network_interface) == (1, "gloo", "eth0")


def test_a_lone_node_gets_two_ranks():
    assert plan_measurement(SETTINGS, TOPOLOGY, ("n3",)).ranks_per_node == 2


def test_the_host_file_has_a_line_a_rank():
    assert render_hostfile(Measurement(("n0", "n2"), ranks_per_node=2)) == "n0\nn0\nn2\nn2\n"


def test_srun_asks_for_all_ranks_in_the_host_files_order():
    argv = render_srun(Measurement(("n0", "n2"), ranks_per_node=2), ["true"])
    assert {"--nodes=2", "--ntasks=4", "--distribution=arbitrary"} <= set(argv)
    assert argv[0] == "srun"
    assert argv[-1] == "true"


def test_a_rank_is_told_its_sizes_and_files():
    measurement = Measurement(("n0",), 2, sizes_bytes=(8, 16), options=("--least", "3"))
    argv = render_rank_command(measurement, rendezvous=Path("/s/r"), out=Path("/s/o"))
    assert argv[1:3] == ["-m", "windtunnel.topology.collectives_rank"]
    assert " ".join(argv[3:]) == "--rendezvous /s/r --out /s/o --backend gloo --sizes 8 16 --least 3"


def test_busbw_is_that_of_nccl_tests():
    assert allreduce_busbw_gbps(8_000_000_000, 8, 2.0) == pytest.approx(7.0)
    assert allreduce_busbw_gbps(4_000_000_000, 2, 1.0) == pytest.approx(4.0)


def test_repeats_fit_the_budget_within_bounds():
    assert choose_repeats(0.1, budget_s=2, least=3, most=50) == 20
    assert choose_repeats(5.0, budget_s=2, least=3, most=50) == 3
    assert choose_repeats(0.0, budget_s=2, least=3, most=50) == 50
