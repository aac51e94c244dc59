"""A cluster without network: the bundle, its installer, and a user's own project with nothing but these."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import distribution, version
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def bundle(tmp_path_factory, project_dir) -> Path:
    """What `make bundle` makes, its wheels taken from this environment instead of the network."""
    folder = tmp_path_factory.mktemp("dist") / "bundle"
    argv = [sys.executable, "-m", "tools.bundle", "--repack", "--out", str(folder)]
    finished = subprocess.run(argv, cwd=project_dir, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def site_python(tmp_path_factory) -> Path:
    """A cluster's Python: it has torch, and nothing else."""
    folder = tmp_path_factory.mktemp("module")
    venv.create(folder, with_pip=False)
    python = folder / "bin/python"
    for name in ("torch", "torchgen", "functorch", _info_folder("torch")):
        installed = Path(sysconfig.get_paths()["purelib"]) / name
        if installed.exists():
            (_packages(python) / name).symlink_to(installed)
    return python


@pytest.fixture(scope="module")
def installed(tmp_path_factory, bundle, site_python) -> tuple[Path, str]:
    """The prefix that the bundle's installer made for that Python without network, and what it printed."""
    prefix = tmp_path_factory.mktemp("shared") / "windtunnel"
    argv = [str(site_python), str(bundle / "install.py"), str(prefix)]
    # Compiling all that is never imported takes as long as the test.
    finished = subprocess.run(argv, env={**os.environ, "COMPILE": "0"}, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    return prefix, finished.stdout


@pytest.fixture(scope="module")
def site(installed) -> Path:
    return installed[0]


@pytest.fixture(scope="module")
def project(tmp_path_factory, site) -> Path:
    folder = tmp_path_factory.mktemp("user") / "mine"
    finished = _run(site, folder.parent, "windtunnel", "init", "mine")
    assert finished.returncode == 0, finished.stderr
    return folder


def _packages(python: Path) -> Path:
    paths = [str(python), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    return Path(subprocess.check_output(paths, text=True).strip())


def _info_folder(name: str) -> str:
    return next(file.parts[0] for file in distribution(name).files or [] if file.parts[0].endswith(".dist-info"))


def _find_torch(python: Path) -> list[str]:
    code = "import torch; print(torch.__version__, torch.__file__)"
    return subprocess.check_output([str(python), "-c", code], text=True).split()


def _run(site: Path, cwd: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    path = f"{site / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    command = [str(site / "bin" / argv[0]), *argv[1:]] if argv[0] == "windtunnel" else [*argv]
    return subprocess.run(command, cwd=cwd, env={**env, "PATH": path}, capture_output=True, text=True, timeout=500)


def test_an_installation_that_fails_leaves_no_prefix(bundle, site_python, tmp_path):
    for name in ("install.py", "PYTHON"):
        (tmp_path / name).write_bytes((bundle / name).read_bytes())  # and no wheels
    argv = [str(site_python), str(tmp_path / "install.py"), str(tmp_path / "prefix")]
    finished = subprocess.run(argv, env={**os.environ, "COMPILE": "0"}, capture_output=True, text=True)
    assert finished.returncode == 1, finished.stdout + finished.stderr
    assert "failed: " in finished.stderr
    assert not (tmp_path / "prefix").exists()


def test_the_installer_keeps_the_sites_torch_and_meets_every_requirement(installed, site_python):
    prefix, printed = installed
    kept = str(_packages(site_python) / "torch/__init__.py")
    assert _find_torch(prefix / "bin/python") == [version("torch"), kept]
    assert "No broken requirements found" in printed


def test_the_wheel_carries_workflow_conf_profiles_and_the_library(site):
    finished = _run(site, site, str(site / "bin/python"), "-c", "import windtunnel; print(windtunnel.__file__)")
    package = Path(finished.stdout.strip()).parent
    assert site in package.parents
    assert (package / "native/libwindtunnel.so").is_file()
    assert (package / "native/libwindtunnel_torch.so").is_file()
    for name in ("Snakefile", "conf/config.yaml", "workflow/rules/sweep.smk", "cluster_profiles/slurm/config.yaml"):
        assert (package / "project" / name).is_file(), name


def test_the_dag_builds_the_users_own_study(site, project):
    snakemake = [str(site / "bin/python"), "-m", "snakemake", "--cores", "2"]
    finished = _run(site, project, *snakemake, "--config", "overrides=+debug=fast paths.mode=group")
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    sweep = json.loads((project / "results/mine/sweep.json").read_text())["content"]
    assert {entry["choices"]["model"]: entry["verdict"] for entry in sweep["entries"]} == {
        "mine": "COMPLETED",
        "tcn": "COMPLETED",
    }
    assert "tcn" in (project / "results/mine/report.html").read_text()
    again = _run(site, project, *snakemake, "--config", "overrides=+debug=fast")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_a_store_for_the_group_holds_nothing_that_the_group_cannot_change_or_others_see(project):
    made = [path for path in (project / "results").rglob("*") if not path.is_symlink()]
    assert {path.stat().st_mode & 0o7777 for path in made if path.is_dir()} == {0o2770}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o660}


def test_a_multirun_takes_the_trials_that_the_dag_has_trained(site, project):
    words = ["-m", "+debug=fast", "model=mine", "training.learning_rate=0.001,0.003"]
    finished = _run(site, project, "windtunnel", "train", *words)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    trials = [path for path in (project / "results/trials").iterdir() if (path / "DONE.json").is_file()]
    assert len(trials) == 3, "two of the study, and of the multirun the one that the study does not have"
