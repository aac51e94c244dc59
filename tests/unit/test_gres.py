import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.gres import count_gpus, count_whole_gpus, parse_gres


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu", 1),
        ("gpu:4", 4),
        ("gpu:(null):8(IDX:0-7)", 8),
        ("gpu:a100:4(S:0-3),gpu:a40:2(S:4-5)", 6),
        ("gpu:h100:0(IDX:N/A)", 0),
        ("gres/gpu=4,gres/gpu:a100=4", 4),
        ("cpu=64,mem=500G,gres/gpu:a100=4", 4),
        ("gres/gpumem:10G", 0),
        ("gpu:1g.20gb", 1),
        ("gpu:a100:no_consume:2", 2),
        ("(null)", 0),
        ("", 0),
    ],
)
def test_gpus_are_counted_once(text, gpus):
    assert count_gpus(text) == gpus


def test_notes_do_not_part_entries():
    first, second = parse_gres("gpu:h100:3(IDX:0-1,3),shard:h100:5(2/8,3/8)").entries
    assert (first.indexes, first.sockets, first.count) == ("0-1,3", None, 3)
    assert (second.name, second.usage, second.count) == ("shard", "2/8,3/8", 5)


def test_counts_may_have_a_suffix():
    assert parse_gres("bandwidth:lustre:no_consume:4K").count("bandwidth") == 4096
    assert parse_gres("gpu:4").count("shard") is None


def test_mig_profiles_are_no_models():
    found = parse_gres("gpu:1g.10gb:2,gpu:a100:4,gpu:3g.40gb+me:1")
    assert found.mig == {"1g.10gb": 2, "3g.40gb+me": 1}
    assert found.types == {"a100": 4}


@pytest.mark.parametrize(
    ("mig", "whole"),
    [
        ({"3g.40gb": 8, "2g.20gb": 8, "1g.10gb": 16}, 8),
        ({"1g.10gb": 7}, 1),
        ({"1g.6gb": 8}, 2),
        ({"1g.10gb": 2, "2g.20gb": 2}, None),
        ({"3g.40gb": 4, "2g.20gb": 1}, None),
        ({"1g.24gb": 28}, None),
        ({}, None),
    ],
)
def test_gpus_behind_mig_devices_are_counted_only_where_these_fill_them(mig, whole):
    assert count_whole_gpus(mig) == whole


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(st.text(alphabet="gpu:a10(S-,)/=KIDX. no_consume", max_size=40))
def test_any_string_is_read(text):
    assert parse_gres(text).gpus >= 0
