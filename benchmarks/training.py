"""What our training loop costs, and whether its meters are right: overhead, sum of phases, and counts of operations.

Sides of the overhead run in turn in one process and on one thread, over the same samples.
"""

import time
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.harness import Paired, Part, PartResult, Row, make_row, run_paired
from benchmarks.training_bed import LEAST_STEP_S, MODELS, Bed, open_bed
from benchmarks.training_plain import PlainLoop
from windtunnel.models.build import build_model
from windtunnel.perfmodel.flops import count_flops
from windtunnel.settings.model import ModelSettings
from windtunnel.statistics import median_interval

PAIRS = 30
STEPS = 10
"""Of each side in a pair; ours writes one line in as many."""
OURS, PLAIN = "ours", "by hand"
FLOP_CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tcn", {}),
    ("tcn", {"channels": 48, "kernel": 5, "levels": 3}),
    ("tcn", {"channels": 8, "dropout": 0.2}),
    ("transformer", {}),
    ("transformer", {"width": 64, "heads": 8, "layers": 4}),
    ("transformer", {"width": 24, "heads": 2, "layers": 1, "dropout": 0.2}),
)


def run_overhead(quick: bool) -> PartResult:
    """Upper bound of the median ratio of our step's time to the hand-written one's, minus 1; the worst model."""
    pairs = 3 if quick else PAIRS
    found = {model: compare_loops(model, pairs=pairs) for model in MODELS}
    worst = max(paired.ratio(OURS, PLAIN).high for paired in found.values())
    rows = tuple(row for model, paired in found.items() for row in describe_pair(model, paired))
    return PartResult({"overhead_vs_plain_loop": worst - 1}, {"overhead_vs_plain_loop": pairs}, rows)


def compare_loops(model: str, *, pairs: int) -> Paired:
    """Seconds of a step of each side, with the smallest power of two as batch that makes them long enough."""
    batch_size = find_batch(model)
    while True:
        paired = run_loops(model, batch_size=batch_size, pairs=pairs)
        if min(paired.seconds[PLAIN]) >= LEAST_STEP_S:
            return paired
        batch_size *= 2


def run_loops(model: str, *, batch_size: int, pairs: int) -> Paired:
    """Seconds of a step of each side."""
    with open_bed(model, batch_size=batch_size, log_every=STEPS, discard_steps=1) as bed:
        plain = PlainLoop(bed, batch_size=batch_size)
        sides = {OURS: lambda: time_ours(bed), PLAIN: lambda: plain.train(STEPS) / STEPS}
        return run_paired(sides, rounds=pairs)


def time_ours(bed: Bed) -> float:
    """Seconds of one of `STEPS` steps in our loop with all that lies between them, but for the last checkpoint."""
    phases = bed.train(1 + STEPS)  # the first is warm-up, in which memory is counted
    assert phases.steps == STEPS
    return (phases.wall_s - phases.seconds["checkpoint"]) / STEPS


def find_batch(model: str) -> int:
    """A first guess, by a few steps."""
    batch_size = 8
    while True:
        with open_bed(model, batch_size=batch_size, log_every=STEPS, discard_steps=1) as bed:
            plain = PlainLoop(bed, batch_size=batch_size)
            plain.train(2)
            if min(plain.train(3) / 3 for _ in range(3)) >= LEAST_STEP_S:
                return batch_size
        batch_size *= 2


def describe_pair(model: str, paired: Paired) -> tuple[Row, Row]:
    """The ratio, and the steps that it stands on."""
    ratio, steps = paired.ratio(OURS, PLAIN), median_interval(paired.seconds[PLAIN])
    return (
        make_row(f"{model}: step, {OURS} / {PLAIN}", ratio, "times"),
        make_row(f"{model}: step {PLAIN}", steps, "s"),
    )


def run_phases(quick: bool) -> PartResult:
    """How far the phases' sum is from the loop's time by a clock around it, of each model; the worst."""
    errors = []
    rows = []
    for model in MODELS:
        with open_bed(model, batch_size=32, log_every=5, discard_steps=0) as bed:
            found = sorted(time_phases(bed, steps=20 if quick else 100) for _ in range(1 if quick else 5))
        errors += found
        rows.append(Row(f"{model}: phases against the clock", found[len(found) // 2], found[0], found[-1], "", 1))
    return PartResult({"phase_sum_error": max(errors)}, {"phase_sum_error": len(errors)}, tuple(rows))


def time_phases(bed: Bed, *, steps: int) -> float:
    """Difference of the phases' sum and the time by a clock of ours, as a share of that."""
    began = time.perf_counter()
    phases = bed.train(steps)
    wall_s = time.perf_counter() - began
    return abs(sum(phases.seconds.values()) - wall_s) / wall_s


def run_flops(quick: bool) -> PartResult:
    """Declared operations of a step against torch's counter over the model itself; the worst of several forms."""
    rows = []
    for model, args in FLOP_CASES[:: 3 if quick else 1]:
        error = find_flop_error(model, args)
        told = ", ".join(f"{name}={value}" for name, value in args.items()) or "as it comes"
        rows.append(Row(f"{model} ({told}): declared against counted", error, error, error, "", 1))
    figures = {"flops_max_relative_error": max(row.median for row in rows)}
    return PartResult(figures, dict.fromkeys(figures, len(rows)), tuple(rows))


def find_flop_error(model: str, args: dict[str, Any]) -> float:
    """Attention runs as plain products, since torch counts none of the processor's fused kernel."""
    settings = ModelSettings.model_validate({**MODELS[model], "args": args})
    sizes = {"n_features": 16, "n_outputs": 2, "window": 64}
    built = build_model(settings, **sizes)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        built(torch.randn(2, 64, 16)).sum().backward()
    declared = count_flops(settings, **sizes)
    assert declared is not None, f"{model} declares no operations"
    counted = counter.get_total_flops() / 2
    return abs(declared.model - counted) / counted


_LOOP = ("training", "models", "tasks", "checkpoints", "benchmarks/training_bed.py", "benchmarks/training.py")
PARTS = (
    Part("overhead", ("overhead_vs_plain_loop",), (*_LOOP, "benchmarks/training_plain.py"), run_overhead),
    Part("phases", ("phase_sum_error",), _LOOP, run_phases),
    Part("flops", ("flops_max_relative_error",), ("models", "perfmodel", "benchmarks/training.py"), run_flops),
)
