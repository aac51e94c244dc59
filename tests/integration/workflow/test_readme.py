"""Every command that the README shows is run here, in order; what would take minutes is made small."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ON_A_CLUSTER = "snakemake --profile slurm"
"""Typed on a login node; here on the testbed's, once it is up."""

MULTIRUN = "windtunnel train -m study=quickstart model=tcn,transformer parallelism=single,ddp"

# What is added to a command to make it small. A command that is not here is not yet tested: add it.
ADDED = {
    "make demo": "--dry-run",  # its own command runs in test_interrupted_study, and what it builds is built
    "make test": "--dry-run",  # this very run
    ". .venv/bin/activate": None,  # PATH stands for it
    "windtunnel plan quickstart --dry-run": "",
    "windtunnel status": "",
    MULTIRUN: "+debug=fast paths.results={tmp}",
    "windtunnel init ../my_project": "",
    "cd ../my_project": None,
    "snakemake --cores 2": "--dry-run",  # runs whole in test_wheel_project
    "windtunnel profile install slurm": "",
    ON_A_CLUSTER: "--dry-run",
    "windtunnel testbed up --nodes 8 --leaves 2 --gpus 4": "",
    "windtunnel testbed run -- sinfo": "",
    "windtunnel testbed run -- snakemake --profile cluster_profiles/testbed": "--dry-run",
    "windtunnel testbed down": "",
}


def _sections(project_dir: Path) -> list[list[str]]:
    """The commands below each heading."""
    sections = (project_dir / "README.md").read_text().split("\n## ")
    blocks = ["\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL)) for section in sections]
    return [[line for line in block.splitlines() if line] for block in blocks]


def test_every_command_of_the_readme_is_known_here(project_dir):
    assert {command for section in _sections(project_dir) for command in section} == set(ADDED)


def test_the_readme_is_short(project_dir):
    assert len((project_dir / "README.md").read_text().splitlines()) <= 150


@pytest.mark.slurm
@pytest.mark.timeout(400)
def test_the_readmes_commands_run(project_dir, tmp_path):
    environment = Path(sys.executable).parent
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "VENV": str(environment.parent)}
    env["PATH"] = f"{environment}:{env['PATH']}"
    beside = tmp_path / "clone"  # what the commands put beside a clone is put beside this
    beside.mkdir()
    for section in _sections(project_dir):
        cwd = beside if "cd ../my_project" in section else project_dir
        for command in section:
            if command.startswith("cd "):
                cwd = cwd / command.removeprefix("cd ")
            elif ADDED[command] is not None and command != ON_A_CLUSTER:
                _run(f"{command} {ADDED[command]}".format(tmp=tmp_path), cwd, env)
            if command.startswith("windtunnel testbed up"):
                _run(f"windtunnel testbed run -- {ON_A_CLUSTER} {ADDED[ON_A_CLUSTER]}", cwd, env)


def _run(command: str, cwd: Path, env: dict[str, str]) -> None:
    finished = subprocess.run(command, shell=True, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, f"{command}\n{finished.stdout[-2000:]}{finished.stderr[-2000:]}"
