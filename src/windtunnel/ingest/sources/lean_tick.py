"""QuantConnect Lean's tick files of US equities: a zip with one CSV of a symbol's quotes or trades of one day.

No header; milliseconds since midnight in New York, whose date is in the file's name alone; prices x 10000. Other
markets and resolutions have other units, time zones and columns, which their text does not tell: they are refused.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from windtunnel.errors import InputFileError
from windtunnel.ingest.files import RawFile, count_lines, read_ahead, read_blocks
from windtunnel.ingest.rows import join_rejected, strip_bom
from windtunnel.ingest.sources.base import Identity, Reading
from windtunnel.ingest.sources.lean_columns import QUOTE, TRADE, Layout, make_arrays, parse_ticks

TIME_ZONE = ZoneInfo("America/New_York")
_LAYOUTS = {"quote": QUOTE, "trade": TRADE}
_MEMBER = re.compile(r"(?P<date>\d{8})_(?P<symbol>[A-Za-z0-9.$-]+)_(?P<kind>Quote|Trade)_Tick\.csv")
_OTHER_MARKET = re.compile(r"(?:^|/)equity[/_](?!usa[/_])([a-z]+)[/_]tick[/_]", re.IGNORECASE)
_SUPPORTED = (
    "lean_tick reads US equity ticks, whose zip holds one YYYYMMDD_symbol_Quote_Tick.csv or "
    "YYYYMMDD_symbol_Trade_Tick.csv"
)


@dataclass(frozen=True)
class _Member:
    name: str
    day: date
    symbol: str
    layout: Layout


class LeanTick:
    """The source `lean_tick`."""

    def identify(self, raw: RawFile) -> Identity:
        """The instrument is symbol and kind (`aig_quote`); its shard has the date too."""
        member = _find_member(raw)
        instrument = f"{_make_name(member.symbol)}_{member.layout.kind}"
        return Identity(instrument, f"{instrument}_{member.day:%Y%m%d}")

    def read(self, raw: RawFile, *, max_rows: int | None) -> Reading:
        """Prices as float64 USD, sizes as int32 shares; equal time stamps keep the file's order."""
        member = _find_member(raw)
        parts, rejected, rows_in, lines = [], [], 0, 0
        for block in read_ahead(_read_member(raw, member, max_rows)):
            text = block if lines else strip_bom(block)
            ticks = parse_ticks(text, member.layout, first_line=lines + 1)
            parts.append(make_arrays(ticks.frame, member.layout))
            rejected.append(ticks.rejected)
            rows_in += ticks.rows_in
            lines += count_lines(block)
        if rows_in == 0:
            raise InputFileError(f"data file {raw.spec} holds an empty {member.name}: fetch it again")
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        arrays["time_ns"] += _find_midnight_ns(raw, member.day)
        return Reading(member.layout.columns, _sort_by_time(arrays), rows_in, join_rejected(rejected))


def _sort_by_time(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    time_ns = arrays["time_ns"]
    if bool(np.all(time_ns[1:] >= time_ns[:-1])):
        return arrays
    order = np.argsort(time_ns, kind="stable")
    return {name: array[order] for name, array in arrays.items()}


def _make_name(symbol: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", symbol.lower()).strip("_")


def _find_member(raw: RawFile) -> _Member:
    """The one CSV of the zip; raises InputFileError for several, none, or a name that is no US equity tick file."""
    other = _OTHER_MARKET.search(raw.path.as_posix())
    if other is not None:
        raise InputFileError(
            f"data file {raw.spec} is of market {other[1]!r}. {_SUPPORTED}: take it out of data.files"
        )
    names = [info.filename for info in _list_members(raw) if not info.is_dir()]
    if len(names) != 1:
        some = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise InputFileError(
            f"data file {raw.spec} holds {len(names)} files ({some}), expected one. {_SUPPORTED}: "
            "take it out of data.files, or pack each of its files alone"
        )
    match = _MEMBER.fullmatch(names[0])
    if match is None:
        raise InputFileError(f"data file {raw.spec} holds {names[0]!r}. {_SUPPORTED}; other kinds are not read")
    member = _Member(
        names[0], _parse_day(raw, match["date"]), match["symbol"].lower(), _LAYOUTS[match["kind"].lower()]
    )
    _check_zip_name(raw, member)
    return member


def _list_members(raw: RawFile) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(raw.path) as archive:
            return archive.infolist()
    except zipfile.BadZipFile as error:
        raise InputFileError(f"data file {raw.spec} is not a zip ({error}). {_SUPPORTED}: fetch it again") from error
    except OSError as error:
        raise InputFileError(f"data file {raw.spec} cannot be read ({error.strerror}): check {raw.path}") from error


def _parse_day(raw: RawFile, text: str) -> date:
    try:
        return datetime.strptime(text, "%Y%m%d").date()
    except ValueError:
        raise InputFileError(f"data file {raw.spec} is named for the date {text}, which does not exist") from None


def _check_zip_name(raw: RawFile, member: _Member) -> None:
    """A zip that was renamed or packed wrongly contradicts its member, and the date is nowhere else."""
    stem = raw.path.stem.lower()
    dates = re.findall(r"(?<!\d)\d{8}(?!\d)", stem)
    kinds = [kind for kind in _LAYOUTS if re.search(rf"(?:^|_){kind}(?:_|$)", stem)]
    if dates not in ([], [f"{member.day:%Y%m%d}"]) or kinds not in ([], [member.layout.kind]):
        raise InputFileError(
            f"data file {raw.spec} holds {member.name}, which contradicts its own name: which date and kind is it? "
            "Rename the one that is wrong"
        )


def _read_member(raw: RawFile, member: _Member, max_rows: int | None) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(raw.path) as archive, archive.open(member.name) as stream:
            yield from read_blocks(stream, max_rows)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputFileError(f"data file {raw.spec} is a damaged zip ({error}): fetch it again") from error
    except (RuntimeError, NotImplementedError) as error:  # zipfile's words for a password and an unknown method
        raise InputFileError(
            f"data file {raw.spec} cannot be unpacked ({error}): pack it again as a plain zip"
        ) from error
    except OSError as error:
        raise InputFileError(f"data file {raw.spec} cannot be read ({error.strerror}): check {raw.path}") from error


def _find_midnight_ns(raw: RawFile, day: date) -> int:
    """Midnight of `day` in New York as ns since 1970 UTC.

    Refuses a day on which clocks change (always a Sunday, without trading): a wall-clock time of it is not unique.
    """
    midnight = datetime(day.year, day.month, day.day, tzinfo=TIME_ZONE)
    if midnight.utcoffset() != (midnight + timedelta(days=1)).utcoffset():
        raise InputFileError(
            f"data file {raw.spec} is of {day}, when clocks change in New York: no US equity trades then"
        )
    return int(midnight.timestamp()) * 1_000_000_000
