import errno
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fake_disk import at_most_bytes
from windtunnel.ledger.claim import (
    CLAIM,
    GRAVE,
    STALE_AFTER_S,
    drop_claim,
    name_claimant,
    read_claimant,
    take_claim,
)
from windtunnel.ledger.story import IN_FLIGHT_S


def test_of_many_drivers_one_submits_and_the_next_only_after_it(tmp_path: Path) -> None:
    taken: list[bool] = []
    barrier = threading.Barrier(8)

    def contend() -> None:
        barrier.wait()
        taken.append(take_claim(tmp_path / "trial"))

    contenders = [threading.Thread(target=contend) for _ in range(8)]
    for contender in contenders:
        contender.start()
    for contender in contenders:
        contender.join()
    assert taken.count(True) == 1
    drop_claim(tmp_path / "trial")
    assert take_claim(tmp_path / "trial")


def test_one_file_names_the_owner_of_many_claims_and_goes_with_the_last(tmp_path: Path) -> None:
    trials = [tmp_path / "trials" / name for name in ("a", "b")]
    with name_claimant(tmp_path / "trials") as named:
        assert [take_claim(trial, named=named) for trial in trials] == [True, True]
        assert {(trial / CLAIM).stat().st_ino for trial in trials} == {named.stat().st_ino}
        assert take_claim(trials[0], named=named) is False
        assert read_claimant(trials[1]).pid == os.getpid()
        for trial in trials:
            drop_claim(trial)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("fault", [errno.EXDEV, errno.EMLINK])
def test_a_claim_that_cannot_be_linked_gets_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    link = os.link

    def refuse(source: Path, target: Path) -> None:
        if source.parent != target.parent:
            raise OSError(fault, os.strerror(fault))
        link(source, target)

    monkeypatch.setattr(os, "link", refuse)
    with name_claimant(tmp_path) as named:
        assert take_claim(tmp_path / "trial", named=named)
    assert [path.name for path in (tmp_path / "trial").iterdir()] == [CLAIM]


def test_where_no_file_can_be_written_beside_the_trials_each_claim_tries_its_own(tmp_path: Path) -> None:
    (tmp_path / "trials").write_text("")
    with name_claimant(tmp_path / "trials") as named:
        assert named is None
        with pytest.raises(OSError):
            take_claim(tmp_path / "trials" / "a", named=named)


def test_a_dead_drivers_claim_is_removed_before_anyone_takes_it(tmp_path: Path) -> None:
    script = "import sys, pathlib, windtunnel.ledger.claim as c; c.take_claim(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert (take_claim(tmp_path), take_claim(tmp_path)) == (False, True)


def test_a_claim_taken_while_a_dead_one_was_judged_is_not_removed_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, clock, fresh = tmp_path / CLAIM, time.time, []

    def look_at_the_clock() -> float:
        """Another driver removes the dead claim, and a third takes its own, while this one judges."""
        monkeypatch.setattr(time, "time", clock)
        fresh.extend([take_claim(tmp_path, stale_after_s=60), take_claim(tmp_path, stale_after_s=60)])
        return clock()

    path.write_text("elsewhere 1 boot:1\n")
    os.utime(path, (1, 1))
    monkeypatch.setattr(time, "time", look_at_the_clock)
    assert not take_claim(tmp_path, stale_after_s=60)
    assert fresh == [False, True]
    assert take_claim(tmp_path, stale_after_s=60) is False  # the third one's stands


def test_a_dead_claim_that_two_drivers_remove_makes_room_for_one_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, unlink, taken = tmp_path / CLAIM, Path.unlink, []

    def unlink_late(self: Path, missing_ok: bool = False) -> None:
        """Another driver removes the dead claim, and a third takes its own, just before this one removes it."""
        monkeypatch.setattr(Path, "unlink", unlink)
        taken.extend([take_claim(tmp_path, stale_after_s=60), take_claim(tmp_path, stale_after_s=60)])
        unlink(self, missing_ok=missing_ok)

    path.write_text("elsewhere 1 boot:1\n")
    os.utime(path, (1, 1))
    monkeypatch.setattr(Path, "unlink", unlink_late)
    assert not take_claim(tmp_path, stale_after_s=60)
    taken.append(take_claim(tmp_path, stale_after_s=60))
    assert taken.count(True) == 1


def test_who_removes_a_dead_claim_keeps_others_from_it_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / CLAIM
    path.write_text("elsewhere 1 boot:1\n")
    os.utime(path, (1, 1))
    os.link(path, tmp_path / GRAVE)  # another driver is at it
    assert [take_claim(tmp_path, stale_after_s=60) for _ in range(3)] == [False] * 3
    assert path.exists()


def test_what_a_killed_driver_left_of_a_removal_is_removed_once_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, clock = tmp_path / CLAIM, time.time
    path.write_text("elsewhere 1 boot:1\n")
    os.link(path, tmp_path / GRAVE)
    monkeypatch.setattr(time, "time", lambda: clock() + 2 * STALE_AFTER_S)
    assert [take_claim(tmp_path) for _ in range(3)] == [False, False, True]
    assert not (tmp_path / GRAVE).exists()


def test_another_hosts_claim_counts_until_it_is_old(tmp_path: Path) -> None:
    path = tmp_path / CLAIM
    path.write_text("elsewhere 1 boot:1\n")
    assert not take_claim(tmp_path, stale_after_s=60)
    assert path.exists()
    os.utime(path, (1, 1))
    assert (take_claim(tmp_path, stale_after_s=60), take_claim(tmp_path, stale_after_s=60)) == (False, True)


def test_a_live_drivers_claim_counts_on_its_own_host_however_old_it_is(tmp_path: Path) -> None:
    assert take_claim(tmp_path)
    os.utime(tmp_path / CLAIM, (1, 1))
    assert [take_claim(tmp_path) for _ in range(2)] == [False, False]


def test_a_driver_lets_no_claim_go_but_its_own(tmp_path: Path) -> None:
    take_claim(tmp_path)
    (tmp_path / CLAIM).write_text("elsewhere 1 boot:1\n")
    drop_claim(tmp_path)
    assert (tmp_path / CLAIM).read_text() == "elsewhere 1 boot:1\n"


def test_a_claim_outlasts_a_submission_that_may_still_be_on_its_way() -> None:
    assert STALE_AFTER_S > 2 * IN_FLIGHT_S


def test_a_claim_that_the_disk_does_not_take_leaves_nothing(tmp_path: Path) -> None:
    with at_most_bytes(0), pytest.raises(OSError, match="File too large"):
        take_claim(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert take_claim(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [CLAIM]


@pytest.mark.parametrize("text", ["", "\n", "elsewhere", socket.gethostname(), "elsewhere 1", "a b c", "\0" * 40])
def test_a_claim_that_names_nobody_counts_for_seconds_only(tmp_path: Path, text: str) -> None:
    path = tmp_path / CLAIM
    path.write_text(text)
    assert [take_claim(tmp_path) for _ in range(2)] == [False, False]
    assert read_claimant(tmp_path) is None
    os.utime(path, (time.time() - 6, time.time() - 6))
    assert [take_claim(tmp_path) for _ in range(2)] == [False, True]


def test_a_claim_names_its_process(tmp_path: Path) -> None:
    take_claim(tmp_path)
    claimant = read_claimant(tmp_path)
    assert claimant is not None
    assert (claimant.host, claimant.pid) == (socket.gethostname(), os.getpid())
    drop_claim(tmp_path)
    assert read_claimant(tmp_path) is None
