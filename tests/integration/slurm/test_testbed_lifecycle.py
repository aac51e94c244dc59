import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from virtual_cluster import wait_for

from windtunnel.process import Finished, run_command
from windtunnel.testbed.down import run_down
from windtunnel.testbed.hosts import MARK
from windtunnel.testbed.spec import ClusterSpec

SMALL = ("--nodes", "2", "--no-accounting")


@pytest.fixture
def command(windtunnel: tuple[str, ...], small_spec: ClusterSpec) -> Callable[..., Finished]:
    """`windtunnel testbed ACTION --dir ... ARGUMENTS` to its end."""

    def run(action: str, *argv: str, check: bool = True, env: dict[str, str] | None = None) -> Finished:
        words = [*windtunnel, "testbed", action, "--dir", str(small_spec.folder), *argv]
        return run_command(words, check=check, env=env, timeout_s=120)

    return run


def read_namespaces(folder: Path) -> set[int]:
    """The inodes of a testbed's network namespaces, while it has them."""
    return {path.stat().st_ino for path in (folder / "ns").glob("*")}


def find_leftovers(folder: Path, namespaces: set[int]) -> list[str]:
    """What is left of a testbed: its folder, mounts in it, processes with its mark or in its namespaces, links."""
    found = [str(folder)] if folder.exists() else []
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line]
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            ended = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            marked = f"{MARK}={folder}\0".encode() in (entry / "environ").read_bytes()
            inside = (entry / "ns/net").stat().st_ino in namespaces
            name = (entry / "comm").read_text().strip()
        except OSError:
            continue
        if not ended and (marked or inside):
            found.append(f"{name} ({entry.name})")
    links = run_command(["ip", "-o", "link"]).stdout.splitlines()
    return found + [line for line in links if any(name in line for name in ("spine", "leaf", "sw-n"))]


def start_up(windtunnel: tuple[str, ...], folder: Path, *options: str) -> "subprocess.Popen[bytes]":
    words = [*windtunnel, "testbed", "up", "--dir", str(folder), "--nodes", "2", *options]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def count_processes(folder: Path) -> int:
    record = folder / "testbed.json"
    return len(json.loads(record.read_text())["content"]["processes"]) if record.exists() else 0


def count_namespaces(folder: Path) -> int:
    return Path("/proc/self/mountinfo").read_text().count(str(folder))


def test_down_leaves_nothing_also_of_jobs_that_orphaned_processes(
    command: Callable[..., Finished], small_spec: ClusterSpec, tmp_path: Path
) -> None:
    command("up", *SMALL)
    namespaces = read_namespaces(small_spec.folder)
    assert len(namespaces) == 4
    assert command("status").code == 0
    orphan = f"setsid env -i {sys.executable} -c 'import time; time.sleep(600)' > /dev/null 2>&1 &"
    command("run", "--", "srun", "-N2", "sh", "-c", orphan)
    command("down")
    assert find_leftovers(small_spec.folder, namespaces) == []
    assert command("status", check=False).code == 1


@pytest.mark.parametrize("moment", ["namespaces", "first daemon", "last daemon"])
def test_down_clears_an_up_that_was_killed(moment: str, windtunnel: tuple[str, ...], small_spec: ClusterSpec) -> None:
    child = start_up(windtunnel, small_spec.folder, "--no-accounting" if moment == "last daemon" else "--accounting")
    if moment == "namespaces":
        wait_for(lambda: count_namespaces(small_spec.folder) >= 2)
    else:
        wait_for(lambda: count_processes(small_spec.folder) >= (1 if moment == "first daemon" else 3))
    child.send_signal(signal.SIGKILL)
    child.wait()
    namespaces = read_namespaces(small_spec.folder)
    assert run_down(small_spec.folder)
    assert find_leftovers(small_spec.folder, namespaces) == []


def test_up_clears_what_a_killed_one_left(
    windtunnel: tuple[str, ...], command: Callable[..., Finished], small_spec: ClusterSpec
) -> None:
    child = start_up(windtunnel, small_spec.folder, "--no-accounting")
    wait_for(lambda: count_processes(small_spec.folder) >= 2)
    child.send_signal(signal.SIGKILL)
    child.wait()
    namespaces = read_namespaces(small_spec.folder)
    assert "clearing what an earlier one left" in command("up", *SMALL).stdout
    assert len(command("run", "--", "srun", "-N2", "hostname").stdout.split()) == 2
    namespaces |= read_namespaces(small_spec.folder)
    command("down")
    assert find_leftovers(small_spec.folder, namespaces) == []


def test_interrupted_up_clears_up_after_itself(windtunnel: tuple[str, ...], small_spec: ClusterSpec) -> None:
    child = start_up(windtunnel, small_spec.folder, "--no-accounting")
    wait_for(lambda: count_processes(small_spec.folder) >= 1)
    namespaces = read_namespaces(small_spec.folder)
    child.terminate()
    assert child.wait(60) == 128 + signal.SIGTERM
    assert find_leftovers(small_spec.folder, namespaces) == []


def test_failing_daemon_is_shown_and_everything_removed(
    command: Callable[..., Finished], small_spec: ClusterSpec, tmp_path: Path
) -> None:
    broken = tmp_path / "slurmctld"
    broken.write_text("#!/bin/sh\necho fatal: broken on purpose\nexit 1\n")
    broken.chmod(0o755)
    failed = command("up", *SMALL, check=False, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert failed.code == 1
    assert "slurmctld ended while it started" in failed.stderr
    assert "fatal: broken on purpose" in failed.stderr
    assert find_leftovers(small_spec.folder, set()) == []


def test_second_up_in_the_same_folder_is_refused(command: Callable[..., Finished]) -> None:
    command("up", *SMALL)
    refused = command("up", *SMALL, check=False)
    assert refused.code == 2
    assert "is up in" in refused.stderr
    assert len(command("run", "--", "srun", "-N2", "hostname").stdout.split()) == 2


def test_site_with_a_configuration_is_refused(windtunnel: tuple[str, ...], small_spec: ClusterSpec) -> None:
    words = [*windtunnel, "testbed", "up", "--dir", str(small_spec.folder)]
    site = 'mount -t tmpfs site /etc/slurm && touch /etc/slurm/slurm.conf && exec "$@"'
    refused = run_command(["unshare", "--mount", "sh", "-c", site, "sh", *words], check=False)
    assert refused.code == 2
    assert "/etc/slurm/slurm.conf is a Slurm configuration that is not the testbed's" in refused.stderr
    assert not small_spec.folder.exists()


def test_site_with_a_daemon_is_refused(
    command: Callable[..., Finished], small_spec: ClusterSpec, tmp_path: Path
) -> None:
    shutil.copy("/bin/sleep", tmp_path / "slurmd")
    with subprocess.Popen([str(tmp_path / "slurmd"), "60"]) as daemon:
        refused = command("up", check=False)
        daemon.kill()
    assert refused.code == 2
    assert f"Slurm runs here already: slurmd (pid {daemon.pid})" in refused.stderr
    assert not small_spec.folder.exists()


def test_run_keeps_exit_code_folder_environment_and_input(
    command: Callable[..., Finished], windtunnel: tuple[str, ...], small_spec: ClusterSpec, tmp_path: Path
) -> None:
    command("up", *SMALL)
    words = [*windtunnel, "testbed", "run", "--dir", str(small_spec.folder), "--"]
    show = 'cat; echo " $PWD $KEPT $(hostname) $SLURM_CONF"; exit 7'
    found = run_command([*words, "sh", "-c", show], stdin="in", cwd=tmp_path, env={"KEPT": "kept"}, check=False)
    assert found.code == 7
    assert found.stdout == f"in {tmp_path} kept login {small_spec.folder}/etc/slurm/slurm.conf\n"
    assert run_command([*words, "sh", "-c", "kill -9 $$"], check=False).code == -signal.SIGKILL
    assert run_command([*words, "sinfo"], env={"SLURM_CONF": ""}).code == 0


def test_flat_testbed_without_namespaces_runs_jobs(command: Callable[..., Finished], small_spec: ClusterSpec) -> None:
    command("up", *SMALL, "--no-network", "--gpus", "2")
    show = "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"
    lines = command("run", "--", "srun", "-N2", "--gres=gpu:1", "sh", "-c", show).stdout.splitlines()
    assert sorted(lines) == ["n0 0", "n1 0"]
    command("down")
    assert find_leftovers(small_spec.folder, set()) == []
