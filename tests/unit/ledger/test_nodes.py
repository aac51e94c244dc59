from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.log import Event
from windtunnel.ledger.nodes import (
    NODES,
    Exclusion,
    NodeFailure,
    append_failure,
    decide_exclusion,
    find_incidents,
    find_suspects,
    read_failures,
)
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase
from windtunnel.records.trial import AttemptEnd, Verdict
from windtunnel.settings.sweep import ExclusionSettings

HOUR = 3600.0
TEN = tuple(f"n{number}" for number in range(10))
DEFAULT = ExclusionSettings()


def failure(trial: str, *, began: float, at: float, node: str = "n3") -> NodeFailure:
    return NodeFailure(node, Verdict.NODE_FAIL, trial, "7", began, at)


TWICE = (failure("a", began=0, at=100), failure("b", began=200, at=300))


def test_a_node_that_failed_under_two_trials_is_left_out_for_a_time() -> None:
    assert decide_exclusion(TWICE, TEN, DEFAULT, now=400) == Exclusion(("n3",))
    assert decide_exclusion(TWICE, TEN, DEFAULT, now=300 + 12 * HOUR) == Exclusion()
    assert decide_exclusion(TWICE[:1], TEN, DEFAULT, now=400) == Exclusion()


def test_one_trial_that_kills_its_node_twice_is_not_the_nodes_failure() -> None:
    twice = (failure("a", began=0, at=100), failure("a", began=200, at=300))
    assert decide_exclusion(twice, TEN, DEFAULT, now=400) == Exclusion()


def test_one_outage_under_many_jobs_is_one_failure() -> None:
    outage = [failure(name, began=0, at=100 + number) for number, name in enumerate("abcd")]
    assert len(find_incidents(outage)) == 1
    assert decide_exclusion(outage, TEN, DEFAULT, now=400) == Exclusion()


def test_failures_more_than_a_day_apart_do_not_add_up() -> None:
    apart = (failure("a", began=0, at=100), failure("b", began=24 * HOUR, at=100 + 24 * HOUR + 1))
    assert decide_exclusion(apart, TEN, DEFAULT, now=apart[1].at + 1) == Exclusion()


def test_at_most_a_tenth_of_the_partition_is_left_out_and_the_last_to_fail_first() -> None:
    both = (*TWICE, *(replace(each, node="n5", at=each.at + 1, began_at=each.began_at + 2) for each in TWICE))
    assert decide_exclusion(both, TEN, DEFAULT, now=400) == Exclusion(("n5",), ("n3",))
    twenty = tuple(f"n{number}" for number in range(20))
    assert decide_exclusion(both, twenty, DEFAULT, now=400) == Exclusion(("n3", "n5"))


def test_a_partition_of_fewer_than_ten_nodes_loses_none_unless_its_share_is_raised() -> None:
    assert decide_exclusion(TWICE, TEN[:8], DEFAULT, now=400) == Exclusion((), ("n3",))
    raised = ExclusionSettings(at_most=0.125)
    assert decide_exclusion(TWICE, TEN[:8], raised, now=400) == Exclusion(("n3",))


def test_a_job_still_finds_the_nodes_that_it_needs() -> None:
    assert decide_exclusion(TWICE, TEN, DEFAULT, now=400, needed=10) == Exclusion((), ("n3",))


def test_a_node_of_another_partition_is_not_named_to_sbatch() -> None:
    assert decide_exclusion(TWICE, tuple(f"g{number}" for number in range(10)), DEFAULT, now=400) == Exclusion()


def test_the_record_is_shared_and_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    assert read_failures(tmp_path) == ()
    append_failure(tmp_path, TWICE[0])
    with (tmp_path / NODES).open("a") as file:
        file.write('{"node": "n\n')
    append_failure(tmp_path, TWICE[1])
    assert read_failures(tmp_path) == TWICE


@pytest.mark.parametrize(
    ("verdict", "job", "ended", "suspects"),
    [
        (Verdict.NODE_FAIL, JobSight(Phase.ENDED, Verdict.NODE_FAIL), False, ("n3",)),
        (Verdict.LOST, JobSight(Phase.ENDED), False, ("n3",)),
        (Verdict.LOST, UNSEEN, True, ("n3",)),
        (Verdict.LOST, UNSEEN, False, ()),
        (Verdict.PREEMPTED, JobSight(Phase.ENDED, Verdict.PREEMPTED), True, ()),
    ],
)
def test_a_host_is_suspected_only_where_something_points_to_it(
    verdict: Verdict, job: JobSight, ended: bool, suspects: tuple[str, ...]
) -> None:
    ends = {1: AttemptEnd(1, 1, verdict, "", ("n3",), "7", 1.0)} if ended else {}
    facts = make_facts(event("submitted"), event("started", 1, granted=["n3"]), attempts=(1,), ends=ends)
    assert find_suspects(facts, job, verdict) == suspects


def test_a_job_that_never_came_up_points_to_where_slurm_put_it() -> None:
    facts = make_facts(event("started", 1, granted=["n1"]), event("submitted"), attempts=(1,))
    job = JobSight(Phase.ENDED, Verdict.NODE_FAIL, hosts=("n5",))
    assert find_suspects(facts, job, Verdict.NODE_FAIL) == ("n5",)


def event(kind: str, attempt: int = 0, **details: Any) -> Event:
    return Event(kind, attempt, 0.0, "login", 1, details)


def make_facts(*events: Event, attempts: tuple[int, ...], ends: dict[int, AttemptEnd] | None = None) -> TrialFacts:
    return TrialFacts(events, attempts, ends or {}, None, "", None, 0.0)


def test_one_hard_fault_leaves_a_node_out_at_once_also_of_a_small_partition() -> None:
    once = (replace(failure("a", began=0, at=100), hard=True),)
    assert decide_exclusion(once, TEN[:4], DEFAULT, now=101) == Exclusion(("n3",))
    assert decide_exclusion(once, TEN[:4], DEFAULT, now=100 + 12 * HOUR) == Exclusion()
    assert decide_exclusion(once, TEN[:4], DEFAULT, now=101, needed=4) == Exclusion((), ("n3",))
    assert decide_exclusion(once, TEN[:4], ExclusionSettings(at_most=0), now=101) == Exclusion((), ("n3",))
