"""Slurm's host lists."""

import pytest

from windtunnel.errors import ClusterError
from windtunnel.hostlist import collapse_hostlist, expand_hostlist


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("n0", ["n0"]),
        ("n[0-2,5]", ["n0", "n1", "n2", "n5"]),
        ("gpu[08-10],cpu1", ["gpu08", "gpu09", "gpu10", "cpu1"]),
        ("r[1-2]n[0-1]", ["r1n0", "r1n1", "r2n0", "r2n1"]),
        ("a[1-2]-ib", ["a1-ib", "a2-ib"]),
    ],
)
def test_lists_expand_in_their_order(text, names):
    assert expand_hostlist(text) == names


@pytest.mark.parametrize("text", ["n[0-", "n[2-1]", "n[x]", "n0,,n1"])
def test_a_broken_list_is_refused(text):
    with pytest.raises(ClusterError, match="host list"):
        expand_hostlist(text)


@pytest.mark.parametrize("names", [["n0"], ["n0", "n1", "n2", "n5"], ["g08", "g09", "g10"], ["login", "n3"]])
def test_a_collapsed_list_expands_to_the_same(names):
    assert sorted(expand_hostlist(collapse_hostlist(names))) == sorted(names)


def test_runs_collapse():
    assert collapse_hostlist(["n0", "n1", "n2", "n7"]) == "n[0-2,7]"
