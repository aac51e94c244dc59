import json
from dataclasses import asdict, replace

import pytest

from windtunnel.attempt.health import NodeFacts, Wants, describe_unfit, judge_nodes, parse_facts
from windtunnel.device.probe import FEW_GPU_FIELDS
from windtunnel.records.trial import NodeFault, Verdict

WANTS = Wants(cpus=4, memory_mib=1000, gpus=0)
WELL = NodeFacts(
    node="n0",
    cpus=8,
    cpus_online=8,
    memory_limit_mib=1000,
    memory_total_mib=16000,
    shm_mib=8000,
    visible=None,
    folder={"path": "/runs/7", "free_mib": 9000, "write_s": 0.01, "skew_s": 0.02},
    scratch={"path": "/tmp", "free_mib": 9000, "write_s": 0.01, "skew_s": 0.0},
    gpus={},
    xids=[],
)
READ_ONLY = {"path": "/runs/7", "errno": "EROFS", "error": "Read-only file system"}


def place(**changes: object) -> dict[str, object]:
    return {**WELL.folder, **changes}


def judge(*told: NodeFacts, hosts: tuple[str, ...] = (), wants: Wants = WANTS, words: str = ""):
    return judge_nodes(told, hosts or tuple(facts.node for facts in told), wants, words=words)


def test_a_well_node_is_found_well() -> None:
    health = judge(WELL)
    assert (health.faults, health.storage, health.notes, describe_unfit(health)) == ((), "", (), None)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"cpus": 2}, "2 CPUs may be used, of 8; the job asked for 4"),
        ({"memory_limit_mib": 900}, "its control group allows 900 MiB; the job asked for 1000"),
        ({"shm_mib": 3}, "/dev/shm has 3 MiB left"),
        ({"scratch": {**WELL.scratch, "free_mib": 0}}, "/tmp has 0 MiB left"),
        ({"folder": place(skew_s=-90.0)}, "its clock is +90 s off the file system's"),
        (
            {"folder": {"path": "/runs/7", "late": 20.0}},
            "a small file in /runs/7 was not written within 20 s",
        ),
    ],
)
def test_what_may_pass_is_a_soft_fault(change, text: str) -> None:
    assert judge(replace(WELL, **change)).faults == (NodeFault("n0", text, hard=False),)


def test_a_node_that_alone_cannot_write_is_at_fault_and_hard() -> None:
    other = replace(WELL, node="n1", folder=READ_ONLY)
    health = judge(WELL, other)
    assert health.faults == (NodeFault("n1", "it cannot write in /runs/7: Read-only file system", hard=True),)
    verdict, evidence = describe_unfit(health) or (None, "")
    assert verdict is Verdict.NODE_FAIL
    assert evidence.startswith("node n1 is not fit: it cannot write in /runs/7")


def test_what_all_nodes_meet_is_no_nodes_fault() -> None:
    health = judge(replace(WELL, folder=READ_ONLY), replace(WELL, node="n1", folder=READ_ONLY))
    assert health.faults == ()
    assert (describe_unfit(health) or ("",))[0] is Verdict.CANCELLED


def test_a_full_disk_is_no_nodes_fault() -> None:
    full = {"path": "/runs/7", "errno": "ENOSPC", "error": "No space left on device"}
    verdict, evidence = describe_unfit(judge(replace(WELL, folder=full))) or (None, "")
    assert verdict is Verdict.CANCELLED
    assert "make room, then the same command goes on" in evidence


def test_more_cpus_or_memory_than_a_node_has_is_a_matter_of_slurms_configuration() -> None:
    health = judge(replace(WELL, cpus=2, cpus_online=2, memory_limit_mib=None, memory_total_mib=500))
    assert health.faults == ()
    assert health.notes == (
        "node n0: 2 CPUs may be used, of 2; the job asked for 4",
        "node n0: it has 500 MiB of memory; the job asked for 1000",
    )


@pytest.mark.parametrize(
    ("errno", "hard"), [("EROFS", [True]), ("EIO", [True]), ("ENOSPC", [False]), ("ENOENT", []), ("EACCES", [])]
)
def test_scratch_that_refuses_is_the_nodes_fault_unless_it_was_named_wrongly(errno: str, hard: list[bool]) -> None:
    health = judge(replace(WELL, scratch={"path": "/scratch", "errno": errno, "error": "it says so"}))
    assert [fault.hard for fault in health.faults] == hard
    assert health.notes == (() if hard else ("node n0: it cannot write in /scratch: it says so",))


def test_a_node_that_told_nothing_is_at_fault_with_what_the_launcher_says_of_it() -> None:
    words = "srun: error: n1: task 1: Exited with exit code 127\nsrun: error: n10: task 3: Killed\n"
    health = judge(WELL, hosts=("n0", "n1"), words=words)
    assert health.faults == (
        NodeFault("n1", "it did not answer: srun: error: n1: task 1: Exited with exit code 127", hard=False),
    )


@pytest.mark.parametrize(
    ("gpus", "text"),
    [
        ({"problem": "nvidia-smi: No devices were found"}, "nvidia-smi: No devices were found"),
        ({"late": 46.0}, "nvidia-smi did not answer within 46 s"),
        (
            {"fields": FEW_GPU_FIELDS, "rows": "0, GPU-1, NVIDIA A100, 00000000:3B:00.0\n"},
            "1 of the 2 GPUs asked for are there",
        ),
    ],
)
def test_gpus_that_are_not_there_are_a_hard_fault(gpus, text: str) -> None:
    health = judge(replace(WELL, gpus=gpus), wants=replace(WANTS, gpus=2))
    assert health.faults == (NodeFault("n0", text, hard=True),)


def test_without_nvidia_smi_nothing_is_said_of_gpus() -> None:
    health = judge(WELL, wants=replace(WANTS, gpus=2))
    assert (health.faults, len(health.notes)) == ((), 1)


def test_facts_are_found_among_other_output() -> None:
    assert parse_facts(f"module: a warning\n{json.dumps(asdict(WELL))}\n") == WELL
    assert parse_facts('{"node": "n0"}\n') is None
