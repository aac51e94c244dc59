import os
import stat

import pytest

from windtunnel.launch.sights import read_job_sight, read_sights
from windtunnel.ledger.reconcile import Phase
from windtunnel.ledger.story import Submission
from windtunnel.records.trial import Verdict

ANSWER = "12_0|RUNNING|n0|None|a\\n12_1|PENDING||Priority|a\\n"


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A squeue that counts its calls, and a sacct that knows nothing."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, words in (("squeue", f"printf '{ANSWER}'"), ("sacct", "true")):
        path = bin_ / name
        path.write_text(f"#!/bin/sh\necho x >>{tmp_path}/{name}.calls\n[ -e {tmp_path}/down ] && exit 1\n{words}\n")
        path.chmod(path.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    return tmp_path


def count_calls(slurm):
    path = slurm / "squeue.calls"
    return len(path.read_text().split()) if path.exists() else 0


def test_slurm_is_asked_once_an_interval_however_many_look(slurm):
    for _ in range(5):
        sights = read_sights({"12_0", "12_1"}, cache=slurm / "cache", poll_s=30)
    assert count_calls(slurm) == 1
    assert sights.of("12_0").phase == Phase.RUNNING
    assert (sights.of("12_1").phase, sights.of("12_1").evidence) == (Phase.QUEUED, "Priority")
    read_sights({"12_0"}, cache=slurm / "cache", poll_s=0)
    assert count_calls(slurm) == 2


def test_a_look_at_one_new_job_leaves_the_answer_whole_for_the_others(slurm):
    read_sights({"12_0"}, cache=slurm / "cache", poll_s=0)
    read_sights({"12_1"}, cache=slurm / "cache", poll_s=0)
    assert count_calls(slurm) == 2
    for _ in range(3):
        sights = read_sights({"12_0", "12_1"}, cache=slurm / "cache", poll_s=30)
    assert sights.of("12_0").phase == Phase.RUNNING
    assert count_calls(slurm) == 2


def test_a_job_that_nobody_asks_for_and_that_does_not_live_is_left_out(slurm):
    read_sights({"12_0", "99"}, cache=slurm / "cache", poll_s=0)
    assert set(read_sights({"12_1"}, cache=slurm / "cache", poll_s=0).jobs) == {"12_0", "12_1"}


def test_jobs_that_are_no_slurm_jobs_are_not_asked_for(slurm):
    assert read_sights({"", "host:12"}, cache=slurm / "cache", poll_s=30).jobs == {}
    assert count_calls(slurm) == 0


def test_jobs_whose_ids_nobody_wrote_down_are_found_by_their_submissions_name(slurm):
    sights = read_sights(set(), cache=slurm / "cache", poll_s=30, names={"a", "b"})
    assert (sights.find(Submission("a", 1)), sights.find(Submission("b", 0))) == ("12_1", "")
    assert sights.of("12_1").phase == Phase.QUEUED
    again = read_sights(set(), cache=slurm / "cache", poll_s=30, names={"a"})
    assert (again.find(Submission("a", 0)), count_calls(slurm)) == ("12_0", 1)


def test_a_submission_that_squeue_forgot_is_looked_for_in_accounting(slurm):
    sacct = slurm / "bin" / "sacct"
    sacct.write_text("#!/bin/sh\necho 'b|9|NODE_FAIL|0:0|3|n0|100|None'\n")
    sights = read_sights(set(), cache=slurm / "cache", poll_s=30, names={"b"})
    assert sights.of(sights.find(Submission("b", 0))).verdict == Verdict.NODE_FAIL


def test_a_job_that_nobody_knows_is_unsure(slurm):
    assert read_sights({"99"}, cache=slurm / "cache", poll_s=30).of("99").phase == Phase.UNSURE
    assert read_job_sight("99").phase == Phase.UNSURE


def test_while_slurm_is_silent_the_last_answer_stands_and_it_is_said(slurm):
    read_sights({"12_0"}, cache=slurm / "cache", poll_s=30)
    (slurm / "down").touch()
    sights = read_sights({"12_0"}, cache=slurm / "cache", poll_s=0)
    assert sights.of("12_0").phase == Phase.RUNNING
    assert "Slurm does not answer" in sights.problem


def test_a_host_without_squeue_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "look from a login node" in read_sights({"12"}, cache=tmp_path / "cache", poll_s=30).problem


def test_a_damaged_or_foreign_cache_is_asked_past(slurm):
    (slurm / "cache").write_text('{"jobs": 3')
    assert read_sights({"12_0"}, cache=slurm / "cache", poll_s=30).of("12_0").phase == Phase.RUNNING
    (slurm / "nowhere").mkdir()
    (slurm / "nowhere").chmod(0o500)
    assert read_sights({"12_0"}, cache=slurm / "nowhere/cache", poll_s=30).of("12_0").phase == Phase.RUNNING
