"""What uplinks of each level cost, from a benchmark of the fabric: what the solver needs of it. Pure.

A pair of ranks tells what one rank gets through, and an all-to-all what all get through together: each is slowed by
the uplink or by something else, so the uplink itself takes no longer than the quicker of the two says.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from windtunnel.errors import InputFileError
from windtunnel.fabric.bench_cases import name_level
from windtunnel.fabric.bench_report import list_curves
from windtunnel.fabric.congestion import build_problem, find_load
from windtunnel.fabric.curves import CostCurve
from windtunnel.fabric.slots import Level, build_slots
from windtunnel.fabric.traffic import Axis
from windtunnel.records.bench import FabricBench


def find_levels(bench: FabricBench, paths: Mapping[str, Sequence[str]]) -> tuple[Level, ...]:
    """Costs of a rank's port, a node's uplink, a leaf's, and so on.

    Ports cost nothing where the inside of a node was not measured. Raises InputFileError where the bench has no curve
    of p2p at a level of these hosts.
    """
    curves = list_curves(bench)
    hosts = tuple(dict.fromkeys(bench.hosts))
    tallest = max((len(paths.get(host, ())) for host in hosts), default=1) - 1
    inside = curves.get(("node", "p2p"))
    levels = [Level(0.0) if inside is None else _make_level(inside, inside.s_per_byte)]
    for height in range(max(0, tallest) + 1):
        name = name_level(height, max(0, tallest))
        alone = curves.get((name, "p2p"))
        if alone is None:
            raise InputFileError(
                f"the benchmark has no curve of p2p at level {name}: run it with three sizes or more"
            )
        together = _share_uplink(bench, paths, curves.get((name, "all_to_all")), height=height)
        levels.append(_make_level(alone, min([alone.s_per_byte, *together])))
    return tuple(levels)


def _make_level(alone: CostCurve, s_per_byte: float) -> Level:
    """A latency that cannot be known counts as none: it decides nothing then."""
    return Level(s_per_byte, alone.latency_s or 0.0, alone.s_per_byte)


def _share_uplink(
    bench: FabricBench, paths: Mapping[str, Sequence[str]], curve: CostCurve | None, *, height: int
) -> list[float]:
    """Seconds a byte of the uplinks below this level by the all-to-all that crosses them; none without one."""
    tallest = max((len(paths.get(host, ())) for host in bench.hosts), default=1) - 1
    level = name_level(height, max(0, tallest))
    hosts = next((m.case.hosts for m in bench.cases if (m.case.level, m.case.operation) == (level, "all_to_all")), ())
    if curve is None or len(hosts) < 2:
        return []
    tree = build_slots(hosts, paths, (Level(0.0), Level(0.0)))
    flow = build_problem(tree, [Axis("all", len(hosts), "all-to-all")]).flows[0]
    load = find_load(flow, tree.above[1 + height][np.arange(len(hosts))])
    sent = load * (len(hosts) - 1) / len(hosts)  # nccl-tests counts a rank's own part as well
    return [curve.s_per_byte / sent] if sent > 0 else []
