"""Write the lock that `make` installs, and the conda files, from what is installed in this environment.

usage: python tools/lock.py            run in an environment where the wanted versions are installed
The lock is one file a purpose: `lock.txt` (to run), `check.txt` and `test.txt` (on top of it). What one benchmark
installs beside the environment is read from there, where it is.
"""

import tomllib
from importlib.metadata import distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCAL = {"windtunnel"}
PYTHON = "3.11"
MATRIX = ROOT / "build" / "matrix"
"""Where `make bench NAME=faults PART=matrix` installs packages of its own."""

# What each rule's conda environment asks for by name; the versions come from the lock.
CONDA = {
    "base": ["hydra-core", "pydantic", "pyyaml", "snakemake", "submitit"],
    "ingest": ["arch", "h5py", "hdf5plugin", "isal", "mpi4py", "numpy", "polars", "pydantic", "pyyaml", "zstandard"],
    "features": ["h5py", "hdf5plugin", "numpy", "polars", "pydantic", "pyyaml", "torch"],
    "train": ["h5py", "hdf5plugin", "numpy", "pydantic", "pyyaml", "torch"],
    "report": ["numpy", "plotly", "polars", "pydantic", "pyyaml"],
}
CONDA_NAMES = {"torch": "pytorch"}


def closure(requirements: list[str]) -> dict[str, str]:
    """Name to public version of each requirement and all that it needs, as installed."""
    versions: dict[str, str] = {}
    queue = [Requirement(text) for text in requirements]
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        if name in versions or name in LOCAL:
            continue
        found = distribution(requirement.name)
        versions[name] = found.version.partition("+")[0]
        for text in found.requires or []:
            need = Requirement(text)
            if need.marker is None or any(
                need.marker.evaluate({"extra": extra}) for extra in {"", *requirement.extras}
            ):
                queue.append(need)
    return versions


def list_installed(folder: Path) -> dict[str, str]:
    """Name to version of what was installed into a folder, without what it needs."""
    return {canonicalize_name(each.name): each.version for each in distributions(path=[str(folder)])}


def render_lock(purpose: str, versions: dict[str, str]) -> str:
    """A requirements file of exact pins."""
    lines = [f"# {purpose}; written by tools/lock.py, not by hand."]
    return "\n".join(lines + [f"{name}=={version}" for name, version in sorted(versions.items())]) + "\n"


def render_conda(name: str, versions: dict[str, str]) -> str:
    """A conda environment of the same versions; kept equal to the lock by a test, and not run."""
    pins = [f"  - {CONDA_NAMES.get(item, item)} =={versions[item]}" for item in CONDA[name]]
    head = [
        f"# The {name} rules' environment for `--sdm conda`; written by tools/lock.py.",
        "# Not run (docs/design/0003-workflow.md).",
        "channels:",
        "  - conda-forge",
        "  - nodefaults",
        "dependencies:",
        f"  - python ={PYTHON}",
    ]
    return "\n".join(head + pins) + "\n"


def main() -> None:
    """Write every file of `envs/`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    run = closure(project["project"]["dependencies"] + groups["build"])
    check = {name: version for name, version in closure(groups["check"]).items() if name not in run}
    test = {name: version for name, version in closure(groups["test"]).items() if name not in run}
    envs = ROOT / "envs"
    (envs / "lock.txt").write_text(render_lock("What `make demo` installs", run))
    (envs / "check.txt").write_text(render_lock("What `make check` adds", check))
    (envs / "test.txt").write_text(render_lock("What `make test` adds", test))
    (envs / "mpi.txt").write_text(render_lock("An MPI where the system has none", closure(["mpich"])))
    if MATRIX.exists():
        (envs / "matrix.txt").write_text(
            render_lock("What the part `matrix` of the faults benchmark adds", list_installed(MATRIX))
        )
    for name in CONDA:
        (envs / f"{name}.yaml").write_text(render_conda(name, run))


if __name__ == "__main__":
    main()
