"""Settings refuse what they do not know, in one message."""

from typing import get_args

import pytest

from windtunnel.errors import InputFileError, SettingsError
from windtunnel.ingest.plan import SOURCES
from windtunnel.settings.base import parse_settings, read_settings
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.data import DataSettings
from windtunnel.settings.features import FeatureSettings
from windtunnel.settings.model import ModelSettings
from windtunnel.settings.shapes import ShapeRule
from windtunnel.settings.study import FeaturizeSettings, SpaceSettings
from windtunnel.settings.sweep import ExclusionSettings, SweepSettings
from windtunnel.settings.task import TaskSettings
from windtunnel.settings.training import TrainingSettings


def test_an_unknown_setting_is_named_with_those_that_are_known():
    with pytest.raises(SettingsError, match=r"task: unknown setting 'widnow' \(known here: .*window"):
        parse_settings(TaskSettings, {"widnow": 3}, where="task")


def test_an_unknown_setting_inside_a_group_is_named_whole():
    features = {"recipe": "daily", "reference": "sp500", "window": [5]}
    with pytest.raises(SettingsError, match=r"'features.window' \(known here: .*windows"):
        parse_settings(FeaturizeSettings, {"dataset": "a", "features": features}, where="featurize")


def test_every_wrong_value_is_in_the_one_message():
    with pytest.raises(SettingsError, match=r"'window' = 1: .*'horizon' = 0"):
        parse_settings(TaskSettings, {"window": 1, "horizon": 0}, where="task")


def test_slurm_times_and_memory_become_whole_numbers():
    cluster = ClusterSettings(kind="slurm", partition="gpu", time="1-00:00:00", memory="4G")
    assert (cluster.time, cluster.memory) == (1440, 4096)


def test_a_bad_slurm_time_names_the_setting():
    with pytest.raises(SettingsError, match="'time' = '1h'"):
        parse_settings(ClusterSettings, {"kind": "local", "partition": "local", "time": "1h"}, where="cluster")


def test_a_models_target_is_a_dotted_path():
    assert ModelSettings.model_validate({"name": "m", "_target_": "my_model.Net"}).target == "my_model.Net"
    with pytest.raises(SettingsError, match="_target_"):
        parse_settings(ModelSettings, {"name": "m", "_target_": "Net"}, where="model")


def test_settings_survive_their_own_dump():
    model = ModelSettings.model_validate({"name": "m", "_target_": "my_model.Net", "args": {"width": 3}})
    assert ModelSettings.model_validate(model.model_dump(mode="json")) == model


def test_a_missing_settings_file_is_named(tmp_path):
    with pytest.raises(InputFileError, match="nowhere"):
        read_settings(TaskSettings, tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    ("kind", "plain", "message"),
    [
        (
            TaskSettings,
            {"train_fraction": 0.8, "validation_fraction": 0.25},
            r"^here: task.train_fraction=0.8 and task.validation_fraction=0.25 leave nothing to test on: lower one",
        ),
        (
            FeatureSettings,
            {"recipe": "daily", "reference": "a", "windows": [20, 5], "min_periods": 6},
            r"^here: features.min_periods=6 is more than the shortest of features.windows=\[20, 5\]: lower it to 5",
        ),
        (
            FeatureSettings,
            {"recipe": "daily", "reference": "a", "windows": [5, 5]},
            r"^here: features.windows=\[5, 5\]: name each length once$",
        ),
        (TaskSettings, {"name": "nope"}, "^here: setting 'name' = 'nope': Input should be 'direction_volatility'$"),
        (
            DataSettings,
            {"dataset": "d", "source": "nope", "files": ["a"]},
            "'source' = 'nope': Input should be 'daily_csv', 'lean_tick' or 'delimited'$",
        ),
        (TrainingSettings, {"learning_rate": float("inf")}, "= inf: Input should be a finite number$"),
        (TrainingSettings, {"steps": 10**23}, ": expected at most 9223372036854775807"),
        (ClusterSettings, {"kind": "local", "partition": "p", "time": "0"}, "'time' = '0': Input should be greater"),
        (ClusterSettings, {"kind": "local", "partition": "p", "memory": 0}, "'memory' = 0: Input should be greater"),
    ],
)
def test_what_no_stage_could_use_is_refused_with_the_fix(kind, plain, message):
    with pytest.raises(SettingsError, match=message):
        parse_settings(kind, plain, where="here")


def test_fractions_that_leave_a_test_range_and_a_window_of_min_periods_are_taken():
    assert TaskSettings(train_fraction=0.8, validation_fraction=0.19).validation_fraction == 0.19
    assert FeatureSettings(recipe="daily", reference="a", windows=(5,), min_periods=5).windows == (5,)


def test_the_known_sources_and_tasks_are_those_that_there_are():
    assert set(get_args(DataSettings.model_fields["source"].annotation)) == set(SOURCES)
    assert TaskSettings().name == "direction_volatility"


def test_a_settings_file_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "task.yaml"
    path.write_bytes("window: 3 # caf\u00e9\n".encode("latin-1"))
    with pytest.raises(SettingsError, match=r"task.yaml is not UTF-8 text .*: save it as UTF-8"):
        read_settings(TaskSettings, path)


@pytest.mark.parametrize("kind", [SweepSettings, ExclusionSettings])
def test_no_wait_is_longer_than_a_year(kind):
    waits = [name for name in kind.model_fields if name.endswith(("_s", "hours")) and not name.startswith("budget")]
    assert waits
    for name in waits:
        with pytest.raises(SettingsError, match=rf"{name!r} = 1e\+300: Input should be less than or equal to"):
            parse_settings(kind, {name: 1e300}, where="sweep")


def test_a_time_limit_and_a_price_have_bounds_too():
    place = {"kind": "slurm", "partition": "main"}
    for wrong in ({"time": "366-00:00:00"}, {"cost_per_node_hour": 1e308}, {"max_age_days": 1e9}):
        with pytest.raises(SettingsError, match="less than or equal to"):
            parse_settings(ClusterSettings, {**place, **wrong}, where="cluster")
    with pytest.raises(SettingsError, match="less than or equal to"):
        parse_settings(ShapeRule, {"time": "366-00:00:00"}, where="shape")


def test_repeats_have_a_bound_and_long_lists_are_checked_at_once():
    with pytest.raises(SettingsError, match="'repeats' = 1000000000: Input should be less than or equal to 100000"):
        parse_settings(SpaceSettings, {"repeats": 10**9}, where="space")
    assert len(SpaceSettings(values={"seed": tuple(range(100_000))}).values["seed"]) == 100_000
    with pytest.raises(SettingsError, match=r"names \[1\] twice"):
        parse_settings(SpaceSettings, {"values": {"a.b": [[1], [2], [1]]}}, where="space")
