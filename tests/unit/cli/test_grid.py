import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from windtunnel.cli.grid import check_grid, count_values
from windtunnel.errors import SettingsError


def parse(*words):
    return OverridesParser.create().parse_overrides(list(words))


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ("1,2", 2),
        ("choice(a,b,c)", 3),
        ("range(1,6,2)", 3),
        ("range(5,1,-2)", 2),
        ("range(0.0,1.0,0.25)", 4),
        ("range(0)", 0),
        ("range(1,10000000000000000000000)", 10**22 - 1),
        ("shuffle(range(1,1e18))", 10**18 - 1),
    ],
)
def test_values_are_counted_without_making_a_list_of_them(values, count):
    (override,) = parse(f"seed={values}")
    assert count_values(override) == count


@pytest.mark.parametrize("words", [["a=range(1,1e18)"], ["a=range(0,1000)", "b=range(0,1000)"]])
def test_a_grid_that_is_too_large_is_refused_with_its_size(words):
    with pytest.raises(
        SettingsError, match=r"the multirun has .* trials, of a .*; expected at most 100,000: vary less"
    ):
        check_grid(parse(*words))


@pytest.mark.parametrize("word", ["seed=range(0)", "seed=range(3,1)"])
def test_a_grid_without_a_job_is_refused(word):
    with pytest.raises(SettingsError, match="names no value, so the multirun has no job"):
        check_grid(parse("model=tcn,transformer", word))


def test_a_range_without_an_end_and_batches_without_a_job_are_refused():
    with pytest.raises(SettingsError, match="cannot be listed"):
        check_grid(parse("seed=range(1,3,0)"))
    with pytest.raises(SettingsError, match="max_batch_size=0: expected at least 1"):
        check_grid(parse("seed=1,2"), max_batch_size=0)


def test_what_a_sampler_draws_from_is_no_grid():
    check_grid(parse("rate=interval(0,1)", "seed=1,2", "model=tcn"))
