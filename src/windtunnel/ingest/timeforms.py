"""Which form the times of a file have: found from a sample, never row by row, and refused where it is open.

The units are told by size: the seconds, ms, us and ns of the years 1971 to 2200 do not overlap.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
YEAR_NS = 366 * 86_400 * 10**9
_EPOCH_SPAN_S = (366 * 86_400, 230 * 366 * 86_400)
FORMS = ("epoch", "iso", "compact", "month_first", "day_first", "clock", "since_midnight")

_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?"
_ZONE = r"(?:\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
PATTERNS = {
    "epoch": r"^([+-]?)(\d{1,19})(?:\.(\d+))?$",
    "iso": r"^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ]+" + _CLOCK + ")?" + _ZONE + "$",
    "compact": r"^(\d{4})(\d{2})(\d{2})(?:[T ]?(\d{2}):?(\d{2}):?(\d{2})(?:[.,](\d+))?)?" + _ZONE + "$",
    "month_first": r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?:[T ,]+" + _CLOCK + ")?" + _ZONE + "$",
    "day_first": r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?:[T ,]+" + _CLOCK + ")?" + _ZONE + "$",
    "clock": "^" + _CLOCK + "$",
    "since_midnight": r"^([+-]?)(\d{1,19})(?:\.(\d+))?$",
}
"""Each with the groups that `timestamps` reads; `month_first` and `day_first` match the same text."""
_FIXED = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})")


@dataclass(frozen=True)
class TimeForm:
    """How the times of one file are written."""

    kind: str
    """One of `FORMS`."""
    unit: str = ""
    """Of `epoch` and `since_midnight`: `s`, `ms`, `us` or `ns`."""
    zone: str = ""
    """Of times that name none: an IANA name, `UTC`, or an offset such as `-05:00`; empty where none is needed."""
    day: str = ""
    """Of `clock` and `since_midnight`: YYYY-MM-DD, from the file's name."""
    is_told: bool = False
    """Whether the settings tell the unit, so that times near 1970 are believed."""

    @property
    def words(self) -> str:
        """For people."""
        unit = f" in {self.unit}" if self.unit else ""
        zone = f", zone {self.zone}" if self.zone else ""
        return f"{self.kind}{unit}{zone}{f', of {self.day}' if self.day else ''}"


class UnknownFormError(Exception):
    """No form, or more than one, fits the sample; the message says which and what to set."""


def find_form(sample: pl.Series) -> tuple[str, str]:
    """Form and unit of most texts in `sample`; raises UnknownFormError for none, or when day and month are open."""
    counts = {kind: int(sample.str.contains(PATTERNS[kind]).sum()) for kind in FORMS if kind != "since_midnight"}
    units = count_units(sample)
    counts["epoch"] = max(units.values())
    counts["compact"] = int((sample.str.contains(PATTERNS["compact"]) & _has_month(sample)).sum())
    kind = max(counts, key=lambda item: counts[item])
    if 2 * counts[kind] <= len(sample) or counts[kind] == 0:
        example = sample[0] if len(sample) else ""
        raise UnknownFormError(
            f"has no time of a known form in most rows (first: {example!r}): expected epoch s, ms, us or ns, "
            "YYYY-MM-DD HH:MM:SS, YYYYMMDD, M/D/YYYY, D.M.YYYY or HH:MM:SS; name another column in data.text.time"
        )
    if kind == "epoch":
        return kind, max(units, key=lambda item: units[item])
    return (find_order(sample), "") if kind in ("month_first", "day_first") else (kind, "")


def find_order(sample: pl.Series) -> str:
    """Whether the day or the month is first, where some number tells; dots are day first unless one contradicts."""
    groups = sample.str.extract_groups(PATTERNS["day_first"]).struct
    first, second = (groups.field(str(number)).cast(pl.Int32, strict=False) for number in (1, 2))
    days_first = int(((first > 12) & (second <= 12)).sum())
    months_first = int(((second > 12) & (first <= 12)).sum())
    dotted = int(sample.str.contains(r"^\d{1,2}\.").sum())
    if days_first == months_first == 0 and dotted:
        return "day_first"
    if (days_first > 0) == (months_first > 0):
        told = "some of each" if days_first else "no number above 12"
        raise UnknownFormError(
            f"does not tell whether day or month comes first ({told} in {len(sample)} rows): set "
            "data.text.time_form to day_first or month_first"
        )
    return "day_first" if days_first else "month_first"


def count_units(sample: pl.Series) -> dict[str, int]:
    """How many texts are epochs of each unit, by their size."""
    values = (
        sample.filter(sample.str.contains(PATTERNS["epoch"])).str.extract(r"^[+-]?(\d+)").cast(pl.Int64, strict=False)
    )
    low, high = _EPOCH_SPAN_S
    return {
        unit: int(values.is_between(low * 10**9 // size, high * 10**9 // size - 1).sum())
        for unit, size in UNIT_NS.items()
        if high * 10**9 // size < 2**63
    }


def find_day(name: str) -> str:
    """The one date in a file's name, as YYYY-MM-DD; empty where there is none or more than one."""
    found = re.findall(r"(?<!\d)((?:19|20)\d{2})[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)", name)
    days = {"-".join(parts) for parts in found}
    return days.pop() if len(days) == 1 else ""


def parse_offset_s(zone: str) -> int | None:
    """Seconds east of UTC of a fixed zone; None for one that has a name."""
    if zone in ("UTC", "GMT", "Z"):
        return 0
    match = _FIXED.fullmatch(zone)
    if match is None:
        return None
    return (-1 if match[1] == "-" else 1) * (int(match[2]) * 3600 + int(match[3]) * 60)


def needs_zone(kind: str, sample: pl.Series) -> bool:
    """Whether most times are a wall clock's of a zone that they do not name; a date alone is a name, not a moment."""
    if kind == "epoch":
        return False
    if kind in ("clock", "since_midnight"):
        return True
    with_clock = sample.filter(sample.str.contains(":") | sample.str.contains(r"^\d{8}[T ]?\d{6}"))
    named = int(with_clock.str.contains(r"(?:Z|UTC|GMT|\d[+-]\d{2}:?\d{2})$").sum())
    return named < len(with_clock)


def loses_digits(values_ns: Sequence[int]) -> bool:
    """Whether ns epochs have been through float64, which keeps multiples of 256 of those of our years alone."""
    return len(values_ns) >= 16 and all(value % 256 == 0 for value in values_ns) and any(v % 1000 for v in values_ns)


def _has_month(sample: pl.Series) -> pl.Series:
    return sample.str.contains(r"^(19|20)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
