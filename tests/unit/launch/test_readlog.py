import threading

import pytest

from fake_trials import make_trial
from watched_study import start
from windtunnel.errors import InputFileError
from windtunnel.launch.readlog import find_log, follow_log, read_log
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.lease import take_lease

TRIAL = make_trial("a")


@pytest.fixture
def folder(tmp_path):
    for attempt in (1, 2):
        start(tmp_path, TRIAL, attempt=attempt).rank_log(attempt, 0).write_text(f"attempt {attempt}\nlast\n")
    return trial_folder(tmp_path, TRIAL.id)


def test_the_newest_attempts_log_is_meant_unless_one_is_named(folder):
    assert find_log(folder, attempt=None, rank=0) == folder.rank_log(2, 0)
    assert find_log(folder, attempt=1, rank=0) == folder.rank_log(1, 0)


def test_what_is_not_there_is_refused_with_what_is(folder, tmp_path):
    with pytest.raises(InputFileError, match="no attempt 3, only 1, 2"):
        find_log(folder, attempt=3, rank=0)
    with pytest.raises(InputFileError, match=r"rank-5.log does not exist; attempt 2 has: rank-0.log"):
        find_log(folder, attempt=None, rank=5)
    with pytest.raises(InputFileError, match="no attempt yet"):
        find_log(trial_folder(tmp_path, "b"), attempt=None, rank=0)


@pytest.mark.parametrize(
    ("lines", "text"), [(None, "one\ntwo\nthree\n"), (2, "two\nthree\n"), (9, "one\ntwo\nthree\n")]
)
def test_the_last_lines_are_found_from_the_end(tmp_path, lines, text):
    path = tmp_path / "log"
    path.write_text("one\ntwo\nthree\n")
    assert b"".join(read_log(path, lines=lines)) == text.encode()


def test_the_tail_of_a_log_longer_than_a_block_is_whole(tmp_path):
    path = tmp_path / "log"
    path.write_text("".join(f"line {number}\n" for number in range(50_000)))
    assert b"".join(read_log(path, lines=20_000)).splitlines()[0] == b"line 30000"


def test_following_gives_what_is_added_and_ends_with_the_attempt(folder):
    lease = take_lease(folder.lease, "trial")
    path = folder.rank_log(2, 0)
    pieces = follow_log(path, folder, lines=1)
    assert next(pieces) == b"last\n"

    def finish():
        path.write_text(path.read_text() + "more\n")
        folder.end(2).write_text("{}")

    timer = threading.Timer(0.05, finish)
    timer.start()
    assert b"".join(pieces) == b"more\n"
    timer.join()
    lease.release()
