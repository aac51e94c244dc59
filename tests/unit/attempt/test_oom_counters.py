from pathlib import Path

from windtunnel.attempt.oom import find_counter, read_oom_kills


def test_the_kernels_count_of_kills_is_a_number() -> None:
    assert read_oom_kills() >= 0


def test_a_slurm_job_is_counted_as_a_whole() -> None:
    found = find_counter("0::/system.slice/slurmstepd.scope/job_42/step_batch/user/task_0\n")
    assert found == Path("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_42/memory.events")


def test_a_session_counts_its_own() -> None:
    assert find_counter("0::/user.slice/a.scope\n") == Path("/sys/fs/cgroup/user.slice/a.scope/memory.events")


def test_where_groups_count_each_for_itself_the_host_is_asked() -> None:
    assert find_counter("4:memory:/slurm/uid_0/job_42/step_batch\n0::/\n") is None
    assert find_counter("") is None
