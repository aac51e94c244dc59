"""`windtunnel cancel` of all trials: `fake_cancel.py ROOT`, of a study as `fake_driver.write_study` lays it out."""

import sys
from pathlib import Path

from windtunnel.artifacts import read_artifact
from windtunnel.launch.withdraw import cancel_trials
from windtunnel.records.plan import Plan

if __name__ == "__main__":
    root = Path(sys.argv[1])
    plan = read_artifact(root / "study" / "plan.json", Plan)
    print(cancel_trials(root, plan.trials, study=plan.study, jobs_dir=root / "study" / "jobs"))
