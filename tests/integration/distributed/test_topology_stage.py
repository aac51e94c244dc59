import pytest

from windtunnel.artifacts import read_artifact
from windtunnel.records.cluster import Collectives, Topology
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.topology.run import run_topology

pytestmark = pytest.mark.gloo


def test_this_machine_is_measured_by_two_local_ranks(tmp_path):
    topology, collectives = tmp_path / "topology.json", tmp_path / "collectives.json"
    run_topology(ClusterSettings(kind="local", partition="local"), out=topology, collectives=collectives)
    facts, measured = read_artifact(topology, Topology), read_artifact(collectives, Collectives)
    assert measured.hosts == (facts.nodes[0].name,) * 2
    assert measured.fingerprint == facts.fingerprint
    assert [timing.bytes for timing in measured.timings] == [65536, 1048576, 8388608]
    for timing in measured.timings:
        assert timing.repeats >= 5
        assert timing.busbw_gbps == pytest.approx(timing.bytes / timing.median_s / 1e9)  # 2 (n - 1) / n is 1 for two
    assert sorted(path.name for path in tmp_path.iterdir()) == ["collectives.json", "topology.json"]
