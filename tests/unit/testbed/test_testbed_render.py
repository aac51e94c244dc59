from dataclasses import replace
from pathlib import Path

import pytest

from windtunnel.testbed.hosts import enter_argv, render_enter, render_hosts
from windtunnel.testbed.render import render_gres_conf, render_slurm_conf, render_slurmdbd_conf, render_topology_conf
from windtunnel.testbed.spec import ClusterSpec, Ports

GOLDEN = Path(__file__).parent / "golden"
TREE = ClusterSpec(folder=Path("/tmp/tb"), user="root", machine="vm", nodes=4, leaves=2, gpus=2)
FLAT = replace(TREE, user="ada", network=False, accounting=False, gpus=0, fast_timings=False, ports=Ports(20, 21, 22))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tree-slurm.conf", render_slurm_conf(TREE)),
        ("tree-gres.conf", render_gres_conf(TREE)),
        ("tree-topology.conf", render_topology_conf(TREE)),
        ("tree-slurmdbd.conf", render_slurmdbd_conf(TREE)),
        ("tree-hosts", render_hosts(TREE)),
        ("tree-enter-n1", render_enter(TREE, "n1", bind_resolver=True)),
        ("flat-slurm.conf", render_slurm_conf(FLAT)),
    ],
)
def test_rendered_file_equals_its_golden_copy(name: str, text: str) -> None:
    assert text == (GOLDEN / name).read_text()


def test_nodes_in_blocks_fill_one_leaf_after_the_other() -> None:
    text = render_topology_conf(replace(TREE, nodes=6, interleave=False))
    assert text.splitlines()[:2] == ["SwitchName=leaf0 Nodes=n[0-2]", "SwitchName=leaf1 Nodes=n[3-5]"]


def test_default_timings_leave_slurms_own() -> None:
    text = render_slurm_conf(replace(TREE, fast_timings=False))
    assert "cred_expire" not in text
    assert "KillWait" not in text


def test_command_enters_the_hosts_network_before_its_mounts() -> None:
    argv = enter_argv(TREE, "n1", ["slurmd", "-D"])
    assert argv[:2] == ("nsenter", "--net=/tmp/tb/ns/n1")
    assert argv[2:5] == ("unshare", "--mount", "--uts")
    assert argv[-3:] == ("/tmp/tb/hosts/n1", "slurmd", "-D")


def test_command_without_namespaces_runs_as_it_is() -> None:
    assert enter_argv(FLAT, "vm", ["sinfo"]) == ("sinfo",)
