"""Texts of times to int64 ns since 1970 UTC, exactly: no float on the way, no library's default unit.

Calendar: days from civil dates as in H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windtunnel.ingest.timeforms import PATTERNS, UNIT_NS, YEAR_NS, TimeForm, parse_offset_s

Ints = NDArray[np.int64]
_DAY_S = 86_400
_NS = 10**9
_NS_DIGITS = {"s": 9, "ms": 6, "us": 3, "ns": 0}
_FIRST_DAY, _LAST_DAY = -106_751, 106_750  # days that int64 nanoseconds since 1970 hold whole
_GOOD, _FORM, _CALENDAR, _RANGE, _FINER, _UNIT, _SKIPPED, _TWICE = range(8)


def parse_times(texts: pl.Series, form: TimeForm) -> tuple[Ints, pl.Series]:
    """ns since 1970 of each text, and why it has none; the reason is null where there is one. Null has no form."""
    known = texts.fill_null("")
    code = np.where(known.str.contains(PATTERNS[form.kind]).to_numpy(), _GOOD, _FORM).astype(np.uint8)
    groups = known.str.extract_groups(PATTERNS[form.kind]).struct
    fields = [groups.field(name) for name in groups.fields]
    reader = _READERS[form.kind]
    time_ns = reader(fields, form, code)
    return time_ns, _explain(known, code, form)


def parse_epochs(values: Ints, form: TimeForm) -> tuple[Ints, NDArray[np.bool_]]:
    """ns since 1970 of whole numbers in the form's unit, and which of them are believable."""
    scale = UNIT_NS[form.unit]
    bound = (2**63 - 1) // scale
    fits = np.abs(values) <= bound if scale > 1 else values > -(2**63)
    time_ns = np.where(fits, values, 0) * np.int64(scale)
    if not form.is_told:
        fits &= np.abs(time_ns) >= YEAR_NS
    return time_ns, fits


def _read_epoch(fields: list[pl.Series], form: TimeForm, code: NDArray[np.uint8]) -> Ints:
    whole, fraction_ns = _read_decimal(fields, form, code)
    time_ns, fits = parse_epochs(whole, form)
    code[(code == _GOOD) & ~fits] = _UNIT
    return time_ns + np.where(fields[0].to_numpy() == "-", -fraction_ns, fraction_ns)


def _read_since_midnight(fields: list[pl.Series], form: TimeForm, code: NDArray[np.uint8]) -> Ints:
    whole, fraction_ns = _read_decimal(fields, form, code)
    scale = UNIT_NS[form.unit]
    code[(code == _GOOD) & ((whole < 0) | (whole >= _DAY_S * _NS // scale))] = _RANGE
    since_ns = np.where(code == _GOOD, whole, 0) * scale + fraction_ns
    return _place(_name_day(form, len(code)), since_ns, form, code)


def _read_clock(fields: list[pl.Series], form: TimeForm, code: NDArray[np.uint8]) -> Ints:
    return _place(_name_day(form, len(code)), _read_time_of_day(fields, code), form, code)


def _read_date(fields: list[pl.Series], form: TimeForm, code: NDArray[np.uint8]) -> Ints:
    places = {"month_first": (2, 0, 1), "day_first": (2, 1, 0)}.get(form.kind, (0, 1, 2))
    year, month, day = (_whole(fields[place]) for place in places)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])[np.clip(month, 1, 12) - 1]
    exists = (month >= 1) & (month <= 12) & (day >= 1) & (day <= lengths + (leap & (month == 2)))
    code[(code == _GOOD) & ~exists] = _CALENDAR
    since_ns = _read_time_of_day(fields[3:7], code)
    days = count_days(year, month, day)
    code[(code == _GOOD) & ((days < _FIRST_DAY) | (days > _LAST_DAY))] = _RANGE
    zones = fields[7]
    if zones.null_count() == len(zones):
        return _place(days, since_ns, form, code)
    offset_s, has_zone = _read_offsets(zones)
    time_ns = np.where(code == _GOOD, days, 0) * (_DAY_S * _NS) + since_ns - offset_s * _NS
    if has_zone.all():
        return time_ns
    naive = np.where(has_zone, _FORM, code).astype(np.uint8)  # what has a zone is no wall clock's
    placed = _place(days, since_ns, form, naive)
    code[~has_zone] = naive[~has_zone]
    return np.where(has_zone, time_ns, placed)


_READERS: dict[str, Callable[[list[pl.Series], TimeForm, NDArray[np.uint8]], Ints]] = {
    "epoch": _read_epoch,
    "since_midnight": _read_since_midnight,
    "clock": _read_clock,
    **dict.fromkeys(("iso", "compact", "month_first", "day_first"), _read_date),
}


def count_days(year: Ints, month: Ints, day: Ints) -> Ints:
    """Days since 1970-01-01 in the Gregorian calendar."""
    years = year - (month <= 2)
    era = years // 400
    of_era = years - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days: Ints = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days


def _read_decimal(fields: list[pl.Series], form: TimeForm, code: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    sign, whole, fraction = fields
    digits = _NS_DIGITS[form.unit]
    code[(code == _GOOD) & whole.cast(pl.Int64, strict=False).is_null().to_numpy()] = _RANGE
    values = _whole(whole)
    return np.where(sign.to_numpy() == "-", -values, values), _read_fraction(fraction, digits, code)


def _read_time_of_day(fields: list[pl.Series], code: NDArray[np.uint8]) -> Ints:
    hour, minute, second = (_whole(field) for field in fields[:3])
    code[(code == _GOOD) & ~((hour < 24) & (minute < 60) & (second < 60))] = _CALENDAR
    return (hour * 3600 + minute * 60 + second) * _NS + _read_fraction(fields[3], 9, code)


def _read_fraction(fraction: pl.Series, digits: int, code: NDArray[np.uint8]) -> Ints:
    """ns of the digits behind the point, of a unit of 10^`digits` ns."""
    if fraction.null_count() == len(fraction):
        return np.zeros(len(fraction), dtype=np.int64)
    known = fraction.fill_null("")
    finer = known.str.slice(digits).str.contains("[1-9]").to_numpy()
    code[(code == _GOOD) & finer] = _FINER
    return _whole(known.str.pad_end(digits, "0").str.slice(0, digits))


def _read_offsets(zones: pl.Series) -> tuple[Ints, NDArray[np.bool_]]:
    parts = zones.str.extract_groups(r"^([+-])(\d{2}):?(\d{2})$").struct
    seconds = _whole(parts.field("2")) * 3600 + _whole(parts.field("3")) * 60
    return np.where(
        parts.field("1").fill_null("").to_numpy() == "-", -seconds, seconds
    ), zones.is_not_null().to_numpy()


def _place(days: Ints, since_ns: Ints, form: TimeForm, code: NDArray[np.uint8]) -> Ints:
    """A wall clock's day and time in the form's zone as ns since 1970 UTC."""
    local_ns = np.where(code == _GOOD, days, 0) * (_DAY_S * _NS) + np.where(code == _GOOD, since_ns, 0)
    offset_s = parse_offset_s(form.zone or "UTC")
    if offset_s is not None:
        return local_ns - offset_s * _NS
    local = pl.Series(local_ns).cast(pl.Datetime("ns"))
    first = local.dt.replace_time_zone(form.zone, ambiguous="earliest", non_existent="null")
    last = local.dt.replace_time_zone(form.zone, ambiguous="latest", non_existent="null")
    first_ns, last_ns = (each.cast(pl.Int64) for each in (first, last))
    code[(code == _GOOD) & first_ns.is_null().to_numpy()] = _SKIPPED
    code[(code == _GOOD) & (first_ns != last_ns).fill_null(False).to_numpy()] = _TWICE
    placed: Ints = first_ns.fill_null(0).to_numpy()
    return placed


def _name_day(form: TimeForm, count: int) -> Ints:
    return np.full(count, np.datetime64(form.day, "D").astype(np.int64))


def _whole(texts: pl.Series) -> Ints:
    """0 for what is no number: its code says so already."""
    return texts.cast(pl.Int64, strict=False).fill_null(0).to_numpy()


def _explain(texts: pl.Series, code: NDArray[np.uint8], form: TimeForm) -> pl.Series:
    if not code.any():
        return pl.Series([None], dtype=pl.String).new_from_index(0, len(code))
    words: dict[int, Any] = {
        _FORM: f"time is not {form.words}, as the file's others: ",
        _CALENDAR: "time does not exist: ",
        _RANGE: "time is outside 1677 to 2262, or of the day: ",
        _FINER: "time is finer than 1 ns: ",
        _UNIT: f"time is not in {form.unit} since 1970, as the file's others: ",
        _SKIPPED: f"time is skipped by the clocks of {form.zone}: ",
        _TWICE: f"time comes twice by the clocks of {form.zone}: ",
    }
    told = pl.Series(code).replace_strict(words, default=None, return_dtype=pl.String)
    return told + texts
