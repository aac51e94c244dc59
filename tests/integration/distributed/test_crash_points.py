import random
import re
import shutil
import signal
from collections import Counter

import pytest
from benchmarks.faults_crash import (
    BEFORE,
    NEW,
    Crash,
    Order,
    link_checkpoints,
    list_crashes,
    look,
    open_server,
    prepare,
    recover,
)

from windtunnel.checkpoints.manifest import checkpoint_name

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on PATH")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("crashes")
    prepare(root / "prepared")
    return root


@pytest.fixture(scope="module")
def server(root):
    with open_server(root) as server:
        yield server


@pytest.fixture(scope="module")
def crashes(server, root):
    return list_crashes(server, root, asynchronous=True)


def test_a_save_opens_writes_syncs_renames_makes_and_removes(crashes):
    before = Counter(crash.operation for crash in crashes if crash.moment == 0)
    assert set(before) == {"open", "write", "fsync", "rename", "mkdir", "unlink", "rmdir"}
    # Data, index and manifest, each with the folder that it is in, and at last the folder's own name.
    assert before["fsync"] >= 6
    assert before["write"] >= 4


def test_a_save_killed_at_some_of_its_operations_leaves_the_new_step_or_the_one_before(server, root, crashes):
    around = [crash for crash in crashes if crash.operation in ("rename", "rmdir") and crash.moment == 2]
    torn = [crash for crash in crashes if crash.moment == 1]
    chosen = [*random.sample(around, 4), *random.sample(torn, 2), *random.sample(crashes, 6)]
    assert {crash: recover(server, root, crash) for crash in chosen} == dict.fromkeys(chosen, "")


def test_a_save_killed_just_after_it_got_its_name_is_the_one_that_is_found(server, root, tmp_path):
    link_checkpoints(root / "prepared", tmp_path / "counted")
    server.save(Order(str(tmp_path / "counted"), str(tmp_path / "log"), False))
    lines = (tmp_path / "log").read_text().splitlines()
    # The first of these is the leftover's, on its way out.
    named = max(number for number, line in enumerate(lines, 1) if re.fullmatch(rf"rename /\.tmp-{NEW}-0-\w+", line))
    for moment, step in ((0, BEFORE), (2, NEW)):
        folder = tmp_path / f"killed-{moment}"
        link_checkpoints(root / "prepared", folder)
        order = Order(str(folder), str(tmp_path / "log-2"), False, named, moment)
        assert server.save(order) == -signal.SIGKILL
        assert look(folder) == ""
        assert (folder / checkpoint_name(NEW)).exists() == (step == NEW)


def test_a_crash_that_does_not_come_is_told(server, root):
    assert "it was not killed, but ended with 0" in recover(server, root, Crash(False, 9999, "write", 0))
