"""Run the real workflow in a folder of its own, with a stand-in for the `windtunnel` command where a test asks."""

import os
import shutil
import subprocess
import sys

import pytest

# A shell function goes before the command on PATH; it makes the files that the rule declares and nothing else.
STAND_IN = """
windtunnel() {
  local stage=$1
  if [ "$stage" = "${FAILING_STAGE:-}" ]; then echo "no $stage today" >&2; return 1; fi
  while [ $# -gt 0 ]; do
    case "$stage $1" in
      *" --out" | "topology --collectives" | "report --metrics")
        mkdir -p "$(dirname "$2")" && echo "$stage" > "$2" ;;
    esac
    shift
  done
}
"""


@pytest.fixture
def workdir(tmp_path, project_dir):
    shutil.copytree(project_dir / "conf", tmp_path / "conf", ignore=shutil.ignore_patterns("local"))
    return tmp_path


@pytest.fixture
def snakemake(workdir, project_dir):
    """Run snakemake in `workdir` and return it finished."""

    def run(*words, snakefile=project_dir / "Snakefile", stand_in=False, failing=""):
        argv = [sys.executable, "-m", "snakemake", "--snakefile", str(snakefile), "--cores", "2", *words]
        env = {**os.environ, "FAILING_STAGE": failing}
        if stand_in:
            (workdir / "stand_in.sh").write_text(STAND_IN)
            env["BASH_ENV"] = str(workdir / "stand_in.sh")
        return subprocess.run(argv, cwd=workdir, env=env, capture_output=True, text=True, timeout=120)

    return run
