import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.errors import SettingsError
from windtunnel.shards.split import split_by_time
from windtunnel.shards.windows import Field, place_windows

SERIES = st.lists(st.tuples(st.integers(150, 250), st.integers(0, 99)), min_size=1, max_size=3)
"""Rows and seed of each."""
FIELDS = (Field("x", -5, 1), Field("price", 0, 4))


@settings(deadline=None, max_examples=50)
@given(series=SERIES, embargo_ns=st.integers(0, 100), stride=st.integers(1, 3))
def test_no_row_of_a_sample_happens_before_the_end_of_an_earlier_part_plus_the_embargo(series, embargo_ns, stride):
    times = [np.cumsum(np.random.default_rng(seed).integers(0, 40, rows)) for rows, seed in series]
    split = split_by_time(times, train_fraction=0.5, validation_fraction=0.25, embargo_ns=embargo_ns)
    joined, seen = np.concatenate(times), []
    for part in (split.train, split.validation, split.test):
        windows = place_windows(part, FIELDS, stride=stride)
        rows = windows.rows_of(np.arange(windows.samples))
        assert len(set(rows.tolist())) == windows.samples
        seen.append((joined[rows - 5].min(), joined[rows + 3].max()))
    assert seen[0][1] < split.validation_ns <= seen[1][0] - embargo_ns
    assert seen[1][1] < split.test_ns <= seen[2][0] - embargo_ns


@settings(deadline=None, max_examples=50)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=6).filter(lambda found: max(found) >= 10),
    stride=st.integers(1, 7),
)
def test_samples_below_a_row_are_counted_as_they_are_listed(lengths, stride):
    ends = np.cumsum(lengths).tolist()
    stretches = list(zip([0, *ends[:-1]], ends, strict=True))
    windows = place_windows(stretches, FIELDS, stride=stride)
    rows = windows.rows_of(np.arange(windows.samples))
    wanted = [row for first, end in stretches for row in range(first + 5, end - 3, stride)]
    assert rows.tolist() == wanted
    edges = np.arange(-2, ends[-1] + 3)
    assert windows.count_below(edges).tolist() == [sum(row < edge for row in wanted) for edge in edges]


def test_a_stretch_that_is_too_short_for_a_sample_is_refused():
    with pytest.raises(SettingsError, match="a sample takes 9 rows, the longest stretch has 8"):
        place_windows([(0, 8), (8, 12)], FIELDS)


@pytest.mark.parametrize(("train", "validation"), [(0.8, 0.2), (0.0, 0.5), (0.5, 0.0)])
def test_shares_that_leave_a_part_empty_are_refused(train, validation):
    with pytest.raises(SettingsError, match="leave nothing to train, validate or test on"):
        split_by_time([np.arange(10)], train_fraction=train, validation_fraction=validation)


def test_a_negative_embargo_is_refused():
    with pytest.raises(SettingsError, match="embargo_ns is -1, expected 0 or more"):
        split_by_time([np.arange(10)], train_fraction=0.5, validation_fraction=0.2, embargo_ns=-1)
