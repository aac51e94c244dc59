import json
from xml.etree import ElementTree

import pytest

from fabric_samples import CONF_TREE, MATRIX, OSU, SLURM_CONF
from windtunnel.artifacts import write_artifact
from windtunnel.cli.main import main
from windtunnel.records.bench import BenchCase, CaseTimings, FabricBench, SizeTiming
from windtunnel.topology.live import read_live_machine


@pytest.fixture
def tree(tmp_path):
    path = tmp_path / "topology.conf"
    path.write_text(CONF_TREE)
    return path


def test_facts_are_json(tree, capsys):
    assert main(["topology", "facts", str(tree), "--slurm-version", "23.11.1"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["kind"], facts["switches"], facts["version"]) == ("topology.conf", 6, "23.11.1")


def test_a_malformed_file_has_facts_and_one_error_with_its_place(tmp_path, capsys):
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2 Colour=red\n")
    assert main(["topology", "facts", str(path)]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["malformed"]
    assert said.err.startswith(f"{path}:2:30: error: 'colour' is no key")


@pytest.mark.parametrize("words", [["facts"], ["facts", "x", "--corpus", "y"], ["lint", "absent"], []])
def test_a_users_mistake_is_one_message_and_exit_code_2(words, capsys):
    assert main(["topology", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_of_no_known_kind_is_refused_with_the_kinds(tmp_path, capsys):
    path = tmp_path / "poem.txt"
    path.write_text("no topology at all\n")
    assert main(["topology", "show", str(path)]) == 2
    assert "ibnetdiscover" in capsys.readouterr().err


def test_a_corpus_with_a_wrong_fact_ends_with_1(tmp_path, capsys):
    (tmp_path / "m.txt").write_text(MATRIX)
    (tmp_path / "INDEX.csv").write_text('file,expected\nm.txt,"{""n_gpus"": 9}"\n')
    assert main(["topology", "facts", "--corpus", str(tmp_path)]) == 1
    assert "n_gpus is 2, expected 9\n0 of 1 files" in capsys.readouterr().out


def test_lint_compares_with_the_clusters_nodes(tree, tmp_path, capsys):
    nodes = tmp_path / "slurm.conf"
    nodes.write_text(SLURM_CONF)
    assert main(["topology", "lint", str(tree), "--nodes", str(nodes)]) == 0
    said = capsys.readouterr().out
    assert "Slurm has no node" in said
    assert "in no switch or block" in said


def test_lint_ends_with_1_where_slurm_would_refuse(tmp_path, capsys):
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=a Switches=b\n")
    assert main(["topology", "lint", str(path)]) == 1
    assert "error: switch a lists b, which is not defined" in capsys.readouterr().out


def test_lint_refuses_a_file_that_describes_no_network(tmp_path, capsys):
    path = tmp_path / "matrix.txt"
    path.write_text(MATRIX)
    assert main(["topology", "lint", str(path)]) == 2
    assert "describes no switches" in capsys.readouterr().err


def test_show_draws_text_or_an_svg(tree, tmp_path, capsys):
    assert main(["topology", "show", str(tree)]) == 0
    assert capsys.readouterr().out.startswith("root\n├── p0\n")
    assert main(["topology", "show", str(tree), "--svg", str(tmp_path / "tree.svg")]) == 0
    assert ElementTree.parse(tmp_path / "tree.svg").getroot().tag.endswith("svg")


def test_this_machine_is_read_from_sysfs_where_there_is_no_nvidia_smi(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    node = tmp_path / "sys/devices/system/node/node0"
    node.mkdir(parents=True)
    (node / "cpulist").write_text("0-7\n")
    topology = read_live_machine(tmp_path / "sys")
    assert (topology.kind, topology.machine.numa[0].cpus) == ("sysfs", "0-7")


def test_a_log_is_fitted(tmp_path, capsys):
    path = tmp_path / "log.txt"
    path.write_text(OSU)
    assert main(["topology", "fit", str(path)]) == 0
    assert "latency: 3.53 us" in capsys.readouterr().out


def test_a_file_without_times_has_no_curve(tree, capsys):
    assert main(["topology", "fit", str(tree)]) == 2
    assert "is no log of nccl-tests or OSU" in capsys.readouterr().err


def test_ranks_are_placed_by_what_a_bench_measured(tmp_path, capsys):
    switches = "SwitchName=a Nodes=n[0,2]\nSwitchName=b Nodes=n[1,3]\nSwitchName=top Switches=a,b\n"
    (tmp_path / "topology.conf").write_text(switches)
    bench = tmp_path / "fabric.json"
    write_artifact(bench, make_bench(), settings_hash="0")
    axes = ["--axes", "dp=4:ring:32M", "--topology", str(tmp_path / "topology.conf")]
    assert main(["topology", "place", str(bench), *axes]) == 0
    said = capsys.readouterr()
    assert said.out.split() == ["n0", "n2", "n1", "n3"]
    assert "saved against the given order; proven best" in said.err


def make_bench():
    """Pairs below a leaf at 1 GB/s and across at 0.2."""
    cases = []
    for level, ranks, rate in (("leaf", (0, 1), 1e9), ("across", (0, 2), 2e8)):
        hosts = tuple(("n0", "n2", "n1", "n3")[rank] for rank in ranks)
        timings = tuple(
            SizeTiming(size, 1e-5 + size / rate, 0.0, 5, rate / 1e9, rate / 1e9) for size in (1024, 65536, 1 << 22)
        )
        case = BenchCase(level, "p2p", ranks, hosts, tuple(timing.bytes for timing in timings))
        cases.append(CaseTimings(case, timings))
    return FabricBench("gloo", "", ("n0", "n2", "n1", "n3"), tuple(cases))
