import pytest

from windtunnel.errors import SettingsError
from windtunnel.settings.base import parse_settings
from windtunnel.settings.template import fill, list_keys
from windtunnel.settings.workload import BUILT_IN, WorkloadSettings, find_unknown_key

SETTINGS = {"workload": {"parameters": {"lr": 0.1}, "data": False}, "training": {"steps": 3}}


def read(**plain):
    return parse_settings(WorkloadSettings, {"kind": "command", "argv": ["p"], **plain}, where="test")


def test_a_template_names_its_keys_and_takes_their_values():
    text = "--x={a.b-c} {{}} {n} {flag}"
    assert list_keys(text) == ("a.b-c", "n", "flag")
    assert fill(text, {"a.b-c": "it's", "n": 1e-05, "flag": True}) == "--x=it's {} 1e-05 true"


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"argv": []}, "workload.argv is empty"),
        ({"argv": ["p", "{"]}, r"'{' has a '{' that belongs to no {key}: write '{{' for it"),
        ({"argv": ["p", "a}"]}, "write '}}' for it"),
        ({"argv": ["p\0"]}, "NUL character"),
        ({"start": "mpiexec", "mpiexec": []}, "workload.mpiexec is empty"),
        ({"parameters": {"seed": 1}}, "parameter 'seed' has the name of a built-in key"),
        ({"parameters": {"a b": 1}}, "parameter 'a b' is no name"),
        ({"environment": {"WINDTUNNEL_METRICS": "x"}}, "is no name of a variable, or one that Windtunnel sets"),
        ({"start": "torchrun"}, "'ranks', 'mpiexec' or 'once'"),
    ],
)
def test_a_workload_that_cannot_run_is_refused_with_its_fix(plain, message):
    with pytest.raises(SettingsError) as caught:
        read(**plain)
    assert message in str(caught.value)


def test_our_trainer_needs_no_program():
    assert WorkloadSettings().needs_data
    assert not read().needs_data


def test_keys_are_found_in_parameters_then_settings_then_what_every_trial_has():
    known = read(argv=["p", "{lr}", "{training.steps}", "{ranks}"], environment={"A": "{workload.parameters.lr}"})
    assert find_unknown_key(known, SETTINGS) == ""
    assert find_unknown_key(read(argv=["p", "{lr.x}"]), SETTINGS) == "lr.x"
    assert find_unknown_key(read(start="mpiexec", mpiexec=["m", "{host}"]), SETTINGS) == "host"
    assert find_unknown_key(read(argv=["p", "{features}"]), SETTINGS) == "features"


def test_built_in_keys_are_in_the_order_that_their_values_are_given_in():
    assert list(BUILT_IN) == sorted(BUILT_IN)
