"""What a benchmark of the fabric found, for people: bandwidths by level, curves, slow hosts and links. Pure."""

from collections.abc import Mapping

from windtunnel.fabric.curves import LEAST_CURVE_SIZES, CostCurve, fit_curve
from windtunnel.fabric.slow_parts import Pair, Slow, SlowParts, find_slow
from windtunnel.records.bench import CaseTimings, FabricBench
from windtunnel.units import format_bytes, format_seconds


def render_bench(bench: FabricBench) -> str:
    """A table, then what is slow."""
    header = (
        "level",
        "operation",
        "ranks",
        "largest",
        "time",
        "algbw GB/s",
        "busbw GB/s",
        "latency",
        "error left out",
    )
    lines = [header, *(_make_line(measured) for measured in bench.cases if _is_shown(measured))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    hosts = len(set(bench.hosts))
    title = f"{bench.backend} over {hosts} host{'' if hosts == 1 else 's'}"
    return "\n".join([title, *table, *describe_slow(find_slow_parts(bench))])


def find_slow_parts(bench: FabricBench) -> SlowParts:
    """Hosts and links slower than their peers, from the pairs at the size that all have."""
    times: dict[str, dict[Pair, float]] = {}
    shared = _find_shared_size(bench)
    for measured in bench.cases:
        if measured.case.operation == "p2p" and measured.case.level != "node":
            pair = (measured.case.hosts[0], measured.case.hosts[1])
            at = [timing.median_s for timing in measured.timings if timing.bytes == shared]
            times.setdefault(measured.case.level, {})[pair] = at[0]
    return find_slow(times)


def fit_case(measured: CaseTimings) -> CostCurve | None:
    """The curve of a case; None with too few sizes."""
    if len(measured.timings) < LEAST_CURVE_SIZES:
        return None
    return fit_curve({timing.bytes: (timing.median_s,) for timing in measured.timings})


def describe_slow(parts: SlowParts) -> list[str]:
    """A line for each slow part, and one for what could not be told."""
    lines = [_describe_slow(slow) for slow in parts.found]
    if not parts.found:
        lines = ["no host and no link is slower than its peers"]
    if parts.untested:
        lines.append(f"too few peers to tell of {', '.join(parts.untested)}")
    return lines


def _find_shared_size(bench: FabricBench) -> int | None:
    sizes = [
        {t.bytes for t in m.timings} for m in bench.cases if m.case.operation == "p2p" and m.case.level != "node"
    ]
    shared: set[int] = set.intersection(*sizes) if sizes else set()
    return max(shared, default=None)


def _is_shown(measured: CaseTimings) -> bool:
    """Not the pairs at one size, of which there may be many."""
    return measured.case.operation != "p2p" or len(measured.timings) > 1


def _make_line(measured: CaseTimings) -> tuple[str, ...]:
    largest = measured.timings[-1]
    curve = fit_case(measured)
    error = "" if curve is None or curve.median_error is None else f"{curve.median_error:.1%}"
    latency = "" if curve is None else "unknown" if curve.latency_s is None else format_seconds(curve.latency_s)
    return (
        measured.case.level,
        measured.case.operation,
        str(len(measured.case.ranks)),
        format_bytes(largest.bytes),
        format_seconds(largest.median_s),
        f"{largest.algbw_gbps:.3g}",
        f"{largest.busbw_gbps:.3g}",
        latency,
        error,
    )


def _describe_slow(slow: Slow) -> str:
    who = f"host {slow.hosts[0]}" if len(slow.hosts) == 1 else f"link {slow.hosts[0]} - {slow.hosts[1]}"
    chance = "" if slow.p_value is None else f", by chance {slow.p_value:.1g}"
    return f"slow {who} ({slow.level}): {slow.times:.2f} times its peers' time{chance}"


CurveKey = tuple[str, str]


def list_curves(bench: FabricBench) -> Mapping[CurveKey, CostCurve]:
    """By level and operation."""
    fitted = {(m.case.level, m.case.operation): fit_case(m) for m in bench.cases if _is_shown(m)}
    return {key: curve for key, curve in fitted.items() if curve is not None}
