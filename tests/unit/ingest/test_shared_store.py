"""One store, two directories, two users: whoever comes second computes nothing."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from windtunnel.comm.single import SingleComm
from windtunnel.ingest.run import run_ingest
from windtunnel.modes import open_store
from windtunnel.settings.data import DataSettings
from windtunnel.shards.fsck import check_dataset

OTHER = 65534
ROWS = "ts,price\n" + "".join(f"{1_650_000_000_000 + i},{i}\n" for i in range(500))


@pytest.fixture
def place():
    """A folder that every user may enter, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="wt-store-"))
    folder.chmod(0o755)
    umask = os.umask(0o022)
    yield folder
    os.umask(umask)
    shutil.rmtree(folder)


@contextmanager
def as_user(uid):
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def ingest_in(directory, store, monkeypatch):
    """Run with a relative raw file of the directory's own."""
    (directory / "bars").mkdir(parents=True, exist_ok=True)
    (directory / "bars/acme.csv").write_text(ROWS)
    monkeypatch.chdir(directory)
    settings = DataSettings(dataset="d", source="delimited", files=("bars/acme.csv",), shard_text=2000, chunk_rows=64)
    return run_ingest(settings, out=store / "shards/d/MANIFEST.json", comm=SingleComm())


def read_stamps(store):
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (store / "shards/d").glob("*.h5")}


def test_a_second_directory_gets_the_shards_without_computing(place, monkeypatch, capsys):
    store = place / "store"
    first = ingest_in(place / "one", store, monkeypatch)
    stamps = read_stamps(store)
    capsys.readouterr()
    assert ingest_in(place / "two", store, monkeypatch) == first
    assert read_stamps(store) == stamps
    assert "acme.h5 is still right, kept (500 rows)" in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_second_user_gets_the_shards_without_computing(place, monkeypatch, capsys):
    store = place / "store"
    store.mkdir()
    os.chown(store, 0, OTHER)
    open_store(store, "group")
    first = ingest_in(place / "one", store, monkeypatch)
    stamps = read_stamps(store)
    (place / "two").mkdir()
    os.chown(place / "two", OTHER, OTHER)
    capsys.readouterr()
    with as_user(OTHER):
        second = ingest_in(place / "two", store, monkeypatch)
    assert second == first
    assert read_stamps(store) == stamps
    assert (store / "shards/d/MANIFEST.json").stat().st_uid == OTHER
    assert "is still right, kept" in capsys.readouterr().out
    assert check_dataset(store / "shards/d/MANIFEST.json").damages == ()
