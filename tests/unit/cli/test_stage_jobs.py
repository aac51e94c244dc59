import asyncio
import sys
from types import ModuleType

import pytest

from windtunnel.cli.stage_jobs import GONE_AFTER_S, SETTLE_S, Answer, StageStates, mend_plugin, settle_answers


@pytest.mark.parametrize("told", ["CANCELLED by 1000", "CANCELLED+", "CANCELLED"])
def test_a_cancelled_job_is_one_whoever_cancelled_it(told: str) -> None:
    assert StageStates().settle({"7": told, "8": "RUNNING"}, now=0) == {"7": "CANCELLED", "8": "RUNNING"}


def test_a_preempted_job_runs_on_until_slurm_has_had_time_to_start_it_again() -> None:
    jobs = StageStates()
    told = [jobs.settle({"7": "PREEMPTED"}, now=now)["7"] for now in (0, SETTLE_S - 1, SETTLE_S)]
    assert told == ["RUNNING", "RUNNING", "CANCELLED"]


def test_a_job_that_was_started_again_in_between_is_not_given_up() -> None:
    jobs = StageStates()
    states = ["PREEMPTED", "PENDING", "PREEMPTED"]
    told = [jobs.settle({"7": state}, now=at)["7"] for at, state in zip((0, 50, 100), states, strict=True)]
    assert told == ["RUNNING", "PENDING", "RUNNING"]


def test_an_unknown_state_is_no_success() -> None:
    jobs = StageStates()
    assert jobs.settle({"7": "UNKNOWN"}, now=0) == {"7": "RUNNING"}
    assert jobs.settle({"7": "UNKNOWN"}, now=SETTLE_S) == {"7": "ERROR"}


def test_a_job_whose_record_is_gone_is_not_waited_for() -> None:
    jobs = StageStates()
    jobs.settle({"7": "RUNNING"}, now=0)
    assert jobs.settle({}, now=GONE_AFTER_S) == {}
    assert jobs.settle({}, now=GONE_AFTER_S + 1) == {"7": "ERROR"}


def test_where_accounting_is_off_squeue_is_asked() -> None:
    asked = []

    async def ask(command: str, _: object) -> Answer:
        asked.append(command)
        return (None, None) if command.startswith("sacct") else ({"7": "COMPLETED"}, 0.1)

    mended = settle_answers(ask, lambda name: f"squeue --name {name}", clock=lambda: 0.0)
    assert asyncio.run(mended("sacct --name run-1", None)) == ({"7": "COMPLETED"}, 0.1)
    assert asked == ["sacct --name run-1", "squeue --name run-1"]


def test_a_slurm_that_does_not_answer_says_nothing_of_any_job() -> None:
    async def ask(_: str, __: object) -> Answer:
        return None, None

    assert asyncio.run(settle_answers(ask, None)("sacct --name run-1", None)) == (None, None)


def test_the_installed_plugin_asks_through_us_once_and_a_process_without_it_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "snakemake_executor_plugin_slurm"
    monkeypatch.delitem(sys.modules, name, raising=False)
    mend_plugin()
    assert name not in sys.modules
    plugin = ModuleType(name)
    vars(plugin).update(query_job_status=asyncio.sleep, query_job_status_squeue=str)
    monkeypatch.setitem(sys.modules, name, plugin)
    mend_plugin()
    mended = plugin.query_job_status
    assert mended is not asyncio.sleep
    mend_plugin()
    assert plugin.query_job_status is mended


def test_the_plugin_that_is_pinned_has_what_is_mended() -> None:
    import snakemake_executor_plugin_slurm as plugin

    assert plugin.query_job_status_sacct("run-1").split()[-1] == "run-1"
    assert "--name run-1" in plugin.query_job_status_squeue("run-1")
    assert asyncio.iscoroutinefunction(plugin.query_job_status)
