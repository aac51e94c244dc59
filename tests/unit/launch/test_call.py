import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from submitit.core.utils import DelayedSubmission, pickle_load

from windtunnel.launch.call import run_call
from windtunnel.slurm.job import read_job_id

LIGHT = """
import sys, windtunnel.launch.call
print(sorted({"asyncio", "numpy", "pydantic", "submitit"} & set(sys.modules)))
"""


@pytest.fixture(autouse=True)
def _signal_kept() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_call_that_submitit_pickled_leaves_its_value_where_submitit_looks(tmp_path: Path) -> None:
    DelayedSubmission(divmod, 7, 2).dump(tmp_path / "12_3_submitted.pkl")
    assert run_call(tmp_path, "12_3") == 0
    assert pickle_load(tmp_path / "12_3_0_result.pkl") == ("success", (3, 1))


def test_a_call_that_raises_leaves_its_traceback(tmp_path: Path) -> None:
    DelayedSubmission(divmod, 7, 0).dump(tmp_path / "12_submitted.pkl")
    assert run_call(tmp_path, "12") == 1
    outcome, trace = pickle_load(tmp_path / "12_0_result.pkl")
    assert outcome == "error"
    assert trace.splitlines()[-1].startswith("ZeroDivisionError")


def test_a_value_that_cannot_be_pickled_is_an_error_and_not_a_silence(tmp_path: Path) -> None:
    DelayedSubmission(threading.Lock).dump(tmp_path / "12_submitted.pkl")
    run_call(tmp_path, "12")
    outcome, trace = pickle_load(tmp_path / "12_0_result.pkl")
    assert outcome == "error"
    assert "pickle" in trace


def test_the_function_of_a_script_comes_back_by_value(tmp_path: Path) -> None:
    DelayedSubmission(lambda number: number + 1, 1).dump(tmp_path / "12_submitted.pkl")
    run_call(tmp_path, "12")
    assert pickle_load(tmp_path / "12_0_result.pkl") == ("success", 2)


def test_the_signal_before_the_limit_does_not_end_a_call(tmp_path: Path) -> None:
    DelayedSubmission(os.kill, os.getpid(), signal.SIGTERM).dump(tmp_path / "12_submitted.pkl")
    assert run_call(tmp_path, "12") == 0


@pytest.mark.parametrize(
    ("env", "job_id"),
    [
        ({"SLURM_JOB_ID": "12"}, "12"),
        ({"SLURM_JOB_ID": "15", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3"}, "12_3"),
    ],
)
def test_a_job_knows_its_own_id(env: dict[str, str], job_id: str) -> None:
    assert read_job_id(env) == job_id


def test_a_job_starts_without_what_its_call_may_not_need() -> None:
    ended = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_a_pickle_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "12_submitted.pkl").write_bytes(pickle.dumps("no call"))
    with pytest.raises(AssertionError, match="holds a str"):
        run_call(tmp_path, "12")
