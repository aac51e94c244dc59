"""The doctor's judgement of partitions, on lines that real clusters printed."""

import pytest

from windtunnel.cli.doctor.findings import Level
from windtunnel.cli.doctor.partition import (
    choose_partition,
    judge_bounds,
    judge_nodes,
    judge_partition,
    judge_test_only,
    read_fields,
)
from windtunnel.records.cluster import Node
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.slurm.limits import Bound
from windtunnel.slurm.scontrol import parse_partitions

MAIN = (
    "PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A "
    "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED "
    "MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[0-1] PriorityJobFactor=1 PriorityTier=1 RootOnly=NO "
    "ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=REQUEUE State=UP TotalCPUs=16 TotalNodes=2 "
    "SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED\n"
)
SHORT = (
    MAIN.replace("=main", "=debug")
    .replace("Default=YES", "Default=NO")
    .replace("MaxTime=UNLIMITED", "MaxTime=00:30:00")
)


def cluster(**values: object) -> ClusterSettings:
    return ClusterSettings.model_validate({"kind": "slurm", "partition": "main", **values})


def judge(text: str, **values: object) -> dict[str, Level]:
    partition, fields = parse_partitions(text)[0], read_fields(text)
    return {finding.subject: finding.level for finding in judge_partition(partition, fields, cluster(**values))}


def nodes(*states: str, gpus: int = 0) -> list[Node]:
    return [Node(f"n{number}", 8, 16000, gpus, state, ()) for number, state in enumerate(states)]


def test_the_default_partition_is_taken_where_none_is_named():
    partitions = parse_partitions(SHORT + MAIN)
    assert choose_partition(partitions, "")[0].name == "main"
    assert choose_partition(partitions, "debug")[0].name == "debug"
    chosen, finding = choose_partition(partitions, "night")
    assert chosen is None
    assert (finding.level, finding.found) == (Level.FAIL, "night, of debug, main")


def test_a_partition_that_is_down_warns():
    assert choose_partition(parse_partitions(MAIN.replace("State=UP", "State=DOWN")), "")[1].level == Level.WARN


def test_a_time_limit_past_the_partitions_fails():
    assert judge(SHORT, time="00:30:00") == {"time limit": Level.OK}
    assert judge(SHORT, time="1:00:00") == {"time limit": Level.FAIL}


@pytest.mark.parametrize(
    ("old", "new", "subject"),
    [
        ("OverSubscribe=NO", "OverSubscribe=EXCLUSIVE", "sharing"),
        ("OverSubscribe=NO", "OverSubscribe=FORCE:4", "sharing"),
        ("OverSubscribe=NO", "Shared=FORCE:4", "sharing"),
        ("PreemptMode=REQUEUE", "PreemptMode=CANCEL", "preemption"),
        ("PreemptMode=REQUEUE", "PreemptMode=SUSPEND", "preemption"),
    ],
)
def test_sharing_and_preemption_that_cost_truth_or_time_warn(old, new, subject):
    assert judge(MAIN.replace(old, new))[subject] == Level.WARN


def test_nodes_that_cannot_be_used_warn_and_none_left_fails():
    some, _ = judge_nodes(nodes("IDLE", "DOWN*+DRAIN", "MIXED"), cluster())
    assert (some.level, "n1 cannot be used" in some.effect) == (Level.WARN, True)
    assert judge_nodes(nodes("DOWN", "IDLE+DRAIN"), cluster())[0].level == Level.FAIL
    assert judge_nodes(nodes("IDLE", "ALLOCATED"), cluster())[0].level == Level.OK


def test_gpus_that_are_not_asked_for_warn_and_ones_that_are_not_there_fail():
    assert judge_nodes(nodes("IDLE", gpus=4), cluster())[1].level == Level.WARN
    assert judge_nodes(nodes("IDLE", gpus=4), cluster(gpus_per_rank=1))[1].level == Level.OK
    assert judge_nodes(nodes("IDLE"), cluster(gpus_per_rank=1))[1].level == Level.FAIL
    assert judge_nodes(nodes("IDLE"), cluster())[1].found == "none"


def test_the_lowest_of_the_limits_on_jobs_is_told():
    bounds = [Bound(10000, "MaxJobCount of the cluster"), Bound(4, "MaxSubmitJobs of account 'desk'")]
    finding = judge_bounds(bounds, max_array_tasks=1001)
    assert finding.level == Level.WARN
    assert finding.found == "4 (MaxSubmitJobs of account 'desk'); 1001 an array"


def test_sbatchs_own_words_are_told():
    refused = (
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n"
    )
    finding = judge_test_only(1, refused)
    assert finding.level == Level.FAIL
    assert finding.found.startswith("Batch job submission failed: Invalid account")
    taken = "sbatch: Job 7 to start at 2026-11-30T16:17:38 using 2 processors on nodes n[0-1] in partition main\n"
    assert judge_test_only(0, taken).found.startswith("would start at 2026-11-30T16:17:38")
