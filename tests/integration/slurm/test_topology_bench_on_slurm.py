"""`windtunnel topology bench` on the session's testbed, whose leaves have shaped links."""

from windtunnel.artifacts import read_artifact
from windtunnel.fabric.bench_report import find_slow_parts
from windtunnel.records.bench import FabricBench


def test_the_levels_of_the_tree_are_as_fast_as_their_links(testbed, windtunnel, tmp_path):
    job = ("salloc", "--nodes=4", "--ntasks=4", "--nodelist=n[0-3]")
    bench = ("topology", "bench", "--interface=eth0", "--sizes=1K,64K,4M", "--operations=p2p,all_reduce")
    ended = testbed.run(*job, *windtunnel, *bench, "--budget-s=0.1", f"--out={tmp_path / 'fabric.json'}", check=False)
    assert ended.code == 0, ended.stdout + ended.stderr
    measured = read_artifact(tmp_path / "fabric.json", FabricBench)
    assert measured.hosts == ("n0", "n2", "n1", "n3")
    pairs = {c.case.level: c.timings[-1] for c in measured.cases if len(c.timings) > 1 and c.case.operation == "p2p"}
    # Links of 1 Gbit/s within a leaf and 0.2 between leaves; a burst passes faster than the rate.
    assert pairs["leaf"].median_s * 2 < pairs["across"].median_s
    assert 0.01 < pairs["across"].algbw_gbps < 0.04
    assert find_slow_parts(measured).found == ()
