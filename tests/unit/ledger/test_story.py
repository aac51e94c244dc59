from typing import Any

import pytest

from windtunnel.ledger.log import Event
from windtunnel.ledger.story import Submission, find_begun, find_submission, find_wish

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
