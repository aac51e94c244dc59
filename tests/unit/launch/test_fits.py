from dataclasses import replace

import pytest

from windtunnel.launch.fits import find_delays, find_misfits
from windtunnel.records.cluster import Node
from windtunnel.records.plan import Shape
from windtunnel.slurm.limits import Association, Limits, Qos
from windtunnel.slurm.scontrol import Partition

SHAPE = Shape(2, 4, 2, 4, 4096, 60, "gpu", account="desk", qos="night")
GPU = Partition("gpu", "UP", ("n0", "n1"), 120, True)
NODES = tuple(Node(f"n{index}", 8, 16000, 4, "IDLE", ()) for index in range(2))
LIMITS = Limits(
    partitions=(GPU,),
    enforced=frozenset({"associations", "limits", "qos"}),
    user="trader",
    default_account="desk",
    associations=(Association("desk", "", ("normal", "night"), ""),),
    qos=(Qos("normal"), Qos("night")),
)


def test_a_shape_within_all_limits_fits() -> None:
    assert find_misfits(SHAPE, LIMITS, NODES) == []
    assert find_misfits(replace(SHAPE, account="", qos=""), LIMITS, NODES) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": "DRAIN"}, "partition gpu is DRAIN and takes no jobs"),
        ({"max_time_min": 30}, "cluster.time=01:00:00 is past 00:30:00, the MaxTime of partition gpu: set"),
        ({"max_nodes": 1}, "2 nodes are past MaxNodes=1 of partition gpu: lower parallelism.nodes"),
        ({"min_nodes": 4}, "2 nodes are below MinNodes=4 of partition gpu"),
        ({"max_cpus_per_node": 7}, "8 CPUs a node are past MaxCPUsPerNode=7"),
        ({"max_mem_per_node_mib": 4000}, "4096 MiB a node are past MaxMemPerNode=4000"),
        ({"allow_accounts": ("other",)}, "partition gpu is not for account 'desk'"),
        ({"deny_accounts": ("desk",)}, "partition gpu is not for account 'desk'"),
        ({"allow_qos": ("normal",)}, "partition gpu does not take QOS 'night'"),
        ({"deny_qos": ("night",)}, "partition gpu does not take QOS 'night'"),
    ],
)
def test_what_a_partition_never_runs_is_told_with_the_fix(changes: dict[str, object], message: str) -> None:
    limits = replace(LIMITS, partitions=(replace(GPU, **changes),))  # type: ignore[arg-type]
    (found,) = find_misfits(SHAPE, limits, NODES)
    assert message in found


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (replace(LIMITS, partitions=()), "partition 'gpu' does not exist on this cluster (none)"),
        (
            replace(LIMITS, associations=(Association("other", "", (), ""),)),
            "user trader has no account 'desk' here (has: other): set cluster.account",
        ),
        (
            replace(LIMITS, associations=(Association("desk", "", ("normal",), ""),)),
            "account 'desk' may not use QOS 'night' (may: normal): set cluster.qos",
        ),
        (
            replace(LIMITS, associations=(Association("desk", "", ("night",), "", max_time_min=30),)),
            "cluster.time=01:00:00 is past 00:30:00, the MaxWall of account 'desk'",
        ),
        (replace(LIMITS, qos=(Qos("night", max_time_min=30),)), "the MaxWall of QOS 'night'"),
        (replace(LIMITS, qos=(Qos("night", max_tres={"node": 1}),)), "node=2 is past node=1, the most that QOS"),
        (replace(LIMITS, qos=(Qos("night", max_tres={"gres/gpu": 4}),)), "gres/gpu=8 is past gres/gpu=4"),
        (replace(LIMITS, qos=(Qos("night", max_tres={"mem": 8000}),)), "mem=8192 is past mem=8000"),
        (replace(LIMITS, qos=(Qos("night", max_tres={"cpu": 15}),)), "cpu=16 is past cpu=15"),
    ],
)
def test_what_accounting_never_lets_run_is_told_with_the_fix(limits: Limits, message: str) -> None:
    (found,) = find_misfits(SHAPE, limits, NODES)
    assert message in found


def test_nodes_that_are_too_small_or_too_few_are_told() -> None:
    (found,) = find_misfits(SHAPE, LIMITS, NODES[:1])
    assert "2 nodes with 8 CPUs each are needed" in found
    (found,) = find_misfits(replace(SHAPE, gpus_per_node=8), LIMITS, NODES)
    assert "8 GPUs each are needed" in found


def test_all_that_is_wrong_is_told_at_once() -> None:
    limits = replace(LIMITS, partitions=(replace(GPU, max_time_min=30, max_nodes=1),), qos=(Qos("night", 10),))
    assert len(find_misfits(SHAPE, limits, NODES)) == 3


def test_a_site_without_accounting_has_the_partitions_limits_alone() -> None:
    assert find_misfits(SHAPE, Limits(partitions=(GPU,)), NODES) == []


def test_what_only_delays_is_no_misfit() -> None:
    down = replace(LIMITS, partitions=(replace(GPU, state="DOWN"),))
    assert find_misfits(SHAPE, down, NODES) == []
    assert find_delays(SHAPE, down, NODES) == ["partition gpu is DOWN: jobs wait until it is up"]
    dead = (NODES[0], replace(NODES[1], state="DOWN*"))
    assert find_delays(SHAPE, LIMITS, dead) == ["1 of 2 nodes of gpu are in service, 2 are needed"]
    assert find_delays(SHAPE, LIMITS, NODES) == []
