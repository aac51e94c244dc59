import numpy as np
import pytest

from windtunnel.training.evaluate import PARTS, average_parts


def test_parts_of_a_stretch_are_consecutive_and_average_to_the_whole():
    losses = np.arange(10.0 * PARTS)
    parts = average_parts(losses)
    assert parts[:2] == (4.5, 14.5)
    assert np.mean(parts) == pytest.approx(losses.mean())


def test_a_short_stretch_has_a_part_a_sample():
    assert average_parts(np.array([1.0, 2.0])) == (1.0, 2.0)
