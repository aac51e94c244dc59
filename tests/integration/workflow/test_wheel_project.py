"""A user's own project, with nothing of ours but the wheel."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, project_dir) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    argv = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    finished = subprocess.run([*argv, str(project_dir)], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def site(tmp_path_factory, wheel) -> Path:
    """An environment that has the wheel, and the dependencies of this one (but not the checkout)."""
    folder = tmp_path_factory.mktemp("site")
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    paths = [str(python), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    packages = Path(subprocess.check_output(paths, text=True).strip())
    # A .pth inside an added folder is not read, so that the editable install stays out.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    # The folder of wheels has ours alone: whatever pip wanted to replace, torch above all, it could not find.
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--ignore-installed", "--no-deps"]
    subprocess.run([*install, str(wheel)], check=True)
    subprocess.run([str(python), "-m", "pip", "check"], check=True)
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory, site) -> Path:
    folder = tmp_path_factory.mktemp("user") / "mine"
    finished = _run(site, folder.parent, "windtunnel", "init", "mine")
    assert finished.returncode == 0, finished.stderr
    return folder


def _run(site: Path, cwd: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    path = f"{site / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    command = [str(site / "bin" / argv[0]), *argv[1:]] if argv[0] == "windtunnel" else [*argv]
    return subprocess.run(command, cwd=cwd, env={**env, "PATH": path}, capture_output=True, text=True, timeout=500)


def test_the_wheel_carries_workflow_conf_profiles_and_the_library(site):
    finished = _run(site, site, str(site / "bin/python"), "-c", "import windtunnel; print(windtunnel.__file__)")
    package = Path(finished.stdout.strip()).parent
    assert site in package.parents
    assert (package / "native/libwindtunnel.so").is_file()
    for name in ("Snakefile", "conf/config.yaml", "workflow/rules/sweep.smk", "cluster_profiles/slurm/config.yaml"):
        assert (package / "project" / name).is_file(), name


def test_the_dag_builds_the_users_own_study(site, project):
    snakemake = [str(site / "bin/python"), "-m", "snakemake", "--cores", "2"]
    finished = _run(site, project, *snakemake, "--config", "overrides=+debug=fast")
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    sweep = json.loads((project / "results/mine/sweep.json").read_text())["content"]
    assert {entry["choices"]["model"]: entry["verdict"] for entry in sweep["entries"]} == {
        "mine": "COMPLETED",
        "tcn": "COMPLETED",
    }
    assert "tcn" in (project / "results/mine/report.html").read_text()
    again = _run(site, project, *snakemake, "--config", "overrides=+debug=fast")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_a_multirun_takes_the_trials_that_the_dag_has_trained(site, project):
    words = ["-m", "+debug=fast", "model=mine", "training.learning_rate=0.001,0.003"]
    finished = _run(site, project, "windtunnel", "train", *words)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    trials = [path for path in (project / "results/trials").iterdir() if (path / "DONE.json").is_file()]
    assert len(trials) == 3, "two of the study, and of the multirun the one that the study does not have"
