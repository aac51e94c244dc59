from benchmarks.faults_stall import read_p99


def test_the_99th_percentile_is_the_nearest_rank_at_or_above():
    assert read_p99([float(number) for number in range(1, 101)]) == 99.0
    assert read_p99([3.0, 1.0, 2.0]) == 3.0
