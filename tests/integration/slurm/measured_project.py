"""A user's project at a testbed whose cluster was measured before: only the plan and the sweep are left to run."""

import shutil
from dataclasses import replace
from pathlib import Path

from fabricated_study import make_collectives, make_device, make_models, make_topology
from windtunnel.artifacts import write_artifact

PROFILES = Path(__file__).parents[3] / "cluster_profiles"
PROFILE = "profile"
"""The project's own: the testbed's, in which those rules are not looked at that measure."""


def write_project(folder: Path, *, study: str, program: str) -> None:
    """Write `conf/study/mine.yaml`, `program.py`, the facts and the profile."""
    (folder / "conf/study").mkdir(parents=True)
    (folder / "conf/study/mine.yaml").write_text(study)
    (folder / "program.py").write_text(program)
    facts = folder / "results/cluster/main"
    write_artifact(facts / "topology.json", replace(make_topology(), partition="main"))
    write_artifact(facts / "collectives.json", make_collectives())
    write_artifact(facts / "device.json", make_device())
    write_artifact(folder / "results/mine/models.json", make_models())
    shutil.copytree(PROFILES / "testbed", folder / PROFILE)
    with (folder / PROFILE / "config.yaml").open("a") as file:
        file.write("\nallowed-rules: [settings, plan, sweep]\n")
