#!/usr/bin/env python3
"""Install windtunnel from this folder into a prefix of its own: no network, no root, and the site's torch is kept.

usage: PYTHON install.py PREFIX
PYTHON is the site's own that has torch (after its module is loaded): it is never written to. PREFIX is a
new folder that the compute nodes see; it holds a virtual environment, whose `bin/windtunnel` is the command.
"""

# It must still start, and say what is wrong, with the Python 3.6 of an old system.
import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

FIND_TORCH = """
import importlib.metadata as metadata, importlib.util as util, os
found = util.find_spec("torch")
print(metadata.version("torch") if found else "", os.path.realpath(found.origin) if found else "", sep="\\n")
"""
LOAD = "from windtunnel.native.library import load_library; load_library(); import windtunnel.cli.main"


def main():
    """Check, install into a new folder, check what was made; a failure leaves nothing behind."""
    parser = argparse.ArgumentParser(description="Install windtunnel without network and root.")
    parser.add_argument("prefix", type=Path, metavar="PREFIX", help="a new folder that the compute nodes see")
    prefix = parser.parse_args().prefix.absolute()
    _check_python()
    if prefix.exists():
        sys.exit(f"{prefix} exists: name a new folder, since jobs may still run from the old one")
    torch = _find_torch(sys.executable, dict(os.environ))
    if not torch[0]:
        sys.exit(
            f"{sys.executable} has no torch, and the bundle brings none, so that the site's is kept: load the site's "
            "module first (module load ...), or give the Python that has it"
        )
    try:
        _install(prefix, torch)
    except BaseException:
        shutil.rmtree(str(prefix), ignore_errors=True)
        raise
    print("installed: {}/bin/windtunnel, with torch {} of {}".format(prefix, *torch))


def _check_python():
    wanted = (HERE / "PYTHON").read_text().strip()
    found = "{}.{}".format(*sys.version_info[:2])
    if found != wanted:
        sys.exit(
            f"this Python is {found}, and the wheels are for {wanted}: load the site's module (module load "
            f"python/{wanted}), bring one with uv (uv python install {wanted}), or make the bundle again with "
            f"Python {found}"
        )


def _install(prefix, torch):
    import venv

    venv.create(str(prefix), with_pip=True)
    python = str(prefix / "bin" / "python")
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    packages = Path(subprocess.check_output(asked, universal_newlines=True).strip())
    # Read after the prefix's own folder: what the bundle brings goes before what the site has.
    (packages / "site-torch.pth").write_text("".join(folder + "\n" for folder in _site_folders()))
    # `torch` itself is named too, so that what this very version needs is brought where the site lacks it.
    names = ["windtunnel", f"torch=={torch[0]}"]
    wheels = ["--no-index", "--find-links", str(HERE / "wheels")]
    _run(python, "-m", "pip", "install", "--quiet", "--no-compile", "--no-warn-conflicts", *wheels + names)
    if os.environ.get("COMPILE") != "0":  # now, since those who use the prefix may not write to it
        subprocess.call([python, "-m", "compileall", "-q", "-j", "0", str(packages)], stdout=subprocess.DEVNULL)
    _run(python, "-m", "pip", "check")
    _run(python, "-c", LOAD)
    kept = _find_torch(python, _environment())
    if kept != torch:
        sys.exit("torch {} of {} became {} of {}: nothing is installed".format(*torch + kept))


def _site_folders():
    """The folders of this Python's packages, the modules' ones on PYTHONPATH included, the user's own left out."""
    import site

    own = os.path.realpath(site.getusersitepackages())
    folders = [str(Path(entry).absolute()) for entry in sys.path if entry and os.path.realpath(entry) != own]
    return [folder for folder in dict.fromkeys(folders) if any(Path(folder).glob("*.*-info"))]


def _find_torch(python, env):
    found = subprocess.check_output([python, "-s", "-c", FIND_TORCH], universal_newlines=True, env=env)
    version, path = found.splitlines()
    return version, path


def _run(*command):
    if subprocess.call(list(command), env=_environment()):
        sys.exit("failed: {}".format(" ".join(command)))


def _environment():
    # A site's pip settings name indexes and constraints; here nothing but the folder counts. A module's PYTHONPATH
    # would go before the prefix's own packages.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    return dict(kept, PIP_CONFIG_FILE=os.devnull, PIP_DISABLE_PIP_VERSION_CHECK="1", PYTHONNOUSERSITE="1")


if __name__ == "__main__":
    main()
