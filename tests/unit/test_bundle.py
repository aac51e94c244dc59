"""The bundle for a machine without network: what goes in, and what its installer refuses."""

import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools.bundle.__main__ import choose_pins
from tools.bundle.repack import repack_distribution


@pytest.fixture
def bundle(project_dir, tmp_path) -> Path:
    """As far as the installer's first look goes."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    shutil.copy(project_dir / "tools/bundle/install.py", folder)
    (folder / "PYTHON").write_text(f"{sys.version_info.major}.{sys.version_info.minor}\n")
    return folder


def install(bundle: Path, prefix: Path, *, python: str = sys.executable) -> str:
    finished = subprocess.run([python, str(bundle / "install.py"), str(prefix)], capture_output=True, text=True)
    assert finished.returncode == 1, finished.stdout + finished.stderr
    return finished.stderr


def test_the_bundle_pins_all_that_running_needs_but_torch(project_dir):
    project = tomllib.loads((project_dir / "pyproject.toml").read_text())
    names = {pin.partition("==")[0] for pin in choose_pins(project, (project_dir / "envs/lock.txt").read_text())}
    direct = {re.split(r"[<>=]", text)[0] for text in project["project"]["dependencies"]}
    assert direct - names == {"torch"}
    assert "sympy" in names, "what torch needs is brought where the site lacks it"
    assert not names & {"cmake", "ninja", "pytest", "ruff"}


def test_an_installed_package_becomes_a_wheel_again(tmp_path):
    wheel = repack_distribution("humanfriendly", tmp_path)
    assert wheel.name.endswith("-py2.py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "humanfriendly/__init__.py" in names
    assert not [name for name in names if name.endswith(".pyc") or ".." in name]


def test_a_python_of_another_version_is_refused_with_the_ways_out(bundle, tmp_path):
    (bundle / "PYTHON").write_text("3.99\n")
    words = install(bundle, tmp_path / "prefix")
    assert "the wheels are for 3.99" in words
    assert "module load python/3.99" in words
    assert "uv python install 3.99" in words


def test_a_python_without_torch_is_refused_and_nothing_is_made(bundle, tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    words = install(bundle, tmp_path / "prefix", python=str(tmp_path / "bare/bin/python"))
    assert "has no torch" in words
    assert not (tmp_path / "prefix").exists()


def test_a_prefix_that_exists_is_refused(bundle, tmp_path):
    assert f"{tmp_path} exists: name a new folder" in install(bundle, tmp_path)


def test_the_image_is_made_of_the_bundles_files_by_its_installer(project_dir, bundle):
    text = (project_dir / "envs/apptainer.def").read_text()
    sections = dict(re.findall(r"^%(\w+)\n(.*?)(?=^%|\Z)", text, re.DOTALL | re.MULTILINE))
    copied = [line.split() for line in sections["files"].splitlines() if line.strip()]
    assert {source for source, _ in copied} == {"wheels", "install.py", "PYTHON"}
    assert "python3 /opt/bundle/install.py /opt/windtunnel" in sections["post"]
    assert {target for _, target in copied} == {f"/opt/bundle/{source}" for source, _ in copied}
    assert "Bootstrap: localimage" in text, "no registry is asked"
