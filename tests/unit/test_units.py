"""Slurm's own syntax for time and memory, and numbers for people."""

import pytest

from windtunnel.errors import SettingsError
from windtunnel.units import (
    format_bytes,
    format_count,
    format_seconds,
    format_time_slurm,
    parse_bytes,
    parse_memory_mib,
    parse_time_min,
)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        (90, 90),
        ("90", 90),
        ("90:30", 91),
        ("1:30:00", 90),
        ("0:00:01", 1),
        ("1-12", 2160),
        ("1-00:00:00", 1440),
        ("1-00:10", 1450),
    ],
)
def test_times_are_read_as_slurm_reads_them(text, minutes):
    assert parse_time_min(text) == minutes


@pytest.mark.parametrize("text", ["", "1h", "-5", "1:2:3:4", "infinite"])
def test_other_times_are_refused_by_name(text):
    with pytest.raises(SettingsError, match="Slurm's syntax"):
        parse_time_min(text)


@pytest.mark.parametrize(
    ("text", "mib"), [(512, 512), ("512M", 512), ("4G", 4096), ("1.5G", 1536), ("1K", 1), ("2GiB", 2048)]
)
def test_memory_is_read_as_slurm_reads_it(text, mib):
    assert parse_memory_mib(text) == mib


def test_other_memory_is_refused():
    with pytest.raises(SettingsError, match="memory '4 gigs'"):
        parse_memory_mib("4 gigs")


@pytest.mark.parametrize("minutes", [1, 59, 60, 1440, 1501])
def test_a_printed_time_reads_back(minutes):
    assert parse_time_min(format_time_slurm(minutes)) == minutes


def test_numbers_are_printed_for_people():
    assert format_bytes(1536) == "1.5 KiB"
    assert format_seconds(0.00085) == "850 us"
    assert format_seconds(185) == "3 min 05 s"
    assert format_count(1_424_012) == "1.42 M"


@pytest.mark.parametrize(
    ("text", "count"), [("512", 512), (64, 64), ("64K", 65536), ("1.5M", 1572864), ("8MiB", 8 << 20)]
)
def test_sizes_are_bytes_in_binary_units(text, count):
    assert parse_bytes(text) == count


def test_a_size_that_is_none_is_refused():
    with pytest.raises(SettingsError, match="'much' is not a number of bytes"):
        parse_bytes("much")
