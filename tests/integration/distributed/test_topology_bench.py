import pytest

from windtunnel.artifacts import read_artifact
from windtunnel.errors import SettingsError
from windtunnel.fabric.bench_cases import OPERATIONS, BenchPlan, busbw_factor
from windtunnel.records.bench import FabricBench
from windtunnel.topology.bench import run_bench

pytestmark = pytest.mark.gloo

QUICK = ("--budget-s", "0.01", "--least", "1")


@pytest.fixture(autouse=True)
def outside_a_job(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)


def test_this_machine_is_measured_by_every_operation(tmp_path, capsys):
    plan = BenchPlan(sizes_bytes=(1024, 65536, 1 << 20), pair_bytes=1 << 20)
    run_bench(plan, out=tmp_path / "fabric.json", interface="", options=QUICK)
    bench = read_artifact(tmp_path / "fabric.json", FabricBench)
    assert {measured.case.operation for measured in bench.cases} == set(OPERATIONS)
    assert {measured.case.level for measured in bench.cases} == {"node"}
    for measured in bench.cases:
        for timing in measured.timings:
            assert timing.algbw_gbps == pytest.approx(timing.bytes / timing.median_s / 1e9)
            factor = busbw_factor(measured.case.operation, 2)
            assert timing.busbw_gbps == pytest.approx(timing.algbw_gbps * factor)
    assert "gloo over 1 host" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["fabric.json"]


def test_an_operation_that_there_is_not_is_refused_before_ranks_start(tmp_path):
    with pytest.raises(SettingsError, match="'gossip' is not one of"):
        run_bench(BenchPlan(operations=("gossip",)), out=tmp_path / "fabric.json", interface="")
