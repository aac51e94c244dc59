"""Rules of the house that a test can hold."""

import tomllib

import pytest
import yaml

CONDA_NAMES = {"pytorch": "torch"}


def _pins(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("==") for line in lines)


@pytest.mark.parametrize("name", ["base", "ingest", "features", "train", "report"])
def test_a_conda_file_pins_what_the_lock_pins(project_dir, name):
    lock = _pins((project_dir / "envs/lock.txt").read_text())
    conda = yaml.safe_load((project_dir / f"envs/{name}.yaml").read_text())
    pins = dict(item.split(" ==") for item in conda["dependencies"] if " ==" in item)
    assert len(pins) == len(conda["dependencies"]) - 1
    assert {CONDA_NAMES.get(key, key): value for key, value in pins.items()}.items() <= lock.items()


def test_every_direct_dependency_is_locked(project_dir):
    from packaging.requirements import Requirement

    lock = _pins((project_dir / "envs/lock.txt").read_text())
    for text in tomllib.loads((project_dir / "pyproject.toml").read_text())["project"]["dependencies"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(lock[requirement.name]), text


def test_a_packages_init_is_empty_so_that_importing_one_module_loads_no_other(project_dir):
    filled = [
        path
        for path in (project_dir / "src/windtunnel").glob("*/__init__.py")
        if path.read_text().strip() and path.parent.name != "windtunnel"
    ]
    assert filled == []


def test_every_lint_rule_that_is_off_says_why(project_dir):
    text = (project_dir / "pyproject.toml").read_text()
    block = text.split("ignore = [", 1)[1].split("]", 1)[0]
    assert all("#" in line for line in block.splitlines() if line.strip())
