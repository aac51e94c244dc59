"""A testbed for the session: a real Slurm of 8 nodes on 2 leaves, with accounting and shaped links."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from virtual_cluster import Testbed, make_spec

from windtunnel.errors import ClusterError
from windtunnel.testbed.down import run_down
from windtunnel.testbed.preflight import check_preflight
from windtunnel.testbed.spec import ClusterSpec
from windtunnel.testbed.up import run_up

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slurm)


@pytest.fixture(scope="session")
def testbed(short_dir: Path) -> Iterator[Testbed]:
    spec = make_spec(short_dir / "session", nodes=8, accounting=True)
    _skip_unless_possible(spec)
    run_up(spec)
    yield Testbed(spec)
    run_down(spec.folder)


@pytest.fixture
def small_spec(short_dir: Path) -> Iterator[ClusterSpec]:
    """What a test may build itself: 2 nodes, no accounting; removed afterwards whatever happened."""
    spec = make_spec(short_dir / "small")
    _skip_unless_possible(spec)
    yield spec
    run_down(spec.folder)


@pytest.fixture(scope="session")
def short_dir() -> Iterator[Path]:
    """A folder with a name short enough for sockets, and gone at the end."""
    with tempfile.TemporaryDirectory(prefix="wt-") as name:
        yield Path(name)


@pytest.fixture(scope="session")
def windtunnel() -> tuple[str, ...]:
    """The `windtunnel` command, as this interpreter runs it."""
    return (sys.executable, "-m", "windtunnel.cli.main")


def _skip_unless_possible(spec: ClusterSpec) -> None:
    try:
        check_preflight(spec)
    except ClusterError as error:
        pytest.skip(str(error))
