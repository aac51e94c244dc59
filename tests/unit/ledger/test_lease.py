import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from windtunnel.errors import BusyError
from windtunnel.ledger import lease as leases
from windtunnel.ledger.lease import (
    Holder,
    bury_holder,
    read_live_holder,
    read_process_start,
    start_beating,
    take_lease,
)

HERE = socket.gethostname()


def test_a_live_holder_is_refused_by_name_until_it_lets_go(tmp_path: Path) -> None:
    lease = take_lease(tmp_path, "study quickstart")
    with pytest.raises(BusyError, match=rf"study quickstart is driven by pid {os.getpid()} on host {HERE} since 20"):
        take_lease(tmp_path, "study quickstart")
    lease.release()
    take_lease(tmp_path, "study quickstart").release()


def test_a_dead_holder_of_this_host_is_succeeded_at_once(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    _hold(tmp_path / "1", Holder(HERE, child.pid, "boot:1", time.time()))
    take_lease(tmp_path, "it")
    assert [entry.name for entry in tmp_path.iterdir()] == ["2"]


def test_a_pid_that_another_process_has_now_is_no_holder(tmp_path: Path) -> None:
    _hold(tmp_path / "1", Holder(HERE, os.getpid(), "boot:another start", time.time()))
    assert read_live_holder(tmp_path) is None
    take_lease(tmp_path, "it")


def test_a_holder_of_another_host_lives_as_long_as_its_heartbeat(tmp_path: Path) -> None:
    _hold(tmp_path / "1", Holder("elsewhere", 1, "boot:1", time.time()))
    with pytest.raises(BusyError, match="pid 1 on host elsewhere"):
        take_lease(tmp_path, "it", stale_after_s=60)
    os.utime(tmp_path / "1", (time.time() - 61, time.time() - 61))
    take_lease(tmp_path, "it", stale_after_s=60)


def test_a_holder_that_was_succeeded_learns_it_at_its_next_beat(tmp_path: Path) -> None:
    lease = take_lease(tmp_path, "it")
    _hold(tmp_path / "2", Holder("elsewhere", 1, "boot:1", time.time()))
    lease._beaten -= 60
    with pytest.raises(BusyError, match="taken over"):
        lease.beat()
    lease.release()
    assert read_live_holder(tmp_path) == Holder("elsewhere", 1, "boot:1", pytest.approx(time.time(), abs=60))


def test_a_beat_renews_the_heartbeat(tmp_path: Path) -> None:
    lease = take_lease(tmp_path, "it")
    os.utime(tmp_path / "1", (1, 1))
    lease._beaten -= 60
    lease.beat()
    assert (tmp_path / "1").stat().st_mtime > 1


def test_a_beat_that_the_file_system_refuses_is_made_up_for_by_a_later_one(tmp_path: Path) -> None:
    lease = take_lease(tmp_path, "it")
    (tmp_path / "1").rename(tmp_path / "kept")
    (tmp_path / "1").symlink_to("1")  # its times cannot be set: too many levels of links
    lease._beaten -= 60
    lease.beat()
    (tmp_path / "kept").rename(tmp_path / "1")
    os.utime(tmp_path / "1", (1, 1))
    lease._beaten -= 60
    lease.beat()
    assert (tmp_path / "1").stat().st_mtime > 1


def test_a_beat_outlives_a_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    lease = take_lease(tmp_path / "lease", "it")
    (tmp_path / "lease").rename(tmp_path / "kept")
    (tmp_path / "lease").touch()
    lease._beaten -= 60
    lease.beat()


def test_a_thread_beats_while_its_holder_is_busy_until_told_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "BEAT_EVERY_S", 0.02)
    ended = start_beating([take_lease(tmp_path, "it")])
    os.utime(tmp_path / "1", (1, 1))
    deadline = time.monotonic() + 20
    while (tmp_path / "1").stat().st_mtime == 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    ended.set()
    assert (tmp_path / "1").stat().st_mtime > 1


def test_a_lease_that_a_thread_saw_lost_is_told_and_raised_at_each_later_beat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "BEAT_EVERY_S", 0.02)
    lease, told = take_lease(tmp_path, "it"), threading.Event()
    start_beating([lease], tell=lambda error: told.set())
    _hold(tmp_path / "2", Holder("elsewhere", 1, "boot:1", time.time()))
    assert told.wait(20)
    monkeypatch.setattr(leases, "BEAT_EVERY_S", 1000.0)
    for _ in range(2):
        with pytest.raises(BusyError, match="taken over"):
            lease.beat()


def test_a_number_that_others_took_and_removed_meanwhile_is_no_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hold(tmp_path / "3", Holder("elsewhere", 1, "boot:1", 0.0, free=True))
    link = os.link

    def link_late(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        (tmp_path / "3").unlink()
        _hold(tmp_path / "5", Holder(HERE, os.getpid(), read_process_start(os.getpid()) or "", 0.0))
        link(source, target)

    monkeypatch.setattr(os, "link", link_late)
    with pytest.raises(BusyError, match=f"driven by pid {os.getpid()}"):
        take_lease(tmp_path, "it")
    assert [entry.name for entry in tmp_path.iterdir()] == ["5"]


def test_of_many_that_find_the_same_dead_holder_one_succeeds_it(tmp_path: Path) -> None:
    _hold(tmp_path / "1", Holder("elsewhere", 1, "boot:1", 0.0))
    os.utime(tmp_path / "1", (1, 1))
    won: list[object] = []
    barrier = threading.Barrier(8)

    def contend() -> None:
        barrier.wait()
        try:
            won.append(take_lease(tmp_path, "it"))
        except BusyError:
            pass

    contenders = [threading.Thread(target=contend) for _ in range(8)]
    for contender in contenders:
        contender.start()
    for contender in contenders:
        contender.join()
    assert len(won) == 1


def test_an_ended_process_has_no_start() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    deadline = time.monotonic() + 10
    while read_process_start(child.pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert read_process_start(child.pid) is None  # a zombie, until it is waited for
    child.wait()


def test_a_holder_tells_the_job_that_it_runs_in_and_files_of_other_versions_are_read(tmp_path: Path) -> None:
    take_lease(tmp_path / "new", "it", job_id="7_3")
    found = read_live_holder(tmp_path / "new")
    assert found is not None
    assert found.job_id == "7_3"
    (tmp_path / "1").write_text(json.dumps({"host": "n0", "pid": 1, "started": "b:1", "since": 1.0, "later": True}))
    assert read_live_holder(tmp_path) == Holder("n0", 1, "b:1", 1.0)


def test_a_buried_holders_lease_is_free_at_once_and_it_learns_so_if_it_lives(tmp_path: Path) -> None:
    lease = take_lease(tmp_path, "it", job_id="7")
    holder = read_live_holder(tmp_path)
    assert holder is not None
    assert bury_holder(tmp_path, holder)
    assert read_live_holder(tmp_path) is None
    lease._beaten -= 60
    with pytest.raises(BusyError, match="taken over"):
        lease.beat()
    take_lease(tmp_path, "it")


def test_only_the_holder_that_was_seen_is_buried(tmp_path: Path) -> None:
    take_lease(tmp_path, "it")
    assert not bury_holder(tmp_path, Holder("n0", 1, "boot:1", 0.0))
    assert read_live_holder(tmp_path) is not None


def _hold(path: Path, holder: Holder) -> None:
    path.write_text(json.dumps(vars(holder)))


def test_a_lease_whose_folder_was_removed_is_lost_and_its_successors_stays(tmp_path: Path) -> None:
    lost = take_lease(tmp_path / "lease", "it")
    shutil.rmtree(tmp_path / "lease")
    later = take_lease(tmp_path / "lease", "it")
    assert later.generation == lost.generation
    lost.release()
    holder = read_live_holder(tmp_path / "lease")
    assert holder is not None
    lost._beaten -= 60
    with pytest.raises(BusyError, match="or its lease was removed"):
        lost.beat()
    later.release()
    assert read_live_holder(tmp_path / "lease") is None
