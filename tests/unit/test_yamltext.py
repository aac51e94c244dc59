import math

import pytest
import yaml

from windtunnel.yamltext import render_yaml


def read_back(value):
    return yaml.safe_load(render_yaml({"value": value}))["value"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -3,
        10**20,
        0.1,
        1e-05,
        1e22,
        -2.5e-300,
        math.inf,
        -math.inf,
        "",
        "no",
        "1e-05",
        "a: b # c",
        "two\nlines\ttab",
        """it's a "b" \\d""",
        "é 東 \U0001f600",
        "\x07\x7f\x85\u2028\ufeff",
        [],
        {},
        [1, [2, [3, "x"]], {"a": [], "b": {}}],
        {"on": {"no": 1, "a b": 2, "1": 3, "": 4, "training.steps": [5, None]}},
    ],
)
def test_every_value_is_read_back_as_it_was(value):
    found = read_back(value)
    assert found == value
    assert type(found) is type(value)


def test_not_a_number_is_read_back_as_such():
    assert math.isnan(read_back(math.nan))


def test_mappings_and_lists_are_blocks():
    text = render_yaml({"trial": {"id": "aa", "choices": {"model": "tcn"}, "rates": [0.1, 0.2]}, "topology": ""})
    assert text.splitlines() == [
        "trial:",
        '  id: "aa"',
        "  choices:",
        '    model: "tcn"',
        "  rates:",
        "    - 0.1",
        "    - 0.2",
        'topology: ""',
    ]
