import os
import random
from pathlib import Path

import pytest
from benchmarks.faults_soak import Fate, Found, choose_faults, make_result
from benchmarks.faults_soak_faults import FAULTS, ON_A_DISK_OF_ITS_OWN, Hit, fill
from benchmarks.faults_soak_share import Toll, add_tolls, find_efficiency, find_restart_s, make_toll, model_share

from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.log import Event
from windtunnel.records.goodput import AttemptGoodput, Bucket, Goodput, Mark, Phase, Trace
from windtunnel.records.trial import AttemptEnd, Verdict

TOLL = Toll(
    wall_s=1000.0,
    productive_s=800.0,
    up_s=850.0,
    down_s=150.0,
    steps=4000,
    stalls_s=(0.01, 0.02, 0.5),
    starts=15,
    unwarned=10,
)


def simulate_efficiency(*, interval_s, cost_s, mtbf_s, intervals):
    """Time up that so many intervals take when failures are random, and how many of those there were."""
    chance, up_s, failures = random.Random(5), 0.0, 0
    for _ in range(intervals):
        while (moment := chance.expovariate(1 / mtbf_s)) < interval_s + cost_s:
            up_s, failures = up_s + moment, failures + 1
        up_s += interval_s + cost_s
    return up_s, failures


def test_the_models_share_is_that_of_trials_that_fail_at_random():
    up_s, failures = simulate_efficiency(interval_s=8.0, cost_s=0.5, mtbf_s=60.0, intervals=20_000)
    assert find_efficiency(8.0, 0.5, count=failures, up_s=up_s) == pytest.approx(8.0 * 20_000 / up_s, abs=0.001)


def test_without_a_failure_only_checkpoints_cost():
    assert find_efficiency(9.0, 1.0, count=0, up_s=100.0) == 0.9


def test_an_interval_lost_at_each_failure_more_than_needed_opens_the_gap():
    up_s, failures = simulate_efficiency(interval_s=8.0, cost_s=0.02, mtbf_s=90.0, intervals=5_000)
    measured = 8.0 * 5_000 / (up_s + 8.0 * failures)
    model = find_efficiency(8.0, 0.02, count=failures, up_s=up_s + 8.0 * failures)
    assert model - measured > 0.05


def test_time_in_no_bucket_and_damage_that_was_not_planted_open_it_too():
    told = model_share(TOLL, interval_steps=40, damaged=0)
    unaccounted = Toll(**{**vars(TOLL), "wall_s": 1050.0})
    assert model_share(unaccounted, interval_steps=40, damaged=0) - unaccounted.share > told - TOLL.share + 0.03
    assert model_share(TOLL, interval_steps=40, damaged=5) < told - 0.03


def test_a_restart_that_others_cut_short_is_longer_than_their_mean():
    assert 150.0 / 15 < find_restart_s(TOLL) < 11.0


def test_an_attempt_that_trained_and_ended_unwarned_counts_and_no_other():
    def end(number, verdict):
        return AttemptEnd(number, 1, verdict, "", (), "7", 1.0)

    trained = Trace((Mark(Phase.TRAIN, 1.0, 0), Mark(Phase.STALL, 2.0, 5), Mark(Phase.TRAIN, 2.5, 5)))
    ends = {
        1: end(1, Verdict.LOST),
        2: end(2, Verdict.PREEMPTED),
        3: end(3, Verdict.LOST),
        5: end(5, Verdict.NODE_FAIL),
    }
    events = (Event("ended", 5, 9.0, "n0", 1, {"signalled_at": 8.0}),)
    facts = TrialFacts(events, (1, 2, 3, 4, 5), ends, None, "", None, 0.0)
    traces = {1: trained, 2: trained, 3: Trace(), 4: trained, 5: trained}
    seconds = {**dict.fromkeys(Bucket, 0.0), Bucket.PRODUCTIVE: 6.0, Bucket.QUEUE: 2.0, Bucket.STALL: 5.0}
    toll = make_toll(facts, traces, Goodput(13.0, seconds, 100, ()))
    assert (toll.unwarned, toll.wall_s, toll.up_s, toll.down_s) == (2, 13.0, 8.0, 5.0)
    assert toll.stalls_s == (0.5,) * 4


def test_the_time_until_a_kill_is_noticed_is_no_training():
    seconds = {**dict.fromkeys(Bucket, 0.0), Bucket.PRODUCTIVE: 6.0, Bucket.REPLAY: 4.0}
    row = AttemptGoodput(1, 0.0, 10.0, {}, 60)
    facts = TrialFacts((), (1,), {}, None, "", None, 0.0)
    traces = {1: Trace((Mark(Phase.TRAIN, 0.0, 0), Mark(Phase.TRAIN, 6.0, 60)))}
    toll = make_toll(facts, traces, Goodput(10.0, seconds, 60, (row,)), killed_at=[5.0, 7.0, 8.0, 20.0])
    assert (toll.up_s, toll.down_s) == (7.0, 3.0)


def test_tolls_of_trials_add_up():
    both = add_tolls([TOLL, TOLL])
    assert (both.wall_s, both.steps, both.unwarned, both.share) == (2000.0, 8000, 20, TOLL.share)
    assert len(both.stalls_s) == 6


def test_faults_of_a_trial_that_ended_otherwise_count_against_us():
    hits = (Hit("a rank killed", 0, 1.0), Hit("a rank killed", 1, 2.0), Hit("slurmd killed", 1, 3.0))
    found = Found(hits, (Fate(True, TOLL), Fate(False, None)), damaged=0, breaks=1, every=40, wall_s=60.0)
    result = make_result(found)
    assert result.figures["soak_bit_identical"] == pytest.approx(1 / 3)
    assert result.cases == {"soak_bit_identical": 3, "soak_goodput_gap": 3}
    rows = {row.name: row.median for row in result.rows}
    assert rows["soak: as without a rank killed"] == 0.5
    assert rows["soak: faults a minute"] == 3.0


def test_a_disk_is_filled_only_where_it_is_a_trials_own():
    assert set(choose_faults(quick=False, limited=True)) == set(FAULTS)
    assert set(FAULTS) - set(choose_faults(quick=False, limited=False)) == set(ON_A_DISK_OF_ITS_OWN)
    assert sum(weight for weight, _ in FAULTS.values()) == 100


def test_a_full_disk_is_told_from_one_with_room(tmp_path):
    with (tmp_path / "ballast").open("wb") as file:
        assert fill(file.fileno())
    with Path("/dev/full").open("r+b", buffering=0) as full:
        assert not fill(full.fileno())
        assert os.fstat(full.fileno()).st_size == 0
