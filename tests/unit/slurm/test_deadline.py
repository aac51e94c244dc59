import os
import subprocess
import sys
import time

import pytest

from windtunnel.slurm.deadline import (
    find_job_end,
    find_signal_lead_s,
    is_near_end,
    may_be_warning,
    read_process_began_at,
)

BEGAN = 1_000_000.0
LIMITS_MIN = (2, 10, 60, 1440)


@pytest.mark.parametrize(("time_min", "lead_s"), [(1, 10), (2, 20), (10, 60), (60, 60), (1440, 60)])
def test_a_job_is_told_a_minute_before_its_end_and_a_short_one_in_proportion(time_min: int, lead_s: int) -> None:
    assert find_signal_lead_s(time_min) == lead_s


@pytest.mark.parametrize("early_s", [0, 30, 60])
@pytest.mark.parametrize("time_min", LIMITS_MIN[1:])
def test_a_signal_as_early_as_slurm_may_send_it_is_the_one_before_the_end(time_min: int, early_s: int) -> None:
    ends_at = BEGAN + time_min * 60
    at = ends_at - find_signal_lead_s(time_min) - early_s
    assert is_near_end(at, ends_at=ends_at, time_min=time_min)
    assert may_be_warning(at, ends_at=ends_at, time_min=time_min)
    assert is_near_end(ends_at + 20, ends_at=ends_at, time_min=time_min)


@pytest.mark.parametrize("time_min", LIMITS_MIN)
def test_a_signal_in_the_first_half_of_the_limit_is_never_the_one_before_the_end(time_min: int) -> None:
    ends_at = BEGAN + time_min * 60
    assert not is_near_end(BEGAN + 1, ends_at=ends_at, time_min=time_min)
    assert not is_near_end(BEGAN + time_min * 30 - 1, ends_at=ends_at, time_min=time_min)


@pytest.mark.parametrize("time_min", [1, 2])
def test_any_signal_of_a_very_short_limit_may_be_the_one_before_the_end(time_min: int) -> None:
    ends_at = BEGAN + time_min * 60
    assert may_be_warning(ends_at - find_signal_lead_s(time_min) - 60, ends_at=ends_at, time_min=time_min)


def test_a_signal_in_the_second_half_of_a_very_short_limit_is_the_one_before_the_end() -> None:
    assert is_near_end(BEGAN + 61, ends_at=BEGAN + 120, time_min=2)


@pytest.mark.parametrize("time_min", LIMITS_MIN[1:])
def test_a_signal_before_the_earliest_that_slurm_may_send_is_another(time_min: int) -> None:
    ends_at = BEGAN + time_min * 60
    assert not is_near_end(ends_at - 60 - 60 - 31, ends_at=ends_at, time_min=time_min)
    assert not may_be_warning(ends_at - 60 - 60 - 31, ends_at=ends_at, time_min=time_min)


@pytest.mark.parametrize(
    ("environ", "ends_at"),
    [
        ({}, BEGAN + 600),
        ({"SLURM_JOB_START_TIME": "999990"}, BEGAN + 590),
        ({"SLURM_JOB_START_TIME": "1000007"}, BEGAN + 600),
        ({"SLURM_JOB_START_TIME": "999990", "SLURM_JOB_END_TIME": "1000300"}, BEGAN + 300),
        ({"SLURM_JOB_START_TIME": "0", "SLURM_JOB_END_TIME": "Unknown"}, BEGAN + 600),
    ],
)
def test_slurms_own_word_on_the_end_goes_before_what_is_reckoned(environ: dict[str, str], ends_at: float) -> None:
    assert find_job_end(environ, began_at=BEGAN, time_min=10) == ends_at


def test_a_process_is_as_old_as_the_script_that_became_it() -> None:
    program = f"{sys.executable} -c 'print(1, flush=True); input()'"
    child = subprocess.Popen(["sh", "-c", f"sleep 1; exec {program}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    assert 1.0 <= time.time() - read_process_began_at(child.pid) < 50
    child.communicate(b"\n")


def test_a_process_that_is_gone_has_begun_no_earlier_than_now() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    before = time.time()
    assert before <= read_process_began_at(child.pid) <= time.time()
    assert read_process_began_at(os.getpid()) < before
