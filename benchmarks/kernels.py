"""How right and how fast the kernels are: error on real files, and time against bottleneck, pandas and polars.

Sides run in turn on the same data; ours write into an output that is used again, as a training loop does.
"""

import time
from collections.abc import Callable
from typing import Any

import bottleneck
import numpy as np
import torch

from benchmarks.harness import Part, PartResult, Row, Side, make_row, run_paired
from benchmarks.kernels_data import make_noise, read_real_series
from windtunnel.featurize.expand import use_threads
from windtunnel.kernels import windows
from windtunnel.kernels.fused import Feature, fused_features
from windtunnel.statistics import Interval

MOMENTS = ("mean", "sum", "var", "std", "zscore")
ERROR_WINDOWS = (20, 50, 500)
WINDOWS = (20, 500)
ROUNDS = 9
SERIES_ROWS = 10_000_000
FUSED_ROWS = 2_000_000
FUSED_WINDOWS = (8, 32, 128, 512)
COLUMN_SHAPES = ((400_000, 16), (100_000, 64))


def run_error(quick: bool) -> PartResult:
    """|ours - truth| / max(|truth|, 1e-6 s) in float32, the worst of each operator; s is that of absolute inputs."""
    series = read_real_series(rows=5_000, files=1) if quick else read_real_series()
    errors: dict[str, list[float]] = {moment: [] for moment in MOMENTS}
    nans = 0
    for values in series.values():
        x = torch.from_numpy(values)
        for window in (window for window in ERROR_WINDOWS if window <= len(x)):
            truths, scales = find_truths(x.double(), window), find_truths(x.double().abs(), window)
            for moment in MOMENTS:
                ours = getattr(windows, f"rolling_{moment}")(x, window)[window - 1 :].double()
                error, lost = find_error(ours, truths[moment], scales[moment])
                errors[moment].append(error)
                nans += lost
    rows = tuple(
        Row(f"float32 error of {moment}", float(np.median(found)), min(found), max(found), "", len(found))
        for moment, found in errors.items()
    )
    figures = {"float32_max_relative_error": max(row.high for row in rows), "float32_nan_count": float(nans)}
    return PartResult(figures, dict.fromkeys(figures, sum(row.count for row in rows)), rows)


def find_truths(x: torch.Tensor, window: int) -> dict[str, torch.Tensor]:
    """Every moment of the full windows of finite `x` in float64, by two passes over each."""
    found: dict[str, list[torch.Tensor]] = {moment: [] for moment in MOMENTS}
    for rows in x.unfold(0, window, 1).split(max(1, (1 << 21) // window)):
        total = rows.sum(-1)
        mean = total / window
        var = (rows - mean[:, None]).square().sum(-1) / (window - 1)
        flat = rows.amax(-1) == rows.amin(-1)  # where a mean is rounded, its deviations are not 0
        var = var.where(~flat, 0.0)
        score = ((rows[:, -1] - mean) / var.sqrt()).where(~flat, 0.0)
        for moment, value in zip(MOMENTS, (mean, total, var, var.sqrt(), score), strict=True):
            found[moment].append(value)
    return {moment: torch.cat(values) for moment, values in found.items()}


def find_error(ours: torch.Tensor, truth: torch.Tensor, scale: torch.Tensor) -> tuple[float, int]:
    """The worst error over a series, and how many values are NaN where the truth is finite."""
    finite = truth.isfinite()
    error = (ours - truth).abs() / torch.maximum(truth.abs(), 1e-6 * scale.abs())
    error = error.where(ours != truth, 0.0)[finite & ours.isfinite()]
    return float(error.max()) if error.numel() else 0.0, int(ours[finite].isnan().sum())


def run_series(quick: bool) -> PartResult:
    """One series on one core, each type by its own bottleneck; of z-score, bottleneck's parts in float64."""
    rows = 20_000 if quick else SERIES_ROWS
    noise = make_noise(rows)
    parts = []
    for bits, dtype in ((64, np.float64), (32, np.float32)):
        values = noise.astype(dtype)
        for moment in ("mean", "std"):
            theirs = getattr(bottleneck, f"move_{moment}")
            parts.append(
                compare_windows(f"rolling_{moment}_f{bits}_vs_bottleneck", values, moment, theirs=theirs, quick=quick)
            )

    def compose_zscore(values: Any, window: int) -> Any:
        del values
        return (noise - bottleneck.move_mean(noise, window)) / bottleneck.move_std(noise, window, ddof=1)

    single = noise.astype(np.float32)
    parts.append(
        compare_windows("rolling_zscore_f32_vs_bottleneck", single, "zscore", theirs=compose_zscore, quick=quick)
    )
    return join(parts)


def run_columns(quick: bool) -> PartResult:
    """Time-major columns in float32 on one core; the worse of 16 and 64."""
    parts = []
    for moment in ("mean", "std"):
        found = []
        for rows, columns in COLUMN_SHAPES:
            values = make_noise(rows // 100 if quick else rows, columns).astype(np.float32)

            def move(values: Any, window: int, moment: str = moment) -> Any:
                return getattr(bottleneck, f"move_{moment}")(values, window, axis=0)

            name = f"columns_{moment}_f32_vs_bottleneck"
            found.append(compare_windows(name, values, moment, theirs=move, quick=quick, note=f", {columns} columns"))
        parts.append(take_worst(found))
    return join(parts)


def run_frames(quick: bool) -> PartResult:
    """One float64 series on two cores against pandas and polars; the worst of mean and std."""
    import pandas
    import polars

    noise = make_noise(20_000 if quick else SERIES_ROWS // 5)
    series, column = pandas.Series(noise), polars.Series(noise)
    libraries: dict[str, Callable[[str], Callable[[Any, int], Any]]] = {
        "pandas": lambda moment: lambda _, window: getattr(series.rolling(window), moment)(),
        "polars": lambda moment: lambda _, window: getattr(column, f"rolling_{moment}")(window),
    }
    parts = []
    for library, choose in libraries.items():
        name = f"rolling_vs_{library}"
        found = [
            compare_windows(name, noise, moment, theirs=choose(moment), quick=quick, threads=2, note=f", {moment}")
            for moment in ("mean", "std")
        ]
        parts.append(take_worst(found))
    return join(parts)


def run_fused(quick: bool) -> PartResult:
    """Mean, deviation and z-score at four windows in one pass on two cores: against polars, and against a copy."""
    import polars

    rows = 20_000 if quick else FUSED_ROWS
    values = make_noise(rows).astype(np.float32)
    x, frame = torch.from_numpy(values), polars.DataFrame({"x": values})
    features = [Feature(moment, window) for window in FUSED_WINDOWS for moment in ("mean", "std", "zscore")]
    out = x.new_empty((len(features), rows))
    # A copy of as many bytes in and out as the features have, between kept buffers.
    half = torch.zeros((len(features) + 1) * rows // 2)
    kept = torch.zeros_like(half)

    # One query, which polars runs on all its threads, computing what is in it twice once.
    wanted = []
    for window in FUSED_WINDOWS:
        mean, std = (getattr(polars.col("x"), f"rolling_{moment}")(window) for moment in ("mean", "std"))
        scores = (polars.col("x") - mean) / std
        wanted += [mean.alias(f"mean{window}"), std.alias(f"std{window}"), scores.alias(f"zscore{window}")]

    sides: dict[str, Side] = {
        "ours": lambda: take_time(lambda: fused_features(x, features, out=out)),
        "polars": lambda: take_time(lambda: frame.select(wanted)),
        "copy": lambda: take_time(lambda: kept.copy_(half)),
    }
    with use_threads(2):
        for side in sides.values():
            side()
        paired = run_paired(sides, rounds=3 if quick else ROUNDS)
    ratios = {
        "fused_vs_polars": paired.ratio("polars", "ours"),
        "fused_copy_bandwidth_fraction": paired.ratio("copy", "ours"),
    }
    return PartResult(
        {name: ratio.median for name, ratio in ratios.items()},
        {name: ratio.count for name, ratio in ratios.items()},
        tuple(make_row(name, ratio, "x") for name, ratio in ratios.items()),
    )


def compare_windows(
    name: str,
    values: Any,
    moment: str,
    *,
    theirs: Callable[[Any, int], Any],
    quick: bool,
    threads: int = 1,
    note: str = "",
) -> PartResult:
    """How many times as fast ours is: the worse of the windows."""
    x = torch.from_numpy(values)
    out = torch.empty_like(x)
    ours = getattr(windows, f"rolling_{moment}")
    found: dict[int, Interval] = {}
    with use_threads(threads):
        for window in WINDOWS:
            sides: dict[str, Side] = {
                "ours": lambda window=window: take_time(lambda: ours(x, window, out=out)),
                "theirs": lambda window=window: take_time(lambda: theirs(values, window)),
            }
            found[window] = run_paired(sides, rounds=3 if quick else ROUNDS).ratio("theirs", "ours")
    rows = tuple(make_row(f"{name}{note}, window {window}", ratio, "x") for window, ratio in found.items())
    worst = min(found.values(), key=lambda ratio: ratio.median)
    return PartResult({name: worst.median}, {name: worst.count}, rows)


def take_worst(results: list[PartResult]) -> PartResult:
    """The lowest figure, with the rows of all."""
    worst = min(results, key=lambda result: min(result.figures.values()))
    return PartResult(worst.figures, worst.cases, tuple(row for result in results for row in result.rows))


def join(results: list[PartResult]) -> PartResult:
    """Several figures of one part."""
    figures = {key: value for result in results for key, value in result.figures.items()}
    cases = {key: value for result in results for key, value in result.cases.items()}
    return PartResult(figures, cases, tuple(row for result in results for row in result.rows))


def take_time(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


MEASURES = ("kernels", "native", "benchmarks/kernels.py", "benchmarks/kernels_data.py")
PARTS = (
    Part("error", ("float32_max_relative_error", "float32_nan_count"), MEASURES, run_error),
    Part(
        "series",
        (
            "rolling_mean_f64_vs_bottleneck",
            "rolling_std_f64_vs_bottleneck",
            "rolling_mean_f32_vs_bottleneck",
            "rolling_std_f32_vs_bottleneck",
            "rolling_zscore_f32_vs_bottleneck",
        ),
        MEASURES,
        run_series,
    ),
    Part("columns", ("columns_mean_f32_vs_bottleneck", "columns_std_f32_vs_bottleneck"), MEASURES, run_columns),
    Part("fused", ("fused_vs_polars", "fused_copy_bandwidth_fraction"), MEASURES, run_fused),
    Part("frames", ("rolling_vs_pandas", "rolling_vs_polars"), MEASURES, run_frames),
)
