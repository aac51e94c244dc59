import numpy as np
import pytest

from windtunnel.errors import InputFileError, LayoutError
from windtunnel.fabric.axes_text import parse_axes
from windtunnel.fabric.bench_cases import BenchPlan, plan_cases
from windtunnel.fabric.congestion import build_problem, total_cost_s
from windtunnel.fabric.level_costs import find_levels
from windtunnel.fabric.slots import Level, build_slots
from windtunnel.fabric.traffic import Axis
from windtunnel.records.bench import CaseTimings, FabricBench, SizeTiming

HOSTS = tuple(f"n{i}" for i in range(8))
PATHS = {host: ("spine", f"leaf{i % 2}") for i, host in enumerate(HOSTS)}
# A leaf's uplink carries as much as one and a half ranks' adapters.
TRUE = (Level(0.0), Level(8e-9, 0.0), Level(8e-9 / 1.5, 0.0, 8e-9))


def simulate(sizes=(1024, 65536, 1 << 20, 1 << 24)):
    ordered = tuple(sorted(HOSTS, key=lambda host: PATHS[host]))
    plan = BenchPlan(operations=("all_to_all", "p2p"), sizes_bytes=sizes)
    return FabricBench("gloo", "", ordered, tuple(map(_simulate_case, plan_cases(ordered, PATHS, plan))))


def _simulate_case(case):
    n = len(case.hosts)
    tree = build_slots(case.hosts, PATHS, TRUE)
    timings = []
    for size in case.sizes_bytes:
        axis = Axis("x", n, "all-to-all", size * (n - 1) / n) if n > 2 else Axis("x", n, "chain", size)
        seconds = 1e-5 + total_cost_s(build_problem(tree, [axis]), np.arange(n))
        timings.append(SizeTiming(size, seconds, 0.0, 5, size / seconds / 1e9, size / seconds / 1e9))
    return CaseTimings(case, tuple(timings))


def test_the_costs_of_uplinks_are_found_from_pairs_and_all_to_alls():
    port, node, leaf = find_levels(simulate(), PATHS)
    assert port.s_per_byte == 0
    assert node.s_per_byte == pytest.approx(8e-9, rel=0.02)
    assert leaf.s_per_byte == pytest.approx(8e-9 / 1.5, rel=0.02)
    assert leaf.rank_s_per_byte == pytest.approx(8e-9, rel=0.02)
    assert leaf.latency_s == pytest.approx(1e-5, rel=0.05)


def test_a_bench_without_curves_is_refused():
    with pytest.raises(InputFileError, match="no curve of p2p at level leaf"):
        find_levels(simulate(sizes=(1024,)), PATHS)


def test_axes_are_read_as_typed():
    tp, dp = parse_axes("tp=2:ring:100M, dp=4:hierarchical:32K:0.5")
    assert (tp.name, tp.ranks, tp.bytes, tp.exposed) == ("tp", 2, 100 * 2**20, 1.0)
    assert (dp.pattern, dp.bytes, dp.exposed) == ("hierarchical", 32768, 0.5)


@pytest.mark.parametrize("text", ["tp", "tp=2", "tp=x:ring:1M", "tp=2:star:1M", "tp=2:ring:1M:much"])
def test_axes_of_another_form_are_refused(text):
    with pytest.raises(LayoutError, match="axis 'tp"):
        parse_axes(text)
