"""Jobs that wait behind others, live: after the driver's own death Slurm alone goes on with a trial, or does not."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from virtual_cluster import Testbed, wait_for

from fake_driver import write_study
from fake_trials import make_trial
from windtunnel.ledger.facts import TrialFacts, read_facts
from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.ledger.log import Event
from windtunnel.records.trial import Verdict
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import SweepSettings
from windtunnel.testbed.hosts import enter_argv, host_env
from windtunnel.testbed.spec import login_host

DRIVER = (sys.executable, str(Path(__file__).parents[2] / "fake_driver.py"))
CLUSTER = ClusterSettings(kind="slurm", partition="main", network_interface="eth0")
SWEEP = SweepSettings(marker_poll_s=0.2, poll_s=1.0, settle_s=3.0, successor=True)
STEPS = 50


@dataclass(frozen=True)
class Bereft:
    """Two trials whose jobs ended while nobody drove them, by their names."""

    testbed: Testbed
    root: Path
    folders: dict[str, TrialFolder]

    def facts(self, name: str) -> TrialFacts:
        return read_facts(self.folders[name], steps=STEPS)

    def events(self, name: str, kind: str) -> list[Event]:
        return [event for event in self.facts(name).events if event.kind == kind]


@pytest.fixture(scope="module")
def bereft(testbed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bereft]:
    root = tmp_path_factory.mktemp("bereft")
    trials = {
        name: make_trial(f"{number:016x}", cluster=CLUSTER, steps=STEPS, step_s=0.2, behaviour="keep checkpoints")
        for number, name in enumerate(("its job died", "its user cancelled it"), start=0xE0)
    }
    write_study(root, list(trials.values()), SweepStageSettings(study="made_up", cluster=CLUSTER, sweep=SWEEP))
    found = Bereft(testbed, root, {name: trial_folder(root, trial.id) for name, trial in trials.items()})
    with ExitStack() as after:
        after.callback(lambda: [testbed.run("scancel", event.details["job_id"]) for event in list_jobs(found)])
        driver = start_driver(testbed, root)
        after.callback(kill, driver)
        for name in found.folders:
            wait_for(lambda each=name: is_followed(found, each), 60)
        kill(driver)
        killed = found.facts("its job died").holder
        assert killed is not None
        os.kill(killed.pid, signal.SIGKILL)
        (cancelled,) = found.events("its user cancelled it", "submitted")
        testbed.run("scancel", cancelled.details["job_id"])
        yield found


def test_slurm_alone_goes_on_with_a_trial_whose_job_died_under_no_driver(bereft: Bereft) -> None:
    name = "its job died"
    wait_for(lambda: len(bereft.events(name, "started")) == 2, 20)
    first, second = bereft.events(name, "started")
    assert second.details["job_id"] == bereft.events(name, "queued")[0].details["job_id"] != first.details["job_id"]
    assert second.at - bereft.events(name, "verdict")[0].at < 5
    assert bereft.events(name, "verdict")[0].details["verdict"] == Verdict.LOST
    wait_for(lambda: bereft.facts(name).outcome is not None, 40)
    assert (bereft.facts(name).outcome.resumed_from_step or 0) > 3


def test_a_job_behind_one_that_its_user_cancelled_runs_nothing(bereft: Bereft) -> None:
    name = "its user cancelled it"
    (queued,) = bereft.events(name, "queued")
    bereft.testbed.wait(queued.details["job_id"])
    assert len(bereft.events(name, "started")) == 1
    assert bereft.facts(name).ends[1].verdict == Verdict.CANCELLED
    assert bereft.facts(name).holder is None


def test_a_new_driver_finds_what_slurm_did_and_leaves_no_job_behind(bereft: Bereft) -> None:
    wait_for(lambda: bereft.facts("its job died").outcome is not None, 40)
    driver = start_driver(bereft.testbed, bereft.root)
    assert driver.wait(60) == 0
    assert all(bereft.facts(name).outcome is not None for name in bereft.folders)
    wait_for(lambda: not bereft.testbed.run("squeue", "--noheader").stdout.strip(), 20)


def is_followed(bereft: Bereft, name: str) -> bool:
    """Whether the trial made some steps, and a job waits behind its own."""
    step = bereft.folders[name].path / "fake_step"
    return step.exists() and int(step.read_text() or 0) > 5 and bool(bereft.events(name, "queued"))


def list_jobs(bereft: Bereft) -> list[Event]:
    return [
        event for name in bereft.folders for kind in ("submitted", "queued") for event in bereft.events(name, kind)
    ]


def start_driver(testbed: Testbed, root: Path) -> "subprocess.Popen[bytes]":
    argv = enter_argv(testbed.spec, login_host(testbed.spec).name, (*DRIVER, str(root)))
    with (root / "driver.txt").open("ab") as log:
        return subprocess.Popen(argv, env={**os.environ, **host_env(testbed.spec)}, stdout=log, stderr=log)


def kill(driver: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.kill(driver.pid, signal.SIGKILL)
    driver.wait(20)
