import fcntl
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from windtunnel.errors import BusyError, ClusterError
from windtunnel.testbed.down import run_down
from windtunnel.testbed.hosts import host_env
from windtunnel.testbed.ports import find_ports
from windtunnel.testbed.processes import (
    find_processes,
    is_alive,
    is_listening,
    kill_processes,
    read_boot_id,
    read_start_ticks,
    start_process,
)
from windtunnel.testbed.spec import ClusterSpec
from windtunnel.testbed.state import ClusterState, Started, lock_folder, need_state, read_state, write_state


@pytest.fixture
def state(tmp_path: Path) -> ClusterState:
    spec = ClusterSpec(folder=tmp_path / "tb", user="root", machine="vm", nodes=1, leaves=1, network=False)
    spec.folder.mkdir()
    return ClusterState(spec, "up", read_boot_id(), made_folder=True, namespaces=())


def start_sleeper(state: ClusterState, env: dict[str, str]) -> Started:
    return start_process("sleep", ["sleep", "60"], env=env, log=state.spec.folder / "sleeper.log")


def wait_until_marked(state: ClusterState, pid: int) -> None:
    deadline = time.monotonic() + 5
    while pid not in find_processes(state):  # the environment shows once the child has become its command
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_process_that_no_record_names_is_found_by_its_mark(state: ClusterState) -> None:
    started = start_sleeper(state, host_env(state.spec))
    wait_until_marked(state, started.pid)
    assert kill_processes(state) == 1
    os.waitpid(started.pid, 0)
    assert not is_alive(started)


def test_recorded_id_with_another_start_time_is_spared(state: ClusterState) -> None:
    started = start_sleeper(state, {})
    impostor = Started("slurmd", started.pid, started.start_ticks - 1)
    record = ClusterState(state.spec, "up", state.boot_id, True, (), (impostor,))
    assert started.pid not in find_processes(record)
    os.kill(started.pid, signal.SIGKILL)
    os.waitpid(started.pid, 0)


def test_recorded_ids_of_an_earlier_boot_are_spared(state: ClusterState) -> None:
    started = start_sleeper(state, {})
    record = ClusterState(state.spec, "up", "an earlier boot", True, (), (started,))
    assert started.pid not in find_processes(record)
    os.kill(started.pid, signal.SIGKILL)
    os.waitpid(started.pid, 0)


def test_ancestors_are_never_found(state: ClusterState, monkeypatch: pytest.MonkeyPatch) -> None:
    me = Started("pytest", os.getpid(), read_start_ticks(os.getpid()) or 0)
    assert find_processes(ClusterState(state.spec, "up", state.boot_id, True, (), (me,))) == set()


def test_zombie_counts_as_ended() -> None:
    pid = os.posix_spawnp("true", ["true"], dict(os.environ))
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert read_start_ticks(pid) is None
    os.waitpid(pid, 0)


def test_listening_port_is_seen_without_connecting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert is_listening(os.getpid(), port)
    assert not is_listening(os.getpid(), port)


def test_ports_without_namespaces_avoid_one_in_use() -> None:
    first = find_ports(2, network=False)
    with socket.create_server(("127.0.0.1", first.node)):
        assert find_ports(2, network=False).controller > first.node


def test_down_removes_processes_files_and_folder(state: ClusterState) -> None:
    started = start_sleeper(state, host_env(state.spec))
    wait_until_marked(state, started.pid)
    write_state(state)
    assert run_down(state.spec.folder)
    os.waitpid(started.pid, 0)
    assert not state.spec.folder.exists()
    assert not run_down(state.spec.folder)


def test_down_keeps_a_folder_that_was_there_before(state: ClusterState) -> None:
    write_state(ClusterState(state.spec, "starting", state.boot_id, made_folder=False, namespaces=()))
    (state.spec.folder / "spool").mkdir()
    assert run_down(state.spec.folder)
    assert list(state.spec.folder.iterdir()) == []


def test_state_reads_back_as_it_was_written(state: ClusterState) -> None:
    written = write_state(ClusterState(state.spec, "up", "boot", False, ("n0",), (Started("slurmd", 7, 8),)))
    assert read_state(state.spec.folder) == written


def test_half_made_testbed_runs_no_command(state: ClusterState) -> None:
    write_state(ClusterState(state.spec, "starting", state.boot_id, True, ()))
    with pytest.raises(ClusterError, match="no testbed is up"):
        need_state(state.spec.folder)


def test_a_lock_that_ends_a_moment_after_its_process_is_waited_for(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    child = threading.Timer(0.2, os.close, [descriptor])
    child.start()
    with lock_folder(tmp_path):
        child.join()


def test_second_command_on_a_folder_is_refused(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(BusyError, match="at work"), lock_folder(tmp_path):
        pass


def test_a_damaged_record_is_told_with_the_way_out(state: ClusterState) -> None:
    write_state(state)
    (state.spec.folder / "testbed.json").write_text("{")
    with pytest.raises(ClusterError, match=f"end the processes that name {state.spec.folder}, unmount what is"):
        read_state(state.spec.folder)
