"""The strictly causal split: a stretch of rows each for training, validation and test, in order of time.

A sample is named by its last input row t: its inputs are rows t - window + 1 to t, its targets rows t + 1
to t + horizon. It belongs to a stretch only when all of these rows lie inside it.
"""

from dataclasses import dataclass

from windtunnel.errors import SettingsError
from windtunnel.settings.task import TaskSettings


@dataclass(frozen=True)
class Stretch:
    """Rows [first_row, end_row) and the samples inside: last input rows [first_sample, end_sample)."""

    name: str
    first_row: int
    end_row: int
    first_sample: int
    end_sample: int

    @property
    def samples(self) -> int:
        return self.end_sample - self.first_sample


@dataclass(frozen=True)
class Split:
    """The three stretches of one table in time."""

    train: Stretch
    validation: Stretch
    test: Stretch


def split_rows(rows: int, settings: TaskSettings) -> Split:
    """Cut `rows` rows in time; raises SettingsError when a stretch is left without a single sample."""
    if settings.train_fraction + settings.validation_fraction >= 1:
        raise SettingsError(
            f"task.train_fraction {settings.train_fraction} and task.validation_fraction "
            f"{settings.validation_fraction} leave nothing to test on: their sum must be below 1"
        )
    first_validation = round(rows * settings.train_fraction)
    first_test = round(rows * (settings.train_fraction + settings.validation_fraction))
    return Split(
        train=_cut("train", 0, first_validation, settings),
        validation=_cut("validation", first_validation, first_test, settings),
        test=_cut("test", first_test, rows, settings),
    )


def _cut(name: str, first_row: int, end_row: int, settings: TaskSettings) -> Stretch:
    first_sample = first_row + settings.window - 1
    end_sample = end_row - settings.horizon
    if end_sample <= first_sample:
        raise SettingsError(
            f"the {name} stretch has {end_row - first_row} rows, but one sample takes task.window {settings.window} "
            f"+ task.horizon {settings.horizon}: use more data, a shorter window or other fractions"
        )
    return Stretch(name, first_row, end_row, first_sample, end_sample)
