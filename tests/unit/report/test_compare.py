import math

import pytest

from fabricated_study import Fake, make_entry, make_ranking
from windtunnel.records.trial import AttemptEnd, Verdict
from windtunnel.report.rows import lost_node_seconds
from windtunnel.report.terminal import render_terminal
from windtunnel.report.wording import (
    NONE,
    describe_against_base_rate,
    describe_certainty,
    describe_decision,
    format_loss,
)


def labels(ranking):
    return [row.label for row in ranking.rows]


SLOW_GOOD = Fake("slow good", loss=0.70, samples_per_s=100.0, node_seconds=900.0)
FAST_BAD = Fake("fast bad", loss=0.90, samples_per_s=900.0, node_seconds=600.0)
CHEAP = Fake("cheap", loss=0.80, samples_per_s=500.0, node_seconds=60.0)


@pytest.mark.parametrize(
    ("criterion", "order"),
    [
        ("validation_loss", ["slow good", "cheap", "fast bad"]),
        ("samples_per_s", ["fast bad", "cheap", "slow good"]),
        ("cost", ["cheap", "fast bad", "slow good"]),
    ],
)
def test_trials_are_ranked_by_what_the_settings_name(criterion, order):
    ranking = make_ranking(SLOW_GOOD, FAST_BAD, CHEAP, criterion=criterion)
    assert labels(ranking) == order
    assert [ranking.rank_of(row) for row in ranking.rows] == [1, 2, 3]
    assert describe_decision(ranking).startswith(f"Choose {order[0]}: ")


def test_decision_names_the_next_and_how_far_it_is():
    text = describe_decision(make_ranking(SLOW_GOOD, CHEAP))
    assert "0.7000 is the lowest of 2 configurations, 13 % below the next (cheap, 0.8000)" in text
    assert "100 samples/s" in text
    assert "p99 latency of 190 us" in text
    assert "0.25 node-hours (0.50 USD)" in text
    assert text.count(". ") == 0


def test_failed_waiting_and_diverged_trials_have_no_rank():
    failed = Fake("failed", verdict=Verdict.FAILED, evidence="it broke")
    diverged = Fake("diverged", loss=math.nan)
    ranking = make_ranking(failed, diverged, CHEAP, planned=(Fake("late"),))
    assert labels(ranking)[0] == "cheap"
    assert [ranking.rank_of(row) for row in ranking.rows] == [1, None, None, None]
    assert {row.label: row.verdict for row in ranking.rows}["late"] == "WAITING"


def test_no_completed_trial_gives_no_recommendation_and_says_so():
    ranking = make_ranking(Fake("a", verdict=Verdict.FAILED), Fake("b", verdict=Verdict.OOM))
    assert ranking.recommendation is None
    assert describe_decision(ranking) == "No recommendation: none of 2 trials completed."
    assert describe_certainty(ranking) == ""


def test_no_trial_at_all_is_said_too():
    assert describe_decision(make_ranking()) == "No recommendation: no trial has been run yet."


def test_only_diverged_trials_are_not_recommended():
    assert "none has a finite validation loss" in describe_decision(make_ranking(Fake("a", loss=math.inf)))


def test_a_single_completed_trial_is_called_the_only_one():
    assert "the only configuration that completed" in describe_decision(make_ranking(CHEAP))


def test_one_repeat_without_a_standard_error_says_that_noise_is_unknown():
    ranking = make_ranking(SLOW_GOOD, CHEAP)
    assert ranking.noise.threshold is None
    assert "One repeat: nothing here measures how far validation loss moves" in describe_certainty(ranking)
    assert "accuracy differences below 5.6 points cannot be told" in describe_certainty(ranking)


WAVE = (0.1, -0.1, 0.1, -0.1)


def test_one_repeat_with_losses_by_part_says_what_cannot_be_told():
    ranking = make_ranking(Fake("a", 0.700, swings=WAVE), Fake("b", 0.701, swings=WAVE[::-1]))
    assert ranking.noise.threshold == pytest.approx(3.182 * 0.4 / 12**0.5, rel=1e-3)  # t of 3; +-0.2 four times
    assert "differences in validation loss below 0.37 cannot be told (95 %, paired" in describe_certainty(ranking)
    assert "noise hides its lead over the next (b, 0.7010)" in describe_decision(ranking)


def test_a_small_difference_is_told_where_both_find_the_same_parts_hard():
    twin = tuple(swing + 0.0001 * number for number, swing in enumerate(WAVE))
    ranking = make_ranking(Fake("a", 0.700, swings=WAVE), Fake("b", 0.701, swings=twin, samples_per_s=9000.0))
    assert ranking.noise.threshold < 0.001
    assert describe_decision(ranking).startswith("Choose a: ")


def test_the_difference_that_cannot_be_told_is_that_of_the_pair_chosen_from():
    twin = tuple(swing + 1e-6 * number for number, swing in enumerate(WAVE))
    close, far = Fake("b", 0.7001, swings=twin), Fake("c", 0.701, swings=WAVE[::-1], samples_per_s=9000.0)
    ranking = make_ranking(Fake("a", 0.700, swings=WAVE), close, far)
    assert describe_decision(ranking).startswith("Choose c, rank 3 of 3: its validation loss of 0.7010")
    assert "between a and c, differences in validation loss below 0.37 cannot" in describe_certainty(ranking)


def test_a_lead_in_speed_within_the_spread_of_the_steps_is_no_reason_to_choose():
    leader = Fake("a", 0.700, swings=WAVE)
    hidden = Fake("b", 0.701, swings=WAVE[::-1], samples_per_s=leader.samples_per_s * 1.15)
    assert describe_decision(make_ranking(leader, hidden)).startswith("Choose a: ")


def test_one_repeat_of_a_speed_rests_on_the_spread_of_its_steps():
    text = describe_certainty(make_ranking(FAST_BAD, CHEAP, criterion="samples_per_s"))
    assert "One repeat: differences in throughput below 20 % cannot be told" in text


def repeats(name, losses, **more):
    return tuple(Fake(name, loss, repeat=i, **more) for i, loss in enumerate(losses))


def test_repeats_are_one_configuration_ranked_by_their_median():
    ranking = make_ranking(*repeats("steady", (0.80, 0.81, 0.82)), *repeats("wild", (0.70, 0.90, 0.95)))
    steady, wild = ranking.candidates
    assert (steady.name, steady.value, steady.repeats) == ("steady", 0.81, 3)
    assert (wild.name, wild.value, wild.spread) == ("wild", 0.90, pytest.approx(0.125))
    assert [ranking.rank_of(row) for row in ranking.rows] == [1, 1, 1, 2, 2, 2]
    assert "cannot be told (95 %, from the spread of 6 trials" in describe_certainty(ranking)


def test_among_configurations_that_noise_hides_the_faster_is_chosen():
    slow = repeats("slow", (0.800, 0.810, 0.820), samples_per_s=100.0)
    fast = repeats("fast", (0.803, 0.812, 0.823), samples_per_s=300.0)
    ranking = make_ranking(*slow, *fast)
    assert ranking.candidates[0].name == "slow"
    text = describe_decision(ranking)
    assert text.startswith("Choose fast, rank 2 of 2: its validation loss of 0.8120 cannot be told from the lowest")
    assert "(slow, 0.8100)" in text
    assert "it trains 3 times as fast" in text


def test_a_clear_lead_is_not_given_up_for_speed():
    slow = repeats("slow", (0.600, 0.601, 0.602), samples_per_s=100.0)
    fast = repeats("fast", (0.800, 0.801, 0.802), samples_per_s=300.0)
    assert describe_decision(make_ranking(*slow, *fast)).startswith("Choose slow: ")


def test_trials_of_one_name_are_numbered():
    ranking = make_ranking(Fake("same", 0.7, repeat=0), Fake("same", 0.8, repeat=0, accuracy=0.5))
    assert labels(ranking) == ["same (1)", "same (2)"]


def test_an_accuracy_no_better_than_the_base_rate_is_cautioned():
    weak, strong = make_ranking(Fake("weak", 0.7, accuracy=0.51), Fake("strong", 0.8, accuracy=0.60)).rows
    assert "not above that of always naming the commoner direction (50.0 %)" in describe_against_base_rate(weak)
    assert describe_against_base_rate(strong) == ""


def test_attempts_that_did_not_finish_are_costed_apart():
    entry = make_entry(Fake("a", attempts=2, node_seconds=300.0))
    lost = AttemptEnd(1, -9, Verdict.NODE_FAIL, "", ("n0", "n1"), "", 50.0)
    done = AttemptEnd(2, 0, Verdict.COMPLETED, "", ("n0", "n1"), "", 90.0)
    assert lost_node_seconds(entry, (lost, done)) == 120.0
    assert lost_node_seconds(entry, (lost,)) == 0.0  # the finished one's use is not known, so none is claimed lost
    assert lost_node_seconds(make_entry(Fake("b", verdict=Verdict.OOM, node_seconds=70.0)), ()) == 70.0


def test_terminal_table_is_aligned():
    lines = render_terminal(make_ranking(SLOW_GOOD, FAST_BAD, Fake("x", verdict=Verdict.OOM))).splitlines()
    assert lines[0].split()[:3] == ["rank", "trial", "verdict"]
    assert [line.index("completed") for line in lines[2:4]] == [lines[0].index("verdict")] * 2
    assert lines[2].split()[0] == "1"
    assert lines[5] == "2 of 3 trials completed, 1 oom"


def test_small_losses_keep_their_digits():
    assert [format_loss(value) for value in (None, 0.0, 0.31234, 4.56789e-6, -0.5)] == [
        NONE,
        "0.0000",
        "0.3123",
        "4.568e-06",
        "-0.5000",
    ]
