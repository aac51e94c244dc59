import pytest

from windtunnel.gres import count_gpus
from windtunnel.slurm.scontrol import (
    Partition,
    parse_config,
    parse_nodes,
    parse_partitions,
    parse_switches,
)

NODES = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=4  CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=2.11 AvailableFeatures=(null)"
    " Gres=gpu:a100:4(S:0-1) NodeAddr=n1 NodeHostName=n1 OS=Linux 6.18.44 #1 SMP @0  RealMemory=1000 AllocMem=0"
    " State=IDLE ThreadsPerCore=1 Partitions=p  CfgTRES=cpu=8,mem=1000M,billing=8 AllocTRES= \n"
    "NodeName=n2 CPUTot=16 Gres=(null) RealMemory=2000 State=DOWN*+DRAIN"
    " Reason=State=BAD disk, see mail CPUTot=3 [root@2026-11-30T10:00:00]\n"
)

PARTITIONS = (
    "PartitionName=debug AllowGroups=ALL Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=n[0-7] State=UP"
    " TotalCPUs=64 JobDefaults=(null)\n"
    "PartitionName=low Default=NO MaxTime=1-00:30:00 Nodes=n0,n4 State=DRAIN TRES=cpu=2\n"
    "PartitionName=empty Default=NO MaxTime=30:00 Nodes=(null) State=INACTIVE\n"
)


def test_nodes_are_read_with_their_gpus_from_gres():
    one, two = parse_nodes(NODES)
    assert (one.name, one.cpus, one.mem_mib, one.gpus, one.state) == ("n1", 8, 1000, 4, "IDLE")
    assert (two.name, two.cpus, two.gpus, two.state) == ("n2", 16, 0, "DOWN*+DRAIN")


def test_words_of_a_reason_do_not_overwrite_a_nodes_fields():
    assert parse_nodes(NODES)[1].cpus == 16


def test_partitions_are_read_with_their_limits():
    assert parse_partitions(PARTITIONS) == (
        Partition("debug", "UP", tuple(f"n{i}" for i in range(8)), None, True),
        Partition("low", "DRAIN", ("n0", "n4"), 1470, False),
        Partition("empty", "INACTIVE", (), 30, False),
    )


def test_switches_keep_their_level_hosts_and_children():
    text = (
        "SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=n[0,2]\n"
        "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1,3]\n"
        "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=leaf[0-1]\n"
    )
    leaf0, _, spine = parse_switches(text)
    assert (leaf0.level, leaf0.nodes, leaf0.switches) == (0, ("n0", "n2"), ())
    assert (spine.level, spine.switches) == (1, ("leaf0", "leaf1"))


def test_records_that_share_a_line_are_told_apart():
    switches = parse_switches("SwitchName=a Level=0 Nodes=n0 SwitchName=b Level=0 Nodes=n1\n")
    assert [(switch.name, switch.nodes) for switch in switches] == [("a", ("n0",)), ("b", ("n1",))]


def test_a_block_is_a_leaf_and_an_aggregated_block_is_none():
    text = (
        "BlockName=b1 BlockIndex=0 Nodes=n[0-1] BlockSize=2\n"
        "BlockName=b2 BlockIndex=1 Nodes=n[2-3] BlockSize=2\n"
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[0-3] BlockSize=4\n"
    )
    assert [(switch.name, switch.level) for switch in parse_switches(text)] == [("b1", 0), ("b2", 0)]


def test_no_text_is_no_records():
    assert parse_switches("") == parse_nodes("\n") == parse_partitions("") == ()


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:a100:4(S:0-1),lscratch:3200", 4),
        ("gpu:a100:4(S:0,2-3),gpu:a40:2(S:4-5)", 6),
        ("gpu:(null):8(IDX:0-7)", 8),
        ("gpu", 1),
        ("gpu:1g.20gb", 1),
        ("gres/gpumem:10G", 0),
        ("gres/gpu:h200:8", 8),
        ("(null)", 0),
    ],
)
def test_gpus_are_counted_in_a_gres_string(gres, gpus):
    assert count_gpus(gres) == gpus


def test_configuration_lines_become_a_mapping():
    text = "Configuration data as of 2026-11-30T10:00:00\nSelectType              = select/cons_tres\n"
    assert parse_config(text) == {"SelectType": "select/cons_tres"}
