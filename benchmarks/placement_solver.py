"""The placement solver: against brute force where that can be done, against its own lower bound where it cannot."""

import random
import time

from benchmarks.harness import Part, PartResult, Row, make_row, make_share_row
from benchmarks.placement_brute import find_least_s
from windtunnel.fabric.congestion import build_problem
from windtunnel.fabric.slots import Level, SlotTree, build_slots
from windtunnel.fabric.solver import Placement, place_ranks
from windtunnel.fabric.traffic import Axis, Pattern
from windtunnel.statistics import median_interval

SMALL, TENS = 2000, 50
SEEDS = 20
_PATTERNS: tuple[Pattern, ...] = ("ring", "chain", "all-to-all", "hierarchical")
_MOST_SLOTS = 8
_EQUAL = 1e-9


def run_small(quick: bool) -> PartResult:
    """Random trees, layouts and costs of up to 8 nodes, and of 10."""
    small, tens = (20, 0) if quick else (SMALL, TENS)
    drawn = random.Random(1)
    good = [_is_optimal(draw_instance(drawn, drawn.randint(2, 8))) for _ in range(small)]
    good += [_is_optimal(draw_instance(drawn, 10)) for _ in range(tens)]
    row = make_share_row("instances solved to the optimum, and proven", good)
    return PartResult({"solver_optimal_fraction": row.median}, {"solver_optimal_fraction": row.count}, (row,))


def draw_instance(drawn: random.Random, nodes: int) -> tuple[SlotTree, tuple[Axis, ...]]:
    """Hosts below random leaves of random pods, some layout of their ranks, and random costs."""
    leaves, pods = drawn.randint(1, 4), drawn.randint(1, 3)
    paths = {}
    for index in range(nodes):
        leaf = drawn.randrange(leaves)
        paths[f"n{index}"] = ("core", f"pod{leaf % pods}", f"leaf{leaf}")
    slower = [1.0, *sorted(drawn.uniform(0.3, 6) for _ in range(3))]
    levels = [Level(1e-9 * each, 1e-6 * each, 1e-9 * drawn.uniform(0, each)) for each in slower]
    axes = []
    per_host = drawn.choice((1, 2)) if 2 * nodes <= _MOST_SLOTS else 1
    for index, ranks in enumerate(_draw_degrees(drawn, nodes * per_host)):
        pattern = drawn.choice(_PATTERNS)
        axes.append(
            Axis(f"axis{index}", ranks, pattern, drawn.uniform(1e6, 1e9), drawn.randint(0, 99), drawn.random())
        )
    return build_slots(list(paths), paths, levels, ranks_per_host=per_host), tuple(axes)


def _draw_degrees(drawn: random.Random, ranks: int) -> list[int]:
    """Factors whose product is `ranks`, in a random order."""
    degrees = []
    while ranks > 1:
        degrees.append(drawn.choice([d for d in range(2, ranks + 1) if ranks % d == 0]))
        ranks //= degrees[-1]
    return degrees


def _is_optimal(instance: tuple[SlotTree, tuple[Axis, ...]]) -> bool:
    tree, axes = instance
    placement = place_ranks(tree, axes)
    least_s = find_least_s(build_problem(tree, axes))
    return abs(placement.cost_s - least_s) <= _EQUAL * least_s and placement.gap == 0


def run_large(quick: bool) -> PartResult:
    """512 of 600 nodes granted at random; seconds include building and bounding, in one process."""
    seeds = 2 if quick else SEEDS
    gaps, seconds, gains = [], [], []
    for seed in range(seeds):
        started = time.perf_counter()
        placement = solve_large(seed)
        seconds.append(time.perf_counter() - started)
        gaps.append(placement.gap)
        gains.append(placement.gain)
    rows = (
        make_row("gap to the lower bound", median_interval(gaps), ""),
        Row("gap, worst", max(gaps), max(gaps), max(gaps), "", seeds),
        make_row("seconds to solve", median_interval(seconds), "s"),
        Row("seconds to solve, worst", max(seconds), max(seconds), max(seconds), "s", seeds),
        make_row("saved against Slurm's order", median_interval(gains), ""),
    )
    figures = {"large_gap": max(gaps), "large_solve_s": max(seconds)}
    return PartResult(figures, dict.fromkeys(figures, seeds), rows)


def solve_large(seed: int) -> Placement:
    """A dense model of 70 billion parameters: tp 8 x pp 8 x dp 64 on nodes of eight 400 Gbit/s adapters.

    Leaves of 16 nodes with a quarter of their bandwidth upwards, pods of eight leaves without loss. A step of 8
    micro-batches of one 8192-token sequence; hidden size 8192, 80 layers, bf16.
    """
    drawn = random.Random(seed)
    names = [f"n{index:03}" for index in range(600)]
    paths = {name: ("core", f"pod{i // 128}", f"leaf{i // 16:02}") for i, name in enumerate(names)}
    granted = sorted(drawn.sample(names, 512))
    adapter = 1 / 50e9
    leaf = adapter / 8 / 16 * 4
    levels = (
        Level(1 / 450e9, 2e-6),
        Level(adapter / 8, 5e-6, adapter),
        Level(leaf, 7e-6),
        Level(leaf / 8, 9e-6),
    )
    activations = 8192 * 8192 * 2
    micro_batches, layers = 8, 80 / 8
    reduced = 4 * layers * micro_batches
    axes = (
        Axis("tp", 8, "ring", reduced * activations * 2 * 7 / 8, reduced * 14),
        Axis("pp", 8, "chain", 2 * micro_batches * activations / 8, 2 * micro_batches),
        Axis("dp", 64, "ring", 70e9 / 64 * 2 * 2 * 63 / 64, 126, exposed=0.3),
    )
    return place_ranks(build_slots(granted, paths, levels, ranks_per_host=8), axes)


_MODULES = ("bounds", "congestion", "exact", "fold", "slots", "solver", "strips", "swaps", "traffic")
_MEASURES = (
    *(f"fabric/{module}.py" for module in _MODULES),
    "benchmarks/placement_solver.py",
    "benchmarks/placement_brute.py",
)
SMALL_PART = Part(name="solver", figures=("solver_optimal_fraction",), measures=_MEASURES, run=run_small)
LARGE_PART = Part(name="large", figures=("large_gap", "large_solve_s"), measures=_MEASURES, run=run_large)
