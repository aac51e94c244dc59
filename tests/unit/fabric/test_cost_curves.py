import random
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_samples import NCCL_LOG, OSU
from windtunnel.errors import InputFileError
from windtunnel.fabric.curves import describe_curve, fit_curve
from windtunnel.fabric.detect import parse_topology
from windtunnel.fabric.modes import find_modes
from windtunnel.fabric.timing_points import read_points

LATENCIES_S = st.floats(1e-6, 1e-3)
RATES = st.floats(1e8, 4e11)
SIZES = [2**power for power in range(3, 31, 2)]


def straight(latency_s, rate, sizes=SIZES, noise=0.0, seed=0):
    drawn = random.Random(seed)
    return {size: [(latency_s + size / rate) * (1 + noise * drawn.uniform(-1, 1))] for size in sizes}


@settings(max_examples=20, deadline=None)
@given(LATENCIES_S, RATES)
def test_the_numbers_of_an_exact_line_are_found(latency_s, rate):
    curve = fit_curve(straight(latency_s, rate))
    assert curve.latency_s == pytest.approx(latency_s, rel=1e-3)
    assert curve.predict_s(3 * 2**20) == pytest.approx(latency_s + 3 * 2**20 / rate, rel=1e-3)
    assert curve.worst_error < 1e-3
    assert curve.modes is None


@settings(max_examples=20, deadline=None)
@given(LATENCIES_S, RATES, st.integers(0, 1000))
def test_a_noisy_line_is_followed_within_its_noise(latency_s, rate, seed):
    curve = fit_curve(straight(latency_s, rate, noise=0.03, seed=seed))
    for size in SIZES:
        assert curve.predict_s(size) == pytest.approx(latency_s + size / rate, rel=0.05)
    assert curve.modes is None


@settings(max_examples=15, deadline=None)
@given(st.floats(1e-6, 1e-5), st.floats(3.0, 10.0), st.floats(2.0, 5.0))
def test_a_change_of_protocol_is_a_break(latency_s, slower_start, faster_rate):
    eager = {2**p: [latency_s + 2**p / 1e9] for p in range(14)}
    rendezvous = {2**p: [slower_start * latency_s + 2**p / (1e9 * faster_rate)] for p in range(18, 28)}
    curve = fit_curve({**eager, **rendezvous})
    assert 2**13 in [piece.to_bytes for piece in curve.pieces]
    assert curve.latency_s == pytest.approx(latency_s, rel=1e-2)
    assert 1 / curve.s_per_byte == pytest.approx(1e9 * faster_rate, rel=1e-2)


def test_large_messages_alone_leave_the_latency_unknown():
    curve = fit_curve(straight(20e-6, 1e10, sizes=[2**p for p in range(22, 31)], noise=0.01))
    assert curve.latency_s is None
    assert curve.latency_at_most_s > 400e-6
    assert "latency: unknown, no size is small enough (least 4194304 B)" in describe_curve(curve)


@settings(max_examples=20, deadline=None)
@given(st.floats(1.8, 8.0), st.integers(0, 1000))
def test_times_on_two_levels_are_bimodal(times, seed):
    drawn = random.Random(seed)
    slow = {size: drawn.sample([True, True, False, False], 4) for size in SIZES}
    measured = {
        size: [(50e-6 + size / 1e10) * (times if is_slow else 1) * drawn.uniform(0.97, 1.03) for is_slow in flags]
        for size, flags in slow.items()
    }
    modes = find_modes(measured)
    assert modes.slower_times == pytest.approx(times, rel=0.1)
    assert fit_curve(measured).latency_s is None


@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 0.2), st.integers(0, 1000))
def test_noise_and_one_outlier_are_one_level(noise, seed):
    measured = straight(50e-6, 1e10, noise=noise, seed=seed)
    measured[8] = [2e-3]
    assert find_modes(measured) is None


def test_the_error_is_that_of_sizes_the_fit_had_not_seen():
    measured = straight(50e-6, 1e10)
    measured[SIZES[6]] = [2 * measured[SIZES[6]][0]]
    curve = fit_curve(measured)
    assert curve.median_error < 0.1
    assert curve.worst_error > 0.4


def test_three_sizes_have_no_error_and_say_so():
    curve = fit_curve(straight(1e-6, 1e9, sizes=SIZES[:3]))
    assert curve.median_error is None
    assert "3 sizes are too few to leave one out" in describe_curve(curve)


@pytest.mark.parametrize(
    ("times_s", "said"),
    [({8: [1.0], 16: [1.0]}, "needs 3 sizes and 2"), ({1: [1.0], 2: [0.0], 4: [1.0]}, "size 2 has the times")],
    ids=["few", "zero"],
)
def test_what_cannot_be_fitted_is_refused(times_s, said):
    with pytest.raises(InputFileError, match=said):
        fit_curve(times_s)


def test_a_log_of_bandwidths_has_no_curve():
    log = "# OSU MPI Bandwidth Test v5.3.2\n# Size      Bandwidth (MB/s)\n1    1.0\n2    2.0\n4   4.0\n"
    with pytest.raises(InputFileError, match="osu_bw has no latencies"):
        read_points(parse_topology(log).timings)


def test_both_samples_of_a_row_are_points():
    points = read_points(parse_topology(NCCL_LOG).timings)
    assert all(len(times) == 2 for times in points.values())
    assert all(len(times) == 1 for times in read_points(parse_topology(OSU).timings).values())


@pytest.mark.shared
def test_real_logs_are_fitted_where_plain_least_squares_fails(shared_dir):
    errors, plain = [], []
    for path in sorted((shared_dir / "cases" / "topology").glob("*__*.txt")):
        timings = parse_topology(path.read_text(errors="replace"), path.name).timings
        if timings is None or len(timings.rows) < 8:
            continue
        points = read_points(timings)
        curve = fit_curve(points)
        if "bimodal" in path.name:
            assert curve.modes.slower_times > 3
            continue
        assert curve.modes is None
        errors.append(curve.median_error)
        plain.append(_plain_error(points))
    assert len(errors) >= 5
    assert max(errors) < 0.06
    assert statistics.median(plain) > 5 * statistics.median(errors)


def _plain_error(points):
    sizes = sorted(points)
    times = [statistics.median(points[size]) for size in sizes]
    return float(np.median(np.abs(np.polyval(np.polyfit(sizes, times, 1), sizes) / times - 1)))
