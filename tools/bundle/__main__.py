"""Make the folder that installs windtunnel where there is no network: wheels, an installer, an apptainer definition.

usage: python -m tools.bundle [--out FOLDER] [--repack]     from the checkout's root, after `make build`
The wheels are those of `envs/lock.txt` that running needs, and ours; torch is not among them, because a site
has its own. They fit the version of the Python that runs this, so take the cluster's.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from tools.bundle.repack import repack_distribution
from tools.lock import closure

ROOT = Path(__file__).parent.parent.parent
BESIDE = Path(__file__).parent
SITES_OWN = {"torch"}


def choose_pins(project: dict, lock: str) -> list[str]:
    """The lock's lines that running needs, without what the site brings."""
    wanted = set(closure(project["project"]["dependencies"])) - SITES_OWN
    lines = [line for line in lock.splitlines() if line and not line.startswith("#")]
    return [line for line in lines if Requirement(line).name in wanted]


def collect_wheels(pins: list[str], folder: Path, *, repack: bool) -> None:
    """A wheel of each pin: from the index, built where there is only a source archive, or from what is installed."""
    if repack:
        for pin in pins:
            repack_distribution(Requirement(pin).name, folder)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(pins) + "\n")
        file.flush()
        _pip("wheel", "--no-deps", "--wheel-dir", str(folder), "--requirement", file.name)


def write_sums(folder: Path) -> None:
    """`SHA256SUMS` of the whole bundle, as `sha256sum --check` reads it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{_digest(path)}  {path.relative_to(folder)}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


def main() -> None:
    """Make the bundle, in a new folder that takes the place of an older one only when it is whole."""
    parser = argparse.ArgumentParser(prog="python -m tools.bundle", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist/bundle", help="(%(default)s)")
    parser.add_argument("--repack", action="store_true", help="take the wheels from this environment: no network")
    args = parser.parse_args()
    out = args.out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        _make(making, repack=args.repack)
        making.chmod(0o755)
        shutil.rmtree(out, ignore_errors=True)
        making.rename(out)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    size_mb = sum(path.stat().st_size for path in out.rglob("*")) / 1e6
    print(f"bundle: {out}: {len(list(out.glob('wheels/*.whl')))} wheels, {size_mb:.0f} MB, for Python {_version()}")


def _make(folder: Path, *, repack: bool) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheels = folder / "wheels"
    wheels.mkdir()
    _pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(wheels), str(ROOT))
    collect_wheels(choose_pins(project, (ROOT / "envs/lock.txt").read_text()), wheels, repack=repack)
    (folder / "PYTHON").write_text(f"{_version()}\n")
    for source in (BESIDE / "install.py", ROOT / "envs/apptainer.def", ROOT / "docs/cluster.md", ROOT / "LICENSE"):
        shutil.copy(source, folder)
    write_sums(folder)


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    subprocess.run(command, check=True)


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
