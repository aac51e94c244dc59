import math
from dataclasses import replace

import pytest

from fake_trials import make_outcome
from windtunnel.cli.objective import read_objective, read_result
from windtunnel.errors import LayoutError, SettingsError, WindtunnelError
from windtunnel.records.trial import Evaluation, SweepEntry, Verdict
from windtunnel.settings.sweep import SweepSettings

OUTCOME = replace(make_outcome("a"), evaluations=(Evaluation("validation", 9, 0.69, {"accuracy": 0.6}),))
ENTRY = SweepEntry("a", "tcn", {}, Verdict.COMPLETED, "", 1, 1.0, OUTCOME)


def test_one_objective_is_a_number_and_several_are_a_list():
    assert read_result(ENTRY, ("validation_loss",)) == 0.69
    assert read_result(ENTRY, ("validation_accuracy", "samples_per_s")) == [0.6, 1234.0]


def test_what_is_not_known_is_no_number():
    assert math.isnan(read_objective(replace(OUTCOME, samples_per_s=None), "samples_per_s"))


def test_an_unknown_metric_is_refused_with_the_known_ones():
    with pytest.raises(SettingsError, match=r"'validation_f1' is not among .* validation_accuracy, validation_loss"):
        read_objective(OUTCOME, "validation_f1")


def test_a_trial_that_did_not_complete_gives_its_cause_and_no_number():
    with pytest.raises(WindtunnelError, match="tcn: OOM: rank 0 was killed"):
        read_result(replace(ENTRY, verdict=Verdict.OOM, evidence="rank 0 was killed", outcome=None), ("params",))
    with pytest.raises(LayoutError, match="does not divide"):
        read_result(LayoutError("does not divide"), ("params",))


def test_an_objective_may_be_one_name_or_several_but_not_of_the_test_range():
    assert SweepSettings(objective="samples_per_s").objective == ("samples_per_s",)
    for wrong in ("test_loss", "validation_", (), "loss"):
        with pytest.raises(ValueError, match=r"is not known|is empty"):
            SweepSettings(objective=wrong)


def test_an_objective_that_nothing_measured_is_missed_by_a_sampler_alone():
    bare = replace(ENTRY, outcome=replace(OUTCOME, evaluations=()))
    assert read_result(bare, ("validation_loss",), sampled=False) is None
    assert read_result(ENTRY, ("validation_loss",), sampled=False) == 0.69
    with pytest.raises(SettingsError, match="set it to one of"):
        read_result(bare, ("validation_loss",))
    with pytest.raises(WindtunnelError, match="does not divide"):
        read_result(LayoutError("does not divide"), ("params",), sampled=False)
