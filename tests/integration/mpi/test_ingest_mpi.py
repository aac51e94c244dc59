"""Ingest under the real mpiexec of the MPI library that mpi4py loads here."""

import json
import os
import signal
import subprocess
import sys

import pytest

from windtunnel.errors import ClusterError

pytestmark = pytest.mark.mpi

PROGRAM = """
import sys
from pathlib import Path
from windtunnel.comm.detect import detect_comm
from windtunnel.errors import WindtunnelError
from windtunnel.ingest.run import run_ingest
from windtunnel.settings.base import read_settings
from windtunnel.settings.data import DataSettings

try:
    run_ingest(read_settings(DataSettings, Path(sys.argv[1])), out=Path(sys.argv[2]), comm=detect_comm())
except WindtunnelError as error:
    print(f"error: {error}", file=sys.stderr, flush=True)
    sys.exit(error.exit_code)
"""
DIES = "from windtunnel.comm.detect import detect_comm as d; c = d(); c.rank == 1 and 1 / 0; c.barrier()"
TALKS = """
from windtunnel.comm.detect import detect_comm
comm = detect_comm()
told = (comm.gather(comm.rank * 2), comm.allgather(str(comm.rank)))
comm.barrier()
print(f"rank {comm.rank} of {comm.size} heard {told}\\n", end="", flush=True)
"""


@pytest.fixture(scope="module")
def mpiexec():
    return find_launcher({})


@pytest.fixture(scope="module", params=[{}, {"MPI4PY_LIBMPI": "libmpi.so.40"}], ids=["default", "open_mpi"])
def each_mpiexec(request):
    """The default's and Open MPI's, whose ranks must find their own library with nothing said about it."""
    return find_launcher(request.param)


def find_launcher(env):
    # Asked of a process of its own: it maps MPI's library, which has no place in the tests' own process.
    code = "import json; from windtunnel.comm.mpi import find_mpiexec; print(json.dumps(find_mpiexec()))"
    argv = [sys.executable, "-c", code]
    found = subprocess.run(argv, capture_output=True, text=True, timeout=60, env={**clean_env(), **env})
    if found.returncode:
        pytest.skip(f"no mpiexec for mpi4py's library: {found.stderr.strip().splitlines()[-1]}")
    return json.loads(found.stdout)


def clean_env():
    """Without what a launcher around the tests may have set."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI", "SLURM_"))}


def run_ranks(mpiexec, ranks, code, *arguments):
    argv = [*mpiexec, "-n", str(ranks), sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, env=clean_env())


@pytest.fixture
def settings(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    for number in range(5):
        rows = "".join(f"2014-01-{day:02d},{day * number}\n" for day in range(1, 29))
        (raw / f"s{number}.csv").write_text(f"Date,v{number}\n{rows}2014-02-30,1\n" + "2014-03-01,.\n" * (number % 2))
    path = tmp_path / "settings.yaml"
    files = [str(raw / f"s{number}.csv") for number in range(5)]
    path.write_text(f"dataset: d\nsource: daily_csv\nchunk_rows: 8\nfiles: {files}\n")
    return path


def read_outputs(folder):
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.suffix != ".json"}
    content = json.loads((folder / "MANIFEST.json").read_text())["content"]
    del content["sha256"]  # of the file, which says when it was written
    return files, content


def test_ranks_hear_each_other(each_mpiexec):
    finished = run_ranks(each_mpiexec, 3, TALKS)
    assert sorted(finished.stdout.splitlines()) == [
        "rank 0 of 3 heard ([0, 2, 4], ['0', '1', '2'])",
        "rank 1 of 3 heard (None, ['0', '1', '2'])",
        "rank 2 of 3 heard (None, ['0', '1', '2'])",
    ]


def test_shards_and_manifest_do_not_depend_on_the_number_of_ranks(mpiexec, tmp_path, settings):
    alone = [sys.executable, "-c", PROGRAM, str(settings), str(tmp_path / "n0/MANIFEST.json")]
    assert subprocess.run(alone, timeout=60, env=clean_env()).returncode == 0
    for ranks in (2, 3):
        finished = run_ranks(mpiexec, ranks, PROGRAM, settings, tmp_path / f"n{ranks}/MANIFEST.json")
        assert finished.returncode == 0, finished.stderr
        assert finished.stdout.count("rows kept") == 6, "each file once and one sum"
        assert read_outputs(tmp_path / f"n{ranks}") == read_outputs(tmp_path / "n0")
    assert len(read_outputs(tmp_path / "n0")[0]) == 6


def test_one_long_file_is_split_over_ranks_into_the_same_shards(mpiexec, tmp_path):
    rows = "".join(f"{1_650_000_000_000 + i},{i}.5,{i % 9}\n" for i in range(3000))
    (tmp_path / "long.csv").write_text(f"ts,price,size\n{rows}oops,1,2\n")
    path = tmp_path / "settings.yaml"
    path.write_text(f"dataset: d\nsource: delimited\nshard_text: 9000\nfiles: ['{tmp_path / 'long.csv'}']\n")
    for ranks in (1, 3):
        finished = run_ranks(mpiexec, ranks, PROGRAM, path, tmp_path / f"n{ranks}/MANIFEST.json")
        assert finished.returncode == 0, finished.stderr
        assert "% done, about" in finished.stdout
    assert read_outputs(tmp_path / "n3") == read_outputs(tmp_path / "n1")
    assert len(read_outputs(tmp_path / "n1")[0]) == 9


def test_after_a_kill_the_same_command_goes_on_from_the_shards_that_are_whole(mpiexec, tmp_path):
    rows = "".join(f"{1_650_000_000_000 + i},{i}.5,{i % 9}\n" for i in range(60_000))
    (tmp_path / "long.csv").write_text(f"ts,price,size\n{rows}")
    path = tmp_path / "settings.yaml"
    path.write_text(f"dataset: d\nsource: delimited\nshard_text: 30000\nfiles: ['{tmp_path / 'long.csv'}']\n")
    out = tmp_path / "out"
    argv = [*mpiexec, "-n", "2", sys.executable, "-c", PROGRAM, str(path), str(out / "MANIFEST.json")]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, env=clean_env(), start_new_session=True
    ) as running:
        while "rows kept" not in running.stdout.readline():
            assert running.poll() is None, "it ended before it wrote a shard"
        os.killpg(running.pid, signal.SIGKILL)
    assert not (out / "MANIFEST.json").exists()
    left = {receipt.stem: (out / f"{receipt.stem}.h5").stat().st_mtime_ns for receipt in out.glob(".receipts/*.json")}
    assert left
    assert run_ranks(mpiexec, 2, PROGRAM, path, out / "MANIFEST.json").returncode == 0
    assert {stem: (out / f"{stem}.h5").stat().st_mtime_ns for stem in left} == left
    assert run_ranks(mpiexec, 1, PROGRAM, path, tmp_path / "whole/MANIFEST.json").returncode == 0
    files, content = read_outputs(out)
    assert ({name: data for name, data in files.items() if not name.endswith(".tmp")}, content) == read_outputs(
        tmp_path / "whole"
    )


def test_shards_of_one_process_are_kept_by_three_ranks(mpiexec, tmp_path, settings):
    out = tmp_path / "out/MANIFEST.json"
    assert run_ranks(mpiexec, 1, PROGRAM, settings, out).returncode == 0
    finished = run_ranks(mpiexec, 3, PROGRAM, settings, out)
    assert finished.stdout.count("is still right, kept") == 5


def test_a_bad_file_on_one_rank_ends_all_with_one_message_and_its_code(each_mpiexec, tmp_path, settings):
    (tmp_path / "raw/s4.csv").write_text("Date,v4\n192607,1\n")  # the smallest: dealt to the last rank
    finished = run_ranks(each_mpiexec, 3, PROGRAM, settings, tmp_path / "out/MANIFEST.json")
    assert finished.returncode == 2
    assert finished.stderr.count("error: ") == 1
    assert "s4.csv has no date" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "out/MANIFEST.json").exists()


def test_a_crash_of_one_rank_ends_the_others_that_wait_for_it(each_mpiexec):
    finished = run_ranks(each_mpiexec, 2, DIES)
    assert finished.returncode != 0
    assert "ZeroDivisionError" in finished.stderr
    assert "rank 1 of 2" in finished.stderr


def test_ranks_that_mpi_does_not_join_are_refused():
    code = "from windtunnel.comm.detect import detect_comm; detect_comm({'PMI_SIZE': '4'})"
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=clean_env()
    )
    assert ClusterError.__name__ in finished.stderr
    assert "started 4 ranks but MPI joins 1 of them" in finished.stderr
