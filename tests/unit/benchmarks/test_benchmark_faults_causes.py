from dataclasses import replace

from benchmarks.faults_causes import (
    EXPECTED,
    FRAIL,
    NODE,
    PREEMPTION,
    REQUEUE,
    SCANCEL,
    Fate,
    make_result,
    make_victim,
)

from windtunnel.records.trial import AttemptEnd, Verdict


def fate(cause, *, attempts=1, submissions=1, done=False):
    verdict, (evidence, *_) = EXPECTED[cause]
    return Fate(cause, AttemptEnd(1, 75, verdict, evidence, ("n0",), "7", 1.0), attempts, submissions, done)


def test_a_cause_is_right_when_the_attempts_end_says_so_in_its_words():
    known = fate(REQUEUE)
    assert known.end is not None
    other = replace(known, end=replace(known.end, evidence="preempted by Slurm"))
    assert [each.right for each in (known, other, replace(known, end=None))] == [True, False, False]


def test_a_cancelled_trial_that_began_or_was_submitted_again_counts_against_us():
    fates = [fate(SCANCEL), fate(SCANCEL, attempts=2), fate(SCANCEL, submissions=2), fate(SCANCEL)]
    result = make_result(fates)
    assert result.figures == {"causes_right_fraction": 1.0, "requeued_after_scancel": 0.5}
    assert result.cases == {"causes_right_fraction": 4, "requeued_after_scancel": 4}


def test_the_table_tells_of_each_cause_and_whether_its_trials_went_on():
    result = make_result([fate(SCANCEL), fate(PREEMPTION, attempts=2, done=True)])
    rows = {row.name: row.median for row in result.rows}
    assert rows == {"told right: scancel": 1, "told right: preemption": 1, "completed afterwards: preemption": 1}


def test_a_trial_whose_node_will_be_lost_has_it_to_itself_and_preemptions_are_of_both_kinds():
    lost = make_victim("lost", NODE, 0, of=0)
    assert (lost.shape.partition, lost.shape.cpus_per_rank) == (FRAIL, 8)
    assert {make_victim("p", PREEMPTION, number, of=1).shape.partition for number in range(4)} == {"spare", "cheap"}
    assert EXPECTED[NODE][0] is Verdict.NODE_FAIL
