"""The driver as a small job: what it submits is free of its own job, and its death loses nothing."""

import sys
from pathlib import Path

from virtual_cluster import Testbed, read_if_there, wait_for

from fake_driver import write_study
from fake_trials import make_trial
from windtunnel.artifacts import read_artifact
from windtunnel.launch.detach import render_driver_script
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.log import read_events
from windtunnel.records.trial import Sweep, Verdict
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import DriverSettings, SweepSettings

DRIVER = (sys.executable, str(Path(__file__).parents[2] / "fake_driver.py"))
CLUSTER = ClusterSettings(kind="slurm", partition="main", network_interface="eth0")
SWEEP = SweepSettings(marker_poll_s=0.2, poll_s=2.0, settle_s=5.0)


def test_a_driver_that_is_a_job_submits_and_goes_on_after_its_time_is_up(testbed: Testbed, tmp_path: Path) -> None:
    trial = make_trial("a", cluster=CLUSTER, ranks=2, nodes=2, steps=100, step_s=0.2)
    write_study(tmp_path, [trial], SweepStageSettings(study="made_up", cluster=CLUSTER, sweep=SWEEP))
    script = tmp_path / "driver.sh"
    script.write_text(
        render_driver_script(
            [*DRIVER, str(tmp_path)],
            study="made_up",
            log=tmp_path / "driver.log",
            cwd=tmp_path,
            command="again",
            driver=DriverSettings(time=5, memory=300),
            cluster=CLUSTER,
        )
    )
    folder = trial_folder(tmp_path, trial.id)
    # On one node, so that the lease of the first run need not grow old before the second takes it.
    job = testbed.submit("--nodelist=n7", str(script), cwd=tmp_path)
    wait_for((folder.path / "fake_step").exists, 120)
    testbed.run("scancel", "--batch", "--signal=USR1", job)  # as Slurm does before the time limit
    log = tmp_path / "driver.log"
    wait_for(lambda: "already under way" in read_if_there(log), 120)
    assert testbed.wait(job) == ["COMPLETED"], log.read_text()
    (entry,) = read_artifact(tmp_path / "study/sweep.json", Sweep).entries
    assert (entry.attempts, entry.verdict) == (1, Verdict.COMPLETED)
    assert [event.kind for event in read_events(folder.path)].count("submitted") == 1
