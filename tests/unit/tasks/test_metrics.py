import numpy as np
import pytest

from windtunnel.tasks.metrics import area_under_curve, correlate, score_forecasts


def _score(outputs, targets):
    return score_forecasts(np.array(outputs), np.array(targets), volatility_mean=-4.0, volatility_std=0.5)


def test_a_perfect_forecast_scores_perfectly():
    targets = [[1.0, 0.3], [0.0, -1.0], [1.0, 2.0]]
    scores = _score([[900.0, 0.3], [-900.0, -1.0], [900.0, 2.0]], targets)
    assert scores == {
        "accuracy": 1.0,
        "base_rate": pytest.approx(2 / 3),
        "brier": pytest.approx(0),
        "auc": 1.0,
        "volatility_mse": 0.0,
        "volatility_correlation": pytest.approx(1),
    }


def test_volatility_errors_are_in_log_units():
    scores = _score([[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]])
    assert scores["volatility_mse"] == pytest.approx(0.25)


def test_undefined_metrics_are_left_out():
    scores = _score([[1.0, 0.0], [2.0, 0.0]], [[1.0, 0.5], [1.0, 0.7]])
    assert "auc" not in scores
    assert "volatility_correlation" not in scores
    assert scores["base_rate"] == 1.0


def test_the_area_under_the_curve_counts_pairs_and_ties_half():
    generator = np.random.default_rng(0)
    scores, positive = generator.integers(0, 6, 80).astype(float), generator.random(80) < 0.4
    pairs = [(p > n) + 0.5 * (p == n) for p in scores[positive] for n in scores[~positive]]
    assert area_under_curve(scores, positive) == pytest.approx(np.mean(pairs))


def test_correlation_is_numpys():
    left, right = np.random.default_rng(0).standard_normal((2, 50))
    assert correlate(left, right) == pytest.approx(np.corrcoef(left, right)[0, 1])
