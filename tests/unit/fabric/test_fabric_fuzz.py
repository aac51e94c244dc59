"""No text makes a parser crash: whatever is cut or garbled is a finding, or one message that names the file."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_samples import SAMPLES
from windtunnel.errors import InputFileError
from windtunnel.fabric.detect import find_parser, parse_topology
from windtunnel.fabric.drawing import draw_topology
from windtunnel.fabric.facts import collect_facts
from windtunnel.fabric.lint import lint_topology
from windtunnel.fabric.outline import outline_topology
from windtunnel.fabric.svg import render_outline_svg

FUZZ = settings(max_examples=30, deadline=None, database=None, derandomize=True)
PIECES = st.sampled_from(
    ["", " ", "\n", "\t", "[", "]", "<", ">", '"', "=", ",", ".", "-", "0", "9" * 25, "é", "\x1b[4m"]
)


@st.composite
def damage(draw, text):
    """The text with up to three pieces taken out, put in or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 1, 3, 40, len(text)])))
        text = text[:start] + draw(PIECES) + text[end:]
    return text


def use_everywhere(topology):
    """All that is done with what a parser gives."""
    json.dumps(collect_facts(topology), allow_nan=False)
    lint_topology(topology, topology.hosts)
    assert draw_topology(topology)
    render_outline_svg(outline_topology(topology), "a drawing")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_garbled_file_never_crashes(name):
    text, parser = SAMPLES[name], find_parser(SAMPLES[name], name)
    assert parser is not None

    @FUZZ
    @given(damage(text))
    def hold(garbled):
        use_everywhere(parser(garbled))
        with contextlib.suppress(InputFileError):
            use_everywhere(parse_topology(garbled, name))

    hold()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_cut_anywhere_never_crashes(name):
    text, parser = SAMPLES[name], find_parser(SAMPLES[name], name)
    assert parser is not None
    for end in range(0, len(text), max(1, len(text) // 30)):
        use_everywhere(parser(text[:end]))


@FUZZ
@given(st.text(max_size=200))
def test_any_text_is_of_a_known_kind_or_refused(text):
    with contextlib.suppress(InputFileError):
        use_everywhere(parse_topology(text, "anything"))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_whole_sample_is_recognised_and_has_no_errors(name):
    topology = parse_topology(SAMPLES[name])
    assert not topology.errors
    use_everywhere(topology)
