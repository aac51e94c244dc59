import os
import shutil
import stat
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import pytest

from windtunnel.artifacts import write_atomic
from windtunnel.errors import BusyError, SettingsError
from windtunnel.ledger.layout import TrialFolder, write_next_attempt
from windtunnel.ledger.lease import take_lease
from windtunnel.ledger.log import append_event, read_events
from windtunnel.modes import MODE_FILE, find_mode, open_store, umask_of_store

DESK = 60_100
ANN, BEN, STRANGER = 60_001, 60_002, 60_003
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two other users")


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def desk_dir() -> Iterator[Path]:
    """A folder of the desk's group, where every user may go."""
    with tempfile.TemporaryDirectory(prefix="wt-modes-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        store = folder / "store"
        store.mkdir()
        os.chown(store, ANN, DESK)
        yield store


def act_as(uid: int, act: Callable[[], None], *, groups: tuple[int, ...] = (DESK,)) -> None:
    """Run `act` as another user with a group of its own; what it raises fails the test."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setgid(uid)
            os.setuid(uid)
            act()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def run_trial(store: Path) -> None:
    """All kinds of writing below a store: ours, a library's, folders."""
    folder = TrialFolder(store / "trials" / "a")
    with umask_of_store([store]):
        folder.path.mkdir(parents=True, exist_ok=True)
        lease = take_lease(folder.lease, "trial a")
        number = write_next_attempt(folder)
        append_event(folder.path, "started", attempt=number)
        write_atomic(folder.end(number), b"{}")
        write_atomic(folder.config, b"")
        with h5py.File(folder.path / f"shard-{number}.h5", "w", locking=False) as file:
            file["x"] = [1.0]
        with folder.metrics.open("a") as metrics:
            metrics.write("{}\n")
        lease.release()


def bits(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@as_root
def test_two_users_of_a_group_go_on_with_each_others_trials(desk_dir):
    act_as(ANN, lambda: (open_store(desk_dir, "group"), run_trial(desk_dir)))
    act_as(BEN, lambda: run_trial(desk_dir))
    act_as(ANN, lambda: run_trial(desk_dir))
    act_as(BEN, lambda: shutil.rmtree(desk_dir / "trials/a/attempts/1"))
    assert [event.attempt for event in read_events(desk_dir / "trials/a")] == [1, 2, 3]
    made = list(desk_dir.rglob("*"))
    assert {path.stat().st_gid for path in made} == {DESK}
    assert {path.stat().st_uid for path in made} == {ANN, BEN}
    assert {bits(path) for path in made if path.is_dir()} == {0o2770}
    assert {bits(path) for path in made if path.is_file()} == {0o660}


@as_root
def test_others_see_nothing_of_a_groups_store_and_only_read_a_public_one(desk_dir):
    def is_closed() -> None:
        with pytest.raises(PermissionError):
            list(desk_dir.iterdir())

    def is_open_for_reading() -> None:
        assert (desk_dir / "public/trials/a/ledger.jsonl").read_text()
        with pytest.raises(PermissionError):
            append_event(desk_dir / "public/trials/a", "started", attempt=9)

    act_as(ANN, lambda: open_store(desk_dir, "group"))
    act_as(STRANGER, is_closed, groups=())
    (desk_dir / MODE_FILE).unlink()
    desk_dir.chmod(0o2771)
    act_as(ANN, lambda: (open_store(desk_dir / "public", "public"), run_trial(desk_dir / "public")))
    act_as(STRANGER, is_open_for_reading, groups=())


@as_root
def test_another_users_store_that_is_not_shared_is_refused_with_what_its_owner_types(desk_dir):
    def is_refused() -> None:
        with pytest.raises(
            SettingsError, match=rf"let user {ANN}, who owns it, type: chmod -R g\+rwX,o-rwx {desk_dir}"
        ):
            open_store(desk_dir, "group")

    act_as(BEN, is_refused)


@as_root
def test_a_live_lease_of_a_colleague_is_respected(desk_dir):
    act_as(ANN, lambda: open_store(desk_dir, "group"))
    with umask_of_store([desk_dir]):
        lease = take_lease(desk_dir / "lease", "study x")

    def is_refused() -> None:
        with pytest.raises(BusyError, match=f"pid {os.getppid()}"):
            take_lease(desk_dir / "lease", "study x")

    act_as(BEN, is_refused)
    lease.release()


def test_without_a_mode_others_get_nothing_and_the_group_what_the_umask_leaves(tmp_path):
    assert open_store(tmp_path / "store", "own") == "own"
    run_trial(tmp_path / "store")
    assert bits(tmp_path / "store/trials/a") == 0o750
    assert bits(tmp_path / "store/trials/a/ledger.jsonl") == 0o640
    assert not (tmp_path / "store" / MODE_FILE).exists()


def test_a_shared_store_keeps_its_mode_for_those_who_set_none(tmp_path):
    open_store(tmp_path / "store", "group")
    os.umask(0o077)
    assert open_store(tmp_path / "store", "own") == "group"
    assert find_mode(tmp_path / "store/trials/a/config.yaml") == "group"
    assert find_mode(tmp_path) == "own"


def test_another_mode_than_the_stores_is_refused_with_the_command(tmp_path):
    open_store(tmp_path, "group")
    with pytest.raises(SettingsError, match=r"\.mode says group: leave paths.mode out, or let .* type: chmod"):
        open_store(tmp_path, "public")


def test_a_store_with_files_from_before_is_refused_until_they_are_shared(tmp_path):
    (tmp_path / "old").write_text("")
    with pytest.raises(SettingsError, match=r"files from before: type: chmod -R g\+rwX,o-rwx") as refused:
        open_store(tmp_path, "group")
    os.system(str(refused.value).partition("type: ")[2])
    assert open_store(tmp_path, "group") == "group"
    assert bits(tmp_path / "old") == 0o660


def test_the_umask_from_before_comes_back(tmp_path):
    open_store(tmp_path, "public")
    os.umask(0o027)
    with umask_of_store([tmp_path / "trials/a"]):
        assert os.umask(0o002) == 0o002
    assert os.umask(0o022) == 0o027
