import random

import pytest
from benchmarks.faults_disk import CASES, open_disk, run_case


@pytest.fixture(scope="module")
def disk():
    with open_disk() as disk:
        yield disk


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("kind", sorted(CASES))
def test_a_disk_that_fills_up_costs_no_checkpoint_leaves_nothing_and_holds_up_no_later_save(disk, kind, asynchronous):
    if not disk.is_small and kind != "a file's limit":
        pytest.skip("this process may mount no file system")
    assert run_case(disk, CASES[kind], random.Random(kind), asynchronous) == ""
