"""The doctor on the session's testbed, and what `docs/cluster.md` has people type."""

import json
import os
import re
import sys
from pathlib import Path


def test_two_nodes_are_tried_and_nothing_fails(testbed, windtunnel, tmp_path):
    ended = testbed.run(*windtunnel, "doctor", "--partition=main", f"--store={tmp_path}", "--json", check=False)
    said = json.loads(ended.stdout)
    levels = {(finding["area"], finding["subject"]): finding["level"] for finding in said["findings"]}
    assert ended.code == 0, ended.stdout + ended.stderr
    assert said["worst"] == "WARN", "a testbed has no cgroups, and its GPUs are pretended"
    assert {levels["nodes", subject] for subject in ("exclusive link", "appended lines", "connection")} == {"OK"}
    assert {levels["cluster", subject] for subject in ("Slurm", "sacct", "topology", "arrays")} == {"OK"}
    assert levels["cluster", "processes"] == "WARN"
    assert len([subject for area, subject in levels if subject.startswith("torch on n")]) == 2
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"
    queued = testbed.run("squeue", "--noheader", "--name=windtunnel-doctor").stdout
    assert queued == ""


def test_an_unknown_partition_fails_with_the_known_ones(testbed, windtunnel, tmp_path):
    ended = testbed.run(*windtunnel, "doctor", "--partition=nowhere", f"--store={tmp_path}", check=False)
    assert ended.code == 1
    assert "FAIL  partition" in ended.stdout
    assert "nowhere, of main" in ended.stdout


# What is added to a command of the page to make it small; None where another test runs it.
PAGE = {
    "make bundle": None,  # test_wheel_project, with wheels of this environment
    "windtunnel profile install slurm": "",
    "windtunnel doctor --partition main --store .": "--no-job",
    "windtunnel plan quickstart --dry-run": "",
    "snakemake --profile slurm": "--dry-run --quiet all",
    "windtunnel status": "",
    "windtunnel sweep quickstart --driver=sbatch": "--dry-run",
}


def _read_page(project_dir: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", (project_dir / "docs/cluster.md").read_text(), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line]


def test_every_command_of_the_cluster_page_is_known_here(project_dir):
    assert set(_read_page(project_dir)) == set(PAGE)


def test_the_cluster_pages_commands_run(testbed, project_dir, tmp_path):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "PATH": path}
    for command in _read_page(project_dir):
        if PAGE[command] is not None:
            words = f"{command} {PAGE[command]}".split()
            ended = testbed.run(*words, cwd=project_dir, env=env, check=False)
            assert ended.code == 0, f"{command}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
