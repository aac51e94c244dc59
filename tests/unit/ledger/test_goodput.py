"""Where the time of made-up trials went."""

import math
import random
from itertools import pairwise

import pytest

from windtunnel.ledger.goodput import summarise_goodput
from windtunnel.ledger.log import Event
from windtunnel.records.goodput import Bucket, Goodput, Mark, Phase, Trace
from windtunnel.records.trial import AttemptEnd, Verdict

NOW = 10_000.0
TO_STEP_20 = (
    Mark(Phase.RESTORE, 14.0, 0),
    Mark(Phase.TRAIN, 15.0, 0),
    Mark(Phase.STALL, 25.0, 10),
    Mark(Phase.TRAIN, 26.0, 10),
    Mark(Phase.TRAIN, 36.0, 20),
)
"""Of an attempt that starts at 10: a second a step, and a checkpoint after step 10 that is a second's wait."""


def event(kind: str, at: float, attempt: int = 0, **details: object) -> Event:
    return Event(kind, attempt, at, "n0", 1, details)


def end(attempt: int, wall_s: float, verdict: Verdict = Verdict.COMPLETED) -> AttemptEnd:
    return AttemptEnd(attempt, 0, verdict, "", ("n0",), "7", wall_s)


def known(goodput: Goodput) -> dict[str, float]:
    """The buckets that have any time."""
    return {str(bucket): pytest.approx(seconds) for bucket, seconds in goodput.seconds.items() if seconds}


def resumed(first_s: float, at: float) -> tuple[Mark, ...]:
    """Marks of an attempt from step 10 to step 30, that restores at `at` for a second."""
    train = at + 1.0
    return (
        Mark(Phase.RESTORE, at, 0),
        Mark(Phase.TRAIN, train, 10),
        Mark(Phase.TRAIN, train + first_s, 20),
        Mark(Phase.TRAIN, train + first_s + 10, 30),
        Mark(Phase.DRAIN, train + first_s + 10, 30),
        Mark(Phase.EVALUATE, train + first_s + 11, 30),
        Mark(Phase.DRAIN, train + first_s + 14, 30),
    )


def test_a_trial_without_faults_has_all_its_time_in_named_buckets():
    marks = (*TO_STEP_20, Mark(Phase.DRAIN, 36.0, 20), Mark(Phase.EVALUATE, 37.0, 20), Mark(Phase.DRAIN, 40.0, 20))
    events = [event("submitting", 3.0), event("submitted", 4.0), event("started", 10.0, 1), event("ended", 42.0, 1)]
    goodput = summarise_goodput(events, {1: Trace(marks)}, {1: end(1, 32.0)}, now=NOW)
    assert known(goodput) == {
        "queue": 7, "start_up": 5, "productive": 20, "stall": 1, "drain": 3, "evaluate": 3
    }  # fmt: skip
    assert (goodput.wall_s, goodput.new_steps, goodput.steps_per_s) == (39.0, 20, pytest.approx(1.0))


def test_steps_that_were_lost_are_replayed_and_the_resumed_throughput_is_that_of_new_steps():
    events = [event("started", 10.0, 1), event("ended", 40.0, 1), event("started", 50.0, 2), event("ended", 80.0, 2)]
    traces = {1: Trace(TO_STEP_20), 2: Trace(resumed(10.0, 53.0))}
    goodput = summarise_goodput(events, traces, {1: end(1, 30, Verdict.LOST), 2: end(2, 30)}, now=NOW)
    assert known(goodput) == {
        "start_up": 5 + 3, "productive": 20 + 10, "replay": 4 + 10, "stall": 1, "queue": 10, "restore": 1,
        "drain": 3, "evaluate": 3,
    }  # fmt: skip
    assert (goodput.new_steps, goodput.steps_per_s) == (30, pytest.approx(1.0))
    assert [row.new_steps for row in goodput.attempts] == [20, 10]


def test_a_line_that_passes_the_highest_earlier_step_is_divided_by_steps():
    marks = (Mark(Phase.TRAIN, 51.0, 15), Mark(Phase.TRAIN, 61.0, 25))
    events = [event("started", 10.0, 1), event("started", 50.0, 2), event("ended", 61.0, 2)]
    goodput = summarise_goodput(events, {1: Trace(TO_STEP_20), 2: Trace(marks)}, {}, now=NOW)
    second = goodput.attempts[1].seconds
    assert (second[Bucket.REPLAY], second[Bucket.PRODUCTIVE]) == (5.0, 5.0)


def test_a_return_to_a_checkpoint_within_an_attempt_is_a_restore_and_a_replay():
    marks = (*TO_STEP_20, Mark(Phase.RESTORE, 37.0, 21), Mark(Phase.TRAIN, 39.0, 10), Mark(Phase.TRAIN, 51.0, 22))
    events = [event("started", 10.0, 1), event("ended", 51.0, 1)]
    goodput = summarise_goodput(events, {1: Trace(marks)}, {}, now=NOW)
    assert known(goodput) == {"start_up": 5, "productive": 22, "stall": 1, "restore": 2, "replay": 11}


@pytest.mark.parametrize(
    ("marks", "bucket"),
    [
        ((), "start_up"),
        ((Mark(Phase.RESTORE, 14.0, 0),), "restore"),
        ((Mark(Phase.TRAIN, 14.0, 0),), "replay"),
        ((Mark(Phase.STALL, 14.0, 0),), "stall"),
        ((Mark(Phase.EVALUATE, 14.0, 0),), "evaluate"),
        ((Mark(Phase.DRAIN, 14.0, 0),), "drain"),
    ],
)
def test_the_time_from_the_last_mark_of_a_killed_attempt_is_of_what_it_was_at(marks, bucket):
    events = [event("started", 10.0, 1), event("ended", 40.0, 1)]
    goodput = summarise_goodput(events, {1: Trace(marks)}, {1: end(1, 30.0, Verdict.LOST)}, now=NOW)
    assert known(goodput) == {"start_up": 4, bucket: 26} if marks else {bucket: 30}


def test_a_killed_supervisor_s_attempt_lasts_to_its_last_sign_and_the_rest_is_waiting():
    events = [event("started", 10.0, 1), event("started", 70.0, 2), event("ended", 75.0, 2)]
    goodput = summarise_goodput(events, {1: Trace(TO_STEP_20, last_sign=38.0)}, {}, now=NOW)
    assert known(goodput) == {"start_up": 5 + 5, "productive": 20, "stall": 1, "replay": 2, "queue": 32}
    judged = event("verdict", 60.0, 1, life_at=39.0)
    told = summarise_goodput([events[0], judged, *events[1:]], {1: Trace(TO_STEP_20)}, {}, now=NOW)
    assert known(told)["replay"] == 3.0


def test_an_end_that_only_its_file_tells_is_as_long_after_the_start():
    goodput = summarise_goodput([event("started", 10.0, 1)], {}, {1: end(1, 30.0, Verdict.LOST)}, now=NOW)
    assert known(goodput) == {"start_up": 30}


def test_after_a_stop_signal_an_attempt_drains():
    events = [event("started", 10.0, 1), event("ended", 46.0, 1, signalled_at=38.0)]
    assert known(summarise_goodput(events, {1: Trace(TO_STEP_20)}, {}, now=NOW)) == {
        "start_up": 5, "productive": 20, "stall": 1, "replay": 2, "drain": 8
    }  # fmt: skip
    in_order = Trace((*TO_STEP_20, Mark(Phase.DRAIN, 39.0, 23)))
    assert known(summarise_goodput(events, {1: in_order}, {}, now=NOW)) == {
        "start_up": 5, "productive": 23, "stall": 1, "drain": 7
    }  # fmt: skip


def test_a_hang_lasts_from_where_its_first_rank_stood_still():
    events = [event("started", 10.0, 1), event("ended", 60.0, 1)]
    hung = known(summarise_goodput(events, {1: Trace(TO_STEP_20, hung_since=37.5)}, {}, now=NOW))
    assert (hung["replay"], hung["hang"]) == (1.5, 22.5)
    mute = known(summarise_goodput(events, {1: Trace(TO_STEP_20, hung_since=0.0)}, {}, now=NOW))
    assert mute["hang"] == 24.0


def test_a_rank_whose_clock_is_behind_keeps_the_lengths_of_what_it_did():
    behind = tuple(Mark(mark.phase, mark.at - 300.0, mark.step) for mark in TO_STEP_20)
    events = [event("started", 10.0, 1), event("ended", 40.0, 1)]
    assert known(summarise_goodput(events, {1: Trace(behind)}, {}, now=NOW)) == {
        "productive": 20, "stall": 1, "start_up": 1, "replay": 8
    }  # fmt: skip
    ahead = tuple(Mark(mark.phase, mark.at + 300.0, mark.step) for mark in TO_STEP_20)
    assert known(summarise_goodput(events, {1: Trace(ahead)}, {}, now=NOW)) == {
        "productive": 20, "stall": 1, "start_up": 9
    }  # fmt: skip


def test_an_attempt_on_a_host_whose_clock_is_behind_begins_no_earlier_than_what_came_before():
    events = [event("submitted", 50.0), event("started", 10.0, 1), event("ended", 80.0, 1), event("started", 75.0, 2)]
    goodput = summarise_goodput([*events, event("ended", 95.0, 2)], {}, {}, now=NOW)
    assert [(row.began_at, row.ended_at) for row in goodput.attempts] == [(50.0, 80.0), (80.0, 95.0)]
    assert (goodput.wall_s, goodput.seconds[Bucket.QUEUE]) == (45.0, 0.0)


def test_a_stale_writer_s_late_end_takes_no_time_from_the_attempt_that_followed():
    events = [event("started", 10.0, 1), event("started", 40.0, 2), event("ended", 60.0, 1), event("ended", 90.0, 2)]
    goodput = summarise_goodput(events, {}, {}, now=NOW)
    assert [(row.began_at, row.ended_at) for row in goodput.attempts] == [(10.0, 40.0), (40.0, 90.0)]


def test_a_trial_that_waits_again_is_queued_until_now_and_one_that_ended_is_not():
    events = [event("submitted", 3.0, job_id="7"), event("started", 10.0, 1, job_id="7"), event("ended", 42.0, 1)]
    late = event("submitted", 43.0, job_id="7")
    assert summarise_goodput([*events, late, event("verdict", 50.0, 1)], {}, {}, now=100.0).wall_s == 39.0
    again = [*events, event("submitting", 60.0), event("submitted", 61.0, job_id="8")]
    assert known(summarise_goodput(again, {}, {}, now=100.0)) == {"queue": 7 + 58, "start_up": 32}
    cancelled = summarise_goodput([*again, event("verdict", 80.0)], {}, {}, now=100.0)
    assert known(cancelled) == {"queue": 7 + 38, "start_up": 32}


def test_what_nobody_marked_though_it_took_steps_is_unknown():
    events = [event("started", 10.0, 1), event("ended", 40.0, 1)]
    assert known(summarise_goodput(events, {1: Trace(foreign=True)}, {}, now=NOW)) == {"unknown": 30}
    assert known(summarise_goodput(events, {}, {1: end(1, 30.0)}, now=NOW)) == {"unknown": 30}


def test_a_trial_of_which_nothing_is_known_has_no_time():
    nothing = summarise_goodput([], {}, {}, now=NOW)
    assert (nothing.wall_s, nothing.productive_share, nothing.steps_per_s) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_buckets_of_any_history_add_up_to_its_wall_time(seed):
    for number in range(seed, seed + 100):
        events, traces, ends = invent_history(random.Random(number))
        goodput = summarise_goodput(events, traces, ends, now=2e9)
        assert math.fsum(goodput.seconds.values()) == pytest.approx(goodput.wall_s, abs=1e-6), number
        assert all(seconds >= 0.0 for seconds in goodput.seconds.values()), number
        for row in goodput.attempts:
            assert math.fsum(row.seconds.values()) == pytest.approx(row.ended_at - row.began_at, abs=1e-6), number
        assert all(one.ended_at <= after.began_at for one, after in pairwise(goodput.attempts)), number


def invent_history(draw: random.Random) -> tuple[list[Event], dict[int, Trace], dict[int, AttemptEnd]]:
    """Attempts that leave some of their records, on hosts whose clocks differ by up to a minute."""
    events, traces, ends, now = [], {}, {}, 1.9e9
    for attempt in range(1, draw.randint(1, 6)):
        skew = draw.uniform(-60.0, 60.0)
        for kind in draw.sample(["submitting", "submitted", "postponed", "withdrawn"], draw.randint(0, 2)):
            events.append(event(kind, now := now + draw.expovariate(0.1), job_id=str(draw.randint(1, 3))))
        start = now = now + draw.expovariate(0.1)
        marks = []
        for _ in range(draw.randint(0, 8)):
            now += draw.expovariate(0.2)
            marks.append(Mark(draw.choice(list(Phase)), now + draw.uniform(-9.0, 9.0), draw.randint(0, 50)))
        now += draw.expovariate(0.1)
        if draw.random() < 0.9:
            events.append(event("started", start + skew, attempt, job_id=str(draw.randint(1, 3))))
        stop = {"signalled_at": draw.uniform(start, now)} if draw.random() < 0.3 else {}
        if draw.random() < 0.6:
            events.insert(
                draw.randint(max(0, len(events) - 1), len(events)), event("ended", now + skew, attempt, **stop)
            )
        if draw.random() < 0.5:
            ends[attempt] = end(attempt, now - start, draw.choice(list(Verdict)))
        hung = draw.uniform(start, now) if draw.random() < 0.2 else None
        traces[attempt] = Trace(tuple(marks), hung, draw.choice([0.0, now]), foreign=draw.random() < 0.1)
        if draw.random() < 0.3:
            events.append(event("verdict", now, attempt, **({"life_at": now} if draw.random() < 0.5 else {})))
    return events, traces, ends
