import signal
from dataclasses import replace

import pytest

from windtunnel.attempt.ranks import Exit
from windtunnel.attempt.verdict import Ending, RankError, judge_ending
from windtunnel.records.trial import Verdict

WELL = Ending(
    exits=(Exit(0, 0, stopped=False), Exit(1, 0, stopped=False)),
    reason="",
    errors=(),
    oom_kills=0,
    launcher_log="",
    log_tails={},
    done_problem=None,
    slurm=False,
)
BAD = replace(
    WELL, exits=(Exit(1, 1, stopped=False), Exit(0, -15, stopped=True)), done_problem="DONE.json is missing"
)


def test_a_valid_done_is_completed_even_if_a_rank_failed_afterwards() -> None:
    assert judge_ending(WELL) == (Verdict.COMPLETED, "DONE.json is valid")
    late = replace(WELL, exits=(Exit(1, -11, stopped=False),))
    assert judge_ending(late) == (Verdict.COMPLETED, "DONE.json is valid, though rank 1 ended by SIGSEGV afterwards")


def test_the_cause_is_the_first_error_that_no_other_rank_caused() -> None:
    lost = RankError(0, "RuntimeError", "RuntimeError: Connection closed by peer", at=1.0, secondary=True)
    cause = RankError(1, "ValueError", "ValueError: no such loss", at=2.0)
    assert judge_ending(replace(BAD, errors=(lost, cause))) == (Verdict.FAILED, "rank 1: ValueError: no such loss")


def test_without_an_error_file_the_log_speaks() -> None:
    found = judge_ending(replace(BAD, log_tails={0: "connected", 1: "the disk is gone"}))
    assert found == (Verdict.FAILED, "rank 1 ended with code 1: the disk is gone")


@pytest.mark.parametrize(
    "ending",
    [
        replace(BAD, errors=(RankError(1, "OutOfMemoryError", "OutOfMemoryError: 9 GiB", 1.0),)),
        replace(BAD, exits=(Exit(1, -9, stopped=False),), oom_kills=1),
        replace(BAD, slurm=True, launcher_log="slurmstepd: error: Detected 1 oom_kill event in StepId=7.0"),
    ],
)
def test_out_of_memory_is_told_from_failure(ending: Ending) -> None:
    assert judge_ending(ending)[0] == Verdict.OOM


@pytest.mark.parametrize("slurm", [False, True])
def test_a_neighbours_out_of_memory_is_not_ours(slurm: bool) -> None:
    cause = RankError(1, "ValueError", "ValueError: no such loss", at=2.0)
    ending = replace(BAD, oom_kills=3, errors=(cause,), slurm=slurm)
    assert judge_ending(ending) == (Verdict.FAILED, "rank 1: ValueError: no such loss")
    assert judge_ending(replace(BAD, oom_kills=3, log_tails={1: "no disk"}, slurm=slurm))[0] == Verdict.FAILED
    killed_after = replace(ending, exits=(Exit(1, 1, stopped=False), Exit(0, -9, stopped=False)))
    assert judge_ending(killed_after)[0] == Verdict.FAILED


def test_a_rank_killed_for_memory_is_found_behind_one_that_only_saw_it_go() -> None:
    echo = RankError(0, "RuntimeError", "RuntimeError: Connection reset by peer", at=1.0, secondary=True)
    exits = (Exit(0, 1, stopped=False), Exit(1, -9, stopped=False))
    ending = replace(BAD, exits=exits, errors=(echo,), oom_kills=1)
    assert judge_ending(ending) == (Verdict.OOM, "rank 1 ended by SIGKILL: killed for memory")


def test_a_rank_that_we_killed_ourselves_was_not_killed_for_memory() -> None:
    ending = replace(BAD, exits=(Exit(1, 1, stopped=False), Exit(0, -9, stopped=True)), oom_kills=1)
    assert judge_ending(ending)[0] == Verdict.FAILED


@pytest.mark.parametrize(("code", "slurm"), [(-9, False), (137, True)])
def test_a_rank_killed_from_outside_is_lost_and_not_failed(code: int, slurm: bool) -> None:
    echo = RankError(0, "RuntimeError", "RuntimeError: Connection reset by peer", at=1.0, secondary=True)
    ending = replace(BAD, exits=(Exit(1, code, stopped=False),), errors=(echo,), slurm=slurm)
    verdict, evidence = judge_ending(ending)
    assert verdict == Verdict.LOST
    assert "SIGKILL" in evidence


def test_a_lost_node_is_no_fault_of_the_trial() -> None:
    log = "srun: error: Node failure on n2\n"
    ending = replace(BAD, slurm=True, launcher_log=log)
    assert judge_ending(ending) == (Verdict.NODE_FAIL, "srun ended with code 1: srun: error: Node failure on n2")


@pytest.mark.parametrize(
    ("slurm", "near", "verdict"),
    [(True, False, Verdict.PREEMPTED), (True, True, Verdict.TIMEOUT), (False, False, Verdict.CANCELLED)],
)
def test_a_signal_means_what_its_place_and_time_say(slurm: bool, near: bool, verdict: Verdict) -> None:
    stopped = (Exit(0, -int(signal.SIGTERM), stopped=True),)
    assert judge_ending(replace(BAD, exits=stopped, reason="signal", slurm=slurm, near_limit=near))[0] == verdict


def test_the_supervisors_own_time_limit_is_a_timeout() -> None:
    assert judge_ending(replace(BAD, reason="time"))[0] == Verdict.TIMEOUT


def test_ranks_that_end_well_without_done_are_failed() -> None:
    ending = replace(WELL, done_problem="DONE.json has 2 steps, expected 3")
    assert judge_ending(ending) == (
        Verdict.FAILED,
        "all ranks ended with code 0, but DONE.json has 2 steps, expected 3",
    )
