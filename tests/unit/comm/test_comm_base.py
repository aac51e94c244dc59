import threading

import pytest

from windtunnel.comm.base import run_on_all, run_on_root
from windtunnel.comm.single import SingleComm
from windtunnel.errors import InputFileError


class ThreadComm:
    """Ranks as threads: the real protocol over a shared list."""

    def __init__(self, rank, values, barrier):
        self.rank, self.size = rank, len(values)
        self._values, self._barrier = values, barrier

    def barrier(self):
        self._barrier.wait(10)

    def allgather(self, value):
        self._values[self.rank] = value
        self.barrier()
        values = list(self._values)
        self.barrier()
        return values

    def gather(self, value):
        values = self.allgather(value)
        return values if self.rank == 0 else None


def on_ranks(size, work):
    values, barrier, results = [None] * size, threading.Barrier(size), [None] * size

    def run(rank):
        try:
            results[rank] = work(ThreadComm(rank, values, barrier))
        except (InputFileError, SystemExit) as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return results


def fail(text):
    raise InputFileError(text)


def test_every_rank_gets_all_results_in_rank_order():
    results = on_ranks(3, lambda comm: run_on_all(comm, lambda: comm.rank * 10))
    assert results == [[0, 10, 20]] * 3


def test_an_error_on_a_later_rank_is_raised_once_and_ends_the_others_with_its_code():
    results = on_ranks(3, lambda comm: run_on_all(comm, lambda: fail(f"rank {comm.rank}") if comm.rank else None))
    assert isinstance(results[0], InputFileError)
    assert str(results[0]) == "rank 1"
    assert [type(result) for result in results[1:]] == [SystemExit, SystemExit]
    assert [result.code for result in results[1:]] == [2, 2]


def test_work_on_the_root_runs_once_and_reaches_every_rank():
    ran = []

    def work(comm):
        return run_on_root(comm, lambda: ran.append(comm.rank) or "plan")

    assert on_ranks(3, work) == ["plan"] * 3
    assert ran == [0]


def test_an_error_alone_is_raised_as_it_is():
    with pytest.raises(InputFileError, match="gone"):
        run_on_root(SingleComm(), lambda: fail("gone"))


def test_a_world_of_one_talks_to_itself():
    comm = SingleComm()
    comm.barrier()
    assert (comm.rank, comm.size) == (0, 1)
    assert (comm.gather(7), comm.allgather(7)) == ([7], [7])
