"""The doctor's look at this machine and at a folder."""

import dataclasses
import json

import pytest

from windtunnel.cli.doctor.findings import Finding, Level, fail, find_worst, render_plain, render_text, warn
from windtunnel.cli.doctor.folder import FolderFacts, find_mount, judge_folder, read_folder
from windtunnel.cli.doctor.machine import MachineFacts, judge_machine, read_kills_at_logout, read_machine
from windtunnel.cli.main import main

MACHINE = MachineFacts(
    "3.11.7", "/opt/windtunnel/bin/python", "2.13.0+cu130", ">=2.11,<2.14", "Open MPI 5", None, False
)
FOLDER = FolderFacts("/scratch/desk", "lustre", ("rw", "flock"), 1 << 40, 10**8, True, True, True, 0.005, 0.1, True)
MOUNTS = """\
proc /proc proc rw,nosuid 0 0
/dev/sda1 / ext4 rw,relatime 0 0
nas:/home /home nfs4 rw,soft,vers=4.2 0 0
nas:/a\\040b /home/a\\040b nfs4 rw,hard 0 0
tmpfs /home tmpfs rw 0 0
"""


def worst_of(findings: list[Finding]) -> dict[str, Level]:
    return {finding.subject: finding.level for finding in findings}


def judge(slurm: bool = True, **changes: object) -> dict[str, Level]:
    return worst_of(judge_machine(dataclasses.replace(MACHINE, **changes), slurm=slurm))


def look(**changes: object) -> dict[str, Level]:
    return worst_of(judge_folder(dataclasses.replace(FOLDER, **changes), shared=True))


def test_this_machine_and_a_folder_of_it_can_be_looked_at(tmp_path):
    facts = read_machine()
    assert facts.torch_wanted
    assert judge_machine(facts, slurm=False)[0].level == Level.OK
    seen = read_folder(tmp_path / "new")
    assert (seen.replaces, seen.links, seen.locks) == (True, True, True)
    assert abs(seen.clock_ahead_s) < 5
    assert list((tmp_path / "new").iterdir()) == []


def test_a_good_login_node_has_nothing_to_set():
    assert set(judge().values()) == {Level.OK}


@pytest.mark.parametrize(
    ("changes", "subject", "level"),
    [
        ({"torch": ""}, "torch", Level.FAIL),
        ({"torch": "2.4.1"}, "torch", Level.FAIL),
        ({"mpi": ""}, "MPI", Level.WARN),
        ({"cpu_limit_s": 600}, "driver", Level.WARN),
        ({"kills_at_logout": True}, "driver", Level.WARN),
    ],
)
def test_what_a_machine_lacks_is_told(changes, subject, level):
    assert judge(**changes)[subject] == level


def test_a_machine_without_slurm_needs_no_driver_that_stays():
    assert "driver" not in judge(slurm=False, kills_at_logout=True)


def test_the_last_word_of_logind_counts():
    assert not read_kills_at_logout(["[Login]\n#KillUserProcesses=yes\n"])
    assert read_kills_at_logout(["[Login]\nKillUserProcesses=no\n", "KillUserProcesses = yes\n"])


def test_the_mount_that_holds_a_folder_is_the_longest_and_the_latest():
    assert find_mount("/var/x", MOUNTS) == ("ext4", ("rw", "relatime"))
    assert find_mount("/home/me", MOUNTS)[0] == "tmpfs"
    assert find_mount("/home/a b/c", MOUNTS) == ("nfs4", ("rw", "hard"))
    assert find_mount("/homes", MOUNTS)[0] == "ext4"


@pytest.mark.parametrize(
    ("changes", "subject", "level"),
    [
        ({"kind": "tmpfs"}, "file system", Level.FAIL),
        ({"kind": "nfs4", "options": ("rw", "soft")}, "file system", Level.WARN),
        ({"free_bytes": 1 << 30}, "room", Level.WARN),
        ({"free_files": 500}, "room", Level.WARN),
        ({"links": False}, "rename and link", Level.FAIL),
        ({"replaces": False}, "rename and link", Level.FAIL),
        ({"locks": False}, "rename and link", Level.OK),
        ({"sync_s": 0.5}, "fsync", Level.WARN),
        ({"clock_ahead_s": -60.0}, "clock", Level.WARN),
        ({"inherits_group": False}, "group", Level.WARN),
    ],
)
def test_what_a_folder_lacks_is_told(changes, subject, level):
    assert set(look().values()) == {Level.OK}
    assert look(**changes)[subject] == level


def test_findings_are_printed_by_area_and_counted():
    findings = [Finding("machine", "Python", "3.11"), warn("folder", "fsync", "slow", "It waits.", "Set x=1.")]
    assert render_text(findings).splitlines() == [
        "machine",
        "  OK    Python  3.11",
        "",
        "folder",
        "  WARN  fsync   slow",
        "        It waits.",
        "        Set x=1.",
        "",
        "1 OK, 1 WARN, 0 FAIL",
    ]


def test_the_gravest_finding_counts():
    assert find_worst([]) == Level.OK
    findings = [fail("a", "b", "c", "d", "e"), warn("a", "b", "c", "d", "e")]
    assert find_worst(findings) == Level.FAIL
    assert render_plain(findings)["worst"] == "FAIL"


def test_the_command_ends_well_where_nothing_fails_and_prints_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no Slurm here
    assert main(["doctor", f"--store={tmp_path}", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == "windtunnel.doctor/1"
    assert "studies run here" in said["findings"][-1]["found"]
