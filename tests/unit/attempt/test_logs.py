from pathlib import Path

from windtunnel.attempt.logs import BoundedLog, LabelledLogs

LIMIT = 4096


def test_a_log_within_its_limit_is_kept_as_it_came(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "log", LIMIT)
    assert log.path.read_bytes() == b""
    for text in (b"one\n", b"two\n"):
        log.write(text)
    assert log.path.read_bytes() == b"one\ntwo\n"


def test_a_log_past_its_limit_keeps_its_first_quarter_and_its_newest_lines(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "log", LIMIT)
    sizes = []
    for number in range(2000):
        log.write(f"line {number}\n".encode())
        sizes.append(log.path.stat().st_size)
    text = log.path.read_text()
    assert max(sizes) <= LIMIT
    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("line 1998\nline 1999\n")
    assert text.count("bytes left out here]") == 1


def test_one_write_larger_than_the_whole_log_is_cut_too(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "log", LIMIT)
    log.write(b"begin" + b"x" * 50 * LIMIT + b"end")
    data = log.path.read_bytes()
    assert (len(data) <= LIMIT, data[:5], data[-3:]) == (True, b"begin", b"end")


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    BoundedLog(tmp_path / "log", LIMIT).write(b"lost\n")


def test_labelled_lines_go_to_their_ranks_and_sruns_words_apart(tmp_path: Path) -> None:
    logs = LabelledLogs(tmp_path, tmp_path / "srun.log", ranks=11, limit_bytes=LIMIT)
    for part in (
        b" 0: hel",
        b"lo\n10: 3: three\n 0: \nsrun: error: n1: task 10: Exited with ",
        b"exit code 1\n 0: last",
    ):
        logs.write(part)
    logs.close()
    assert logs.task_failed
    assert (tmp_path / "rank-0.log").read_text() == "hello\n\nlast\n"
    assert (tmp_path / "rank-10.log").read_text() == "3: three\n"
    assert (tmp_path / "rank-5.log").read_text() == ""
    assert (tmp_path / "srun.log").read_text() == "srun: error: n1: task 10: Exited with exit code 1\n"


def test_what_the_daemon_says_in_a_ranks_place_is_seen_in_both(tmp_path: Path) -> None:
    logs = LabelledLogs(tmp_path, tmp_path / "srun.log", ranks=1, limit_bytes=LIMIT)
    logs.write(b"0: slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\n99: not a rank of ours\n")
    logs.write(b"srun: error: n0: tasks 0-1: Terminated\n0: srun says: error: n1: task 0: Exited\n")
    assert not logs.task_failed
    assert "oom_kill" in (tmp_path / "rank-0.log").read_text()
    assert (
        (tmp_path / "srun.log")
        .read_text()
        .endswith("99: not a rank of ours\nsrun: error: n0: tasks 0-1: Terminated\n")
    )
