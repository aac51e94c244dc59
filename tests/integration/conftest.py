"""Two workers share these tests: one has all that start a testbed, in their order; a file's tests stay together."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTBED = {HERE / "workflow" / "test_readme.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            # Testbeds beside each other work, but a test of what one leaves must not see another's come and go.
            testbed = HERE / "slurm" in item.path.parents or item.path in TESTBED
            item.add_marker(pytest.mark.xdist_group("testbed" if testbed else item.path.stem))
