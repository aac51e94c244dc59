from typing import Any

import pytest

from windtunnel.ledger.log import Event
from windtunnel.ledger.story import (
    Submission,
    find_begun,
    find_last_event,
    find_submission,
    find_succession,
    find_wish,
)

WISH = Event("cancelling", 0, 5.0, "login", 1, {"user": "rosa"})


def event(kind: str, **details: Any) -> Event:
    return Event(kind, 0, 0.0, "login", 1, details)


def begin(**details: Any) -> Event:
    return event("submitting", submission="x", index=0, **details)


def test_a_wish_that_crosses_a_submission_wins_whichever_line_came_first() -> None:
    assert find_wish([event("verdict"), WISH, begin(seen=1)]) == WISH
    assert find_wish([event("verdict"), begin(seen=1), WISH]) == WISH
    assert find_wish([WISH, event("submitted", job_id="n0:1", seen=0)]) == WISH


def test_a_wish_that_the_driver_knew_when_it_submitted_is_taken_back() -> None:
    assert find_wish([event("verdict"), WISH, begin(seen=2)]) is None
    assert find_wish([WISH, event("submitted", job_id="n0:1", seen=1)]) is None
    assert find_wish([WISH, event("withdrawn")]) is None


def test_a_submission_that_does_not_tell_what_its_driver_saw_takes_back_what_stands_before_it() -> None:
    assert find_wish([WISH, begin()]) is None
    assert find_wish([begin(), WISH]) == WISH


@pytest.mark.parametrize("later", [event("postponed"), event("submitted", job_id="7", submission="x")])
def test_what_comes_of_a_submission_takes_no_wish_back(later: Event) -> None:
    assert find_wish([begin(seen=0), WISH, later]) == WISH


def test_a_submission_tells_where_its_job_is_and_with_whom_it_runs() -> None:
    told = begin(jobs_dir="/results/night/jobs", pack=["a", "b"])
    assert find_submission([told, WISH]) == Submission("x", 0, "/results/night/jobs", ("a", "b"))
    assert find_begun([told, event("submitted", job_id="7", submission="x")]) == find_submission([told])
    assert find_submission([told, event("submitted", job_id="7", submission="x")]) is None


def test_a_ledger_of_before_these_were_told_is_still_read() -> None:
    assert find_submission([begin()]) == Submission("x", 0)


def queue_behind(job_id: str = "") -> list[Event]:
    told = [begin(), event("submitted", job_id="7", submission="x"), event("queueing", submission="x")]
    return [*told, event("queued", job_id=job_id, behind="7")] if job_id else told


def test_the_job_behind_the_present_one_is_known_from_the_moment_at_which_it_is_about_to_be_queued() -> None:
    waiting, found = find_succession(queue_behind()), find_succession(queue_behind("8"))
    assert waiting is not None
    assert (waiting.name, waiting.job_id) == ("x", "")
    assert found is not None
    assert (found.name, found.job_id) == ("x", "8")


@pytest.mark.parametrize("later", [event("started", job_id="8"), event("submitted", job_id="8"), begin()])
def test_a_successor_is_none_any_more_once_it_is_the_present_job_or_there_is_a_new_submission(later: Event) -> None:
    assert find_succession([*queue_behind("8"), later]) is None


def test_a_successor_that_started_before_anybody_wrote_its_id_down_is_the_present_job() -> None:
    assert find_succession([*queue_behind(), event("started", job_id="7")]) is not None
    started = [*queue_behind(), event("started", job_id="8")]
    assert find_succession(started) is None
    assert find_succession([*started, event("queued", job_id="8", behind="7")]) is None


def test_a_job_that_waits_behind_another_changes_nothing_of_where_the_trial_stands() -> None:
    last = find_last_event(queue_behind("8"))
    assert last is not None
    assert (last.kind, last.details["job_id"]) == ("submitted", "7")


def test_a_verdict_over_an_attempt_after_which_another_had_begun_is_passed_over() -> None:
    started = [Event("started", number, 0.0, "n0", 1, {"job_id": str(number)}) for number in (1, 2)]
    late = Event("verdict", 1, 0.0, "login", 1, {"verdict": "LOST"})
    assert find_last_event([*started, late]) == started[1]
    assert find_last_event([started[0], late]) == late
