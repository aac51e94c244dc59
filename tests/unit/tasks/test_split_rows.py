import pytest

from windtunnel.errors import SettingsError
from windtunnel.settings.task import TaskSettings
from windtunnel.tasks.split import split_rows


def _rows_used(stretch, settings):
    """Every row that a sample of the stretch reads, as input or as target."""
    samples = range(stretch.first_sample, stretch.end_sample)
    return {row for t in samples for row in range(t - settings.window + 1, t + settings.horizon + 1)}


@pytest.mark.parametrize(("rows", "window", "horizon"), [(100, 2, 1), (237, 8, 3), (1000, 32, 5), (150, 4, 12)])
def test_no_sample_reads_a_row_of_another_stretch(rows, window, horizon):
    settings = TaskSettings(window=window, horizon=horizon)
    split = split_rows(rows, settings)
    used = [_rows_used(part, settings) for part in (split.train, split.validation, split.test)]
    assert max(used[0]) < min(used[1]) <= max(used[1]) < min(used[2])
    assert min(used[0]) == 0
    assert max(used[2]) == rows - 1


def test_stretches_follow_the_fractions():
    split = split_rows(1000, TaskSettings(train_fraction=0.6, validation_fraction=0.3))
    assert (split.train.end_row, split.validation.first_row, split.test.first_row) == (600, 600, 900)
    assert split.test.samples == 100 - 32 + 1 - 5


def test_a_stretch_without_a_sample_is_refused_by_name():
    with pytest.raises(SettingsError, match=r"validation stretch has 15 rows, but one sample takes task.window 32"):
        split_rows(100, TaskSettings())


def test_fractions_that_leave_nothing_to_test_on_are_refused():
    with pytest.raises(SettingsError, match="leave nothing to test on"):
        split_rows(1000, TaskSettings().model_copy(update={"train_fraction": 0.8, "validation_fraction": 0.2}))
