"""`kill -9` of everything in mid-sweep, and the same command again."""

import re
import subprocess
import sys
import time

from interrupted_study import kill_everything, list_trials, make_project, read_outcome, wait_for_the_middle


def test_the_same_command_finishes_a_study_that_was_killed(tmp_path, project_dir):
    folder = make_project(tmp_path, project_dir)
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(project_dir / "Snakefile")]
    argv += ["--profile", str(project_dir / "cluster_profiles/local"), "--config", "study=interrupted"]
    with (folder / "first.log").open("w") as log:
        driver = subprocess.Popen(argv, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    wait_for_the_middle(folder, lambda: driver.poll() is None)
    second = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120)
    assert second.returncode == 1
    assert re.search(rf"study interrupted is driven by pid {driver.pid} on host", second.stdout + second.stderr)
    kill_everything(driver.pid, folder)
    driver.wait()
    short, long = list_trials(folder)
    finished_at = (short / "DONE.json").stat().st_mtime_ns
    killed_at = time.time()

    again = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=400)
    text = again.stdout + again.stderr
    assert again.returncode == 0, text[-4000:]
    assert (folder / "results/interrupted/report.html").stat().st_mtime > killed_at
    assert (short / "DONE.json").stat().st_mtime_ns == finished_at
    assert [path.name for path in (short / "attempts").iterdir()] == ["1"]
    assert read_outcome(long)["attempt"] == 2
    assert read_outcome(long)["resumed_from_step"] >= 20
    assert "Nothing to be done" in _run(argv, folder)


def _run(argv, folder):
    finished = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout + finished.stderr
