import pytest

from windtunnel.ledger.reconcile import Phase
from windtunnel.records.trial import Verdict
from windtunnel.slurm.accounting import AccountedJob, parse_accounting
from windtunnel.slurm.queue import QueuedJob, base_of, parse_queue
from windtunnel.slurm.states import NEVER_STARTS, is_held, is_known, read_state_name, sight_of_state

# `squeue --noheader --array --states=all --format='%i|%T|%N|%r|%j'`, Slurm 22.05.8
QUEUE = """5|PENDING||PartitionConfig|wrap
7_0|RUNNING|n0|None|windtunnel-quickstart-14881f1a
7_1|PENDING||Resources|windtunnel-quickstart-14881f1a
6|CANCELLED|n0|None|odd|name
"""
# `SLURM_TIME_FORMAT=%s sacct --noheader --parsable2 --allocations` with our --format
ACCOUNTING = """6|CANCELLED by 0|0:0|2|n0|1764518400|None
7_0|COMPLETED|0:0|13|n[0-1]|1764518400|None
8|NODE_FAIL|1:0|40|n3|1764518400|None
9|RUNNING|0:0|40|n3|Unknown|None
"""


def test_queued_jobs_are_found_by_id_and_array_task() -> None:
    jobs = parse_queue(QUEUE)
    assert list(jobs) == ["5", "7_0", "7_1", "6"]
    assert jobs["7_0"] == QueuedJob("7_0", "RUNNING", "n0", "None", "windtunnel-quickstart-14881f1a")
    assert (jobs["5"].state, jobs["5"].reason, jobs["6"].name) == ("PENDING", "PartitionConfig", "odd|name")


def test_waiting_tasks_that_squeue_prints_as_a_range_are_told_apart() -> None:
    assert list(parse_queue("9_[0-2,5%2]|PENDING||Priority|x\n")) == ["9_0", "9_1", "9_2", "9_5"]


def test_an_empty_queue_has_no_jobs() -> None:
    assert parse_queue("") == {}


def test_accounting_is_read_without_steps() -> None:
    jobs = parse_accounting(ACCOUNTING + "8.batch|FAILED|1:0|40|n3|1764518400|\n")
    assert jobs["7_0"] == AccountedJob("7_0", "COMPLETED", "0:0", 13, "n[0-1]", 1764518400.0, "None")
    assert list(jobs) == ["6", "7_0", "8", "9"]
    assert jobs["9"].ended_at == 0


def test_an_array_tasks_own_id_is_the_arrays() -> None:
    assert (base_of("12_3"), base_of("12")) == ("12", "12")


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ("CANCELLED by 1000", Verdict.CANCELLED),
        ("CANCELLED+", Verdict.CANCELLED),
        ("DEADLINE", Verdict.TIMEOUT),
        ("BOOT_FAIL", Verdict.NODE_FAIL),
        ("TIMEOUT", Verdict.TIMEOUT),
        ("OUT_OF_MEMORY", Verdict.OOM),
        ("PREEMPTED", Verdict.PREEMPTED),
        ("NODE_FAIL", Verdict.NODE_FAIL),
        ("COMPLETED", None),
        ("FAILED", None),
    ],
)
def test_a_jobs_end_explains_but_never_proves_success(state: str, verdict: Verdict | None) -> None:
    sight = sight_of_state(state, job_id="7", detail="on n0")
    assert (sight.phase, sight.verdict) == (Phase.ENDED, verdict)
    assert sight.evidence == f"Slurm says {read_state_name(state)} of job 7 (on n0)"


@pytest.mark.parametrize("state", ["PENDING", "REQUEUED", "CONFIGURING", "SPECIAL_EXIT", "REQUEUE_HOLD"])
def test_a_waiting_job_is_queued(state: str) -> None:
    assert sight_of_state(state, job_id="7").phase == Phase.QUEUED


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETING", "SUSPENDED", "A_STATE_OF_NEXT_YEAR"])
def test_any_other_state_is_alive(state: str) -> None:
    assert sight_of_state(state, job_id="7").phase == Phase.RUNNING


@pytest.mark.parametrize(
    ("state", "reason", "held"),
    [
        ("PENDING", "JobHeldUser", True),
        ("PENDING", "JobHeldAdmin", True),
        ("PENDING", "launch failed requeued held", True),
        ("SPECIAL_EXIT", "None", True),
        ("REQUEUE_HOLD", "None", True),
        ("PENDING", "Resources", False),
        ("RUNNING", "None", False),
        ("REQUEUED", "BeginTime", False),
    ],
)
def test_a_held_job_is_told_from_one_that_waits_its_turn(state: str, reason: str, held: bool) -> None:
    assert is_held(state, reason) == held


def test_a_running_jobs_own_remark_is_kept() -> None:
    assert sight_of_state("SUSPENDED", job_id="7", detail="on n0").evidence == "on n0"
    assert not is_known("A_STATE_OF_NEXT_YEAR")


def test_waiting_for_room_is_not_hopeless() -> None:
    assert not NEVER_STARTS & {"Resources", "Priority", "JobHeldUser", "ReqNodeNotAvail", "QOSMaxJobsPerUserLimit"}
