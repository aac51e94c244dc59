import os
from pathlib import Path

import pytest

from fake_trials import make_trial
from windtunnel.launch.context import SweepContext
from windtunnel.launch.course import begin_course
from windtunnel.launch.drive import Driver
from windtunnel.launch.onslurm import SlurmBackend
from windtunnel.ledger.log import append_event, read_events
from windtunnel.records.plan import Identity
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.sweep import SweepSettings


def test_a_job_whose_driver_died_before_it_wrote_the_id_is_found_by_its_submissions_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = tmp_path / "bin" / "squeue"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\nprintf '7_0|RUNNING|n0|None|x\\n7_1|PENDING||Resources|x\\n'\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")
    context = make_context(tmp_path)
    trial = make_trial("b")
    said: list[str] = []
    course = begin_course(trial, context, number=1, total=1)
    course.folder.path.mkdir(parents=True)
    append_event(course.folder.path, "submitting", attempt=0, submission="windtunnel-x-1", index=1)
    Driver(context, SlurmBackend(context, say=said.append), say=said.append).attach([course])
    assert (course.job_id, course.under_way) == ("7_1", True)
    assert [event.kind for event in read_events(course.folder.path)] == ["submitting", "submitted"]
    assert said == ["trial 1 of 1: b: already under way (7_1): watching it"]


def make_context(store: Path) -> SweepContext:
    return SweepContext(
        study="made_up",
        cluster=ClusterSettings(kind="slurm", partition="main"),
        sweep=SweepSettings(),
        identity=Identity("d", "s", "2.13.0"),
        features=store / "MANIFEST.json",
        topology=None,
        store=store,
        import_root="",
        jobs_dir=store / "jobs",
    )
