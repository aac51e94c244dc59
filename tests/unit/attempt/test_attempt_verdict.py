import signal
from dataclasses import replace

import pytest

from windtunnel.attempt.ranks import Exit
from windtunnel.attempt.verdict import Ending, RankError, is_process_death, judge_ending
from windtunnel.records.trial import STOPPED_CODE, STORAGE_CODE, Verdict
from windtunnel.slurm.cause import Cause

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


@pytest.mark.parametrize(
    "ending",
    [
        replace(BAD, errors=(RankError(1, "StorageError", "StorageError: a/b: No space left on device", 1.0),)),
        replace(BAD, log_tails={1: "OSError: [Errno 122] Disk quota exceeded: 'x'"}),
        replace(BAD, exits=(Exit(1, STORAGE_CODE, stopped=False),)),
        replace(BAD, slurm=True, launcher="srun", launcher_log="srun: error: n2: task 3: Exited with exit code 74\n"),
    ],
)
def test_a_full_disk_is_not_the_trials_fault_and_not_final(ending: Ending) -> None:
    verdict, evidence = judge_ending(ending)
    assert verdict == Verdict.CANCELLED
    assert evidence.endswith("make room, then the same command goes on")


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


def test_a_node_of_which_srun_tells_before_any_signal_comes_and_ends_with_0_is_lost() -> None:
    log = "srun: cluster configuration lacks support for cpu binding\nsrun: error: Node failure on n4\n"
    ending = replace(
        BAD, exits=(Exit(0, 0, stopped=False),), reason="", launcher_log=log, slurm=True, launcher="srun"
    )
    assert judge_ending(ending) == (Verdict.NODE_FAIL, "srun: error: Node failure on n4")


def test_a_lost_node_is_no_fault_of_the_trial() -> None:
    log = "srun: error: Node failure on n2\n"
    ending = replace(BAD, slurm=True, launcher="srun", launcher_log=log)
    assert judge_ending(ending) == (Verdict.NODE_FAIL, "srun ended with code 1: srun: error: Node failure on n2")


@pytest.mark.parametrize(
    ("slurm", "cause", "verdict"),
    [
        (True, Cause.UNKNOWN, Verdict.PREEMPTED),
        (True, Cause.PREEMPTION, Verdict.PREEMPTED),
        (True, Cause.REQUEUE, Verdict.PREEMPTED),
        (True, Cause.TIME_LIMIT, Verdict.TIMEOUT),
        (True, Cause.CANCEL, Verdict.CANCELLED),
        (True, Cause.NODE, Verdict.NODE_FAIL),
        (False, Cause.UNKNOWN, Verdict.CANCELLED),
    ],
)
def test_a_signal_means_what_slurm_says_of_it(slurm: bool, cause: Cause, verdict: Verdict) -> None:
    stopped = (Exit(0, -int(signal.SIGTERM), stopped=True),)
    assert judge_ending(replace(BAD, exits=stopped, reason="signal", slurm=slurm, cause=cause))[0] == verdict
    # Slurm may signal the ranks before their supervisor: they save, and end of themselves.
    by_themselves = (Exit(0, STOPPED_CODE, stopped=False),)
    assert judge_ending(replace(BAD, exits=by_themselves, slurm=slurm, cause=cause))[0] == verdict


def test_the_supervisors_own_time_limit_is_a_timeout() -> None:
    assert judge_ending(replace(BAD, reason="time"))[0] == Verdict.TIMEOUT


def test_ranks_that_end_well_without_done_are_failed() -> None:
    ending = replace(WELL, done_problem="DONE.json has 2 steps, expected 3")
    assert judge_ending(ending) == (
        Verdict.FAILED,
        "all ranks ended with code 0, but DONE.json has 2 steps, expected 3",
    )


SRUN_LOG = """srun: error: n2: task 3: Exited with exit code 1
srun: launch/slurm: _step_signal: Terminating StepId=3.0
slurmstepd-n0: error: *** STEP 3.0 ON n0 CANCELLED AT 2026-11-30T16:34:50 ***
srun: error: n2: task 2: Terminated
srun: error: n0: tasks 0-1: Terminated
"""


def test_a_rank_that_somebody_ended_while_it_started_is_tried_again() -> None:
    ending = replace(BAD, exits=(Exit(1, -int(signal.SIGTERM), stopped=False),))
    assert judge_ending(ending) == (Verdict.LOST, "rank 1 ended by SIGTERM, not by us and not for memory")


@pytest.mark.parametrize(
    ("log", "evidence"),
    [
        (SRUN_LOG, "rank 3 on n2 ended with code 1: no disk"),
        (
            SRUN_LOG.replace("Exited with exit code 1", "Segmentation fault"),
            "rank 3 on n2 ended: Segmentation fault: no disk",
        ),
        ("", "srun ended by SIGTERM: first"),
    ],
)
def test_srun_names_the_rank_that_failed_and_not_those_that_it_ended_itself(log: str, evidence: str) -> None:
    exits = (Exit(0, 143, stopped=False),)
    ending = replace(
        BAD, exits=exits, slurm=True, launcher="srun", launcher_log=log, log_tails={0: "first", 3: "no disk"}
    )
    assert judge_ending(ending) == (Verdict.FAILED, evidence)


def test_a_failure_is_told_though_we_ended_srun_after_it() -> None:
    stopped = (Exit(0, 143, stopped=True),)
    ending = replace(BAD, exits=stopped, reason="failure", slurm=True, launcher="srun", launcher_log=SRUN_LOG)
    assert judge_ending(ending) == (Verdict.FAILED, "rank 3 on n2 ended with code 1")


def test_a_rank_of_several_that_was_killed_from_outside_is_lost() -> None:
    log = "srun: error: n1: task 3: Killed\nsrun: error: n0: task 0: Terminated\n"
    stopped = (Exit(0, 143, stopped=True),)
    ending = replace(BAD, exits=stopped, reason="failure", slurm=True, launcher="srun", launcher_log=log)
    assert judge_ending(ending) == (Verdict.LOST, "rank 3 on n1 ended by SIGKILL, not by us and not for memory")


def test_a_kill_of_ranks_that_ended_srun_too_is_told_with_their_node() -> None:
    log = "srun: error: n0: task 0: Exited with exit code 1\nsrun: error: n1: tasks 2-3: Killed\n"
    echo = RankError(0, "RuntimeError", "RuntimeError: Connection reset by peer", at=1.0, secondary=True)
    exits = (Exit(0, 137, stopped=False),)
    ending = replace(BAD, exits=exits, errors=(echo,), slurm=True, launcher="srun", launcher_log=log)
    assert judge_ending(ending)[1].startswith("ranks 2-3 on n1 ended by SIGKILL")


def test_a_kill_of_srun_itself_is_told_from_one_of_its_ranks() -> None:
    ending = replace(BAD, exits=(Exit(0, -9, stopped=False),), slurm=True, launcher="srun", host="n4")
    assert judge_ending(ending)[1].startswith("srun itself, on n4, ended by SIGKILL")


def test_the_rank_of_an_error_is_named_with_its_host_where_there_are_several() -> None:
    cause = RankError(1, "ValueError", "ValueError: no such loss", at=2.0)
    ending = replace(BAD, errors=(cause,), rank_hosts=("n0", "n5"))
    assert judge_ending(ending) == (Verdict.FAILED, "rank 1 on n5: ValueError: no such loss")


def test_sruns_word_of_a_step_out_of_memory_is_believed() -> None:
    log = "srun: error: n0: task 0: Out Of Memory\n"
    ending = replace(BAD, exits=(Exit(0, 137, stopped=False),), slurm=True, launcher="srun", launcher_log=log)
    assert judge_ending(ending)[0] == Verdict.OOM


@pytest.mark.parametrize("tail", ["MemoryError", "torch.OutOfMemoryError: CUDA out of memory.", "std::bad_alloc"])
def test_a_programs_last_words_tell_that_memory_was_short(tail: str) -> None:
    assert judge_ending(replace(BAD, log_tails={1: tail})) == (Verdict.OOM, f"rank 1 ended with code 1: {tail}")


def test_what_was_passed_over_stands_behind_the_evidence() -> None:
    ending = replace(WELL, notes=("2 lines of its metrics passed over",))
    assert judge_ending(ending)[1] == "DONE.json is valid; 2 lines of its metrics passed over"


def test_ranks_that_slurm_refused_to_launch_are_lost_and_not_the_trials_fault() -> None:
    word = "srun: error: Application launch failed: Job credential expired"
    log = (  # of Slurm 22.05, whose node had been too slow
        "srun: cluster configuration lacks support for cpu binding\n"
        "srun: error: Task launch for StepId=34.1 failed on node n0: Job credential expired\n"
        f"{word}\nsrun: Job step aborted\n"
    )
    ending = replace(BAD, exits=(Exit(0, 167, stopped=False),), slurm=True, launcher="srun", launcher_log=log)
    assert judge_ending(ending) == (Verdict.LOST, f"srun ended with code 167 before any rank began: {word}")


@pytest.mark.parametrize(
    "word",
    [
        "srun: error: Unable to create step for job 160: Memory required by task is not available",
        "srun: error: Unable to confirm allocation for job 181: Invalid job id specified",
    ],
)
def test_what_srun_could_not_even_start_is_lost_with_its_own_words_and_no_fault_of_the_program(word: str) -> None:
    ending = replace(BAD, exits=(Exit(0, 1, stopped=False),), slurm=True, launcher="srun", launcher_log=f"{word}\n")
    verdict, evidence = judge_ending(ending)
    assert (verdict, evidence) == (Verdict.LOST, f"srun ended with code 1 before any rank began: {word}")
    assert not is_process_death(ending, verdict), "a controller that starts anew needs longer than a restart here"
    begun = replace(ending, log_tails={0: "loading"})
    assert judge_ending(begun)[0] == Verdict.FAILED
