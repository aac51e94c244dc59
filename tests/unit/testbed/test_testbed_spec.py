from dataclasses import replace
from pathlib import Path

import pytest

from windtunnel.errors import ClusterError
from windtunnel.testbed.spec import ClusterSpec, all_hosts, check_spec, cluster_name

SPEC = ClusterSpec(folder=Path("/tmp/tb"), user="root", machine="vm")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": 0}, "--nodes is 0, expected 1 to 200"),
        ({"nodes": 2, "leaves": 3}, "--leaves is 3, expected 1 to 2"),
        ({"gpus": 99}, "--gpus is 99"),
        ({"folder": Path("/tmp") / ("x" * 80)}, "has 85 characters"),
        ({"folder": Path("/tmp/a b")}, "holds a character"),
    ],
)
def test_impossible_testbed_is_refused_by_its_option(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        check_spec(replace(SPEC, **changes))


def test_largest_testbed_has_distinct_hosts() -> None:
    hosts = all_hosts(replace(SPEC, nodes=200, leaves=7))
    assert len({host.address for host in hosts}) == len({host.name for host in hosts}) == 201


def test_testbeds_in_different_folders_have_different_cluster_names() -> None:
    assert cluster_name(Path("/tmp/a")) != cluster_name(Path("/tmp/b"))
