"""QuantConnect Lean's tick files of US equities: a zip with one CSV of a symbol's quotes or trades of one day.

No header; milliseconds since midnight in New York, whose date is in the file's name alone; prices x 10000. Other
markets and resolutions have other units, time zones and columns, which their text does not tell: they are refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from windtunnel.errors import InputFileError
from windtunnel.ingest.files import RawFile, read_ahead
from windtunnel.ingest.pieces import read_run
from windtunnel.ingest.rows import make_name, strip_bom
from windtunnel.ingest.sources.base import Batch, Part, Run, count_pieces
from windtunnel.ingest.sources.lean_columns import QUOTE, TRADE, Layout, make_frame, parse_ticks
from windtunnel.ingest.unpack import Member, list_members
from windtunnel.settings.data import DataSettings

TIME_ZONE = ZoneInfo("America/New_York")
_LAYOUTS = {"quote": QUOTE, "trade": TRADE}
_MEMBER = re.compile(r"(?P<date>\d{8})_(?P<symbol>[A-Za-z0-9.$-]+)_(?P<kind>Quote|Trade)_Tick\.csv")
_OTHER_MARKET = re.compile(r"(?:^|/)equity[/_](?!usa[/_])([a-z]+)[/_]tick[/_]", re.IGNORECASE)
_SUPPORTED = (
    "lean_tick reads US equity ticks, whose zip holds one YYYYMMDD_symbol_Quote_Tick.csv or "
    "YYYYMMDD_symbol_Trade_Tick.csv"
)


@dataclass(frozen=True)
class _Tick:
    member: Member
    day: date
    symbol: str
    layout: Layout


class LeanTick:
    """The source `lean_tick`."""

    def __init__(self, settings: DataSettings) -> None:
        self._piece_bytes = settings.shard_text

    def identify(self, raw: RawFile) -> tuple[Part, ...]:
        """The instrument is symbol and kind (`aig_quote`); its shard has the date too."""
        tick = _find_tick(raw)
        instrument = f"{make_name(tick.symbol)}_{tick.layout.kind}"
        stem = f"{instrument}_{tick.day:%Y%m%d}"
        pieces = count_pieces(tick.member, self._piece_bytes)
        return (Part(instrument, stem, tick.member, pieces, tick.layout.columns, detail=tick),)

    def read(self, raw: RawFile, part: Part, run: Run) -> Iterator[Batch]:
        """Prices as float64 USD, sizes as int32 shares."""
        tick: _Tick = part.detail
        midnight_ns = _find_midnight_ns(raw, tick.day)
        for block in read_ahead(read_run(raw, part.member, run)):
            text = strip_bom(block.text) if block.is_first else block.text
            ticks = parse_ticks(text, tick.layout, first_line=block.first_line)
            frame = make_frame(ticks.frame, tick.layout, midnight_ns=midnight_ns)
            yield Batch(frame, ticks.rows_in, ticks.rejected, block.lines, block.piece)


def _find_tick(raw: RawFile) -> _Tick:
    """The one CSV of the zip; raises InputFileError for several, none, or a name that is no US equity tick file."""
    other = _OTHER_MARKET.search(raw.path.as_posix())
    if other is not None:
        raise InputFileError(
            f"data file {raw.spec} is of market {other[1]!r}. {_SUPPORTED}: take it out of data.files"
        )
    members = list_members(raw)
    names = [member.name for member in members]
    if members and members[0].packing != "zip":
        raise InputFileError(f"data file {raw.spec} is no zip. {_SUPPORTED}: take it out of data.files")
    if len(names) != 1:
        some = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise InputFileError(
            f"data file {raw.spec} holds {len(names)} files ({some}), expected one. {_SUPPORTED}: "
            "take it out of data.files, or pack each of its files alone"
        )
    match = _MEMBER.fullmatch(names[0])
    if match is None:
        raise InputFileError(f"data file {raw.spec} holds {names[0]!r}. {_SUPPORTED}; other kinds are not read")
    tick = _Tick(members[0], _parse_day(raw, match["date"]), match["symbol"].lower(), _LAYOUTS[match["kind"].lower()])
    _check_zip_name(raw, tick)
    return tick


def _parse_day(raw: RawFile, text: str) -> date:
    try:
        return datetime.strptime(text, "%Y%m%d").date()
    except ValueError:
        raise InputFileError(f"data file {raw.spec} is named for the date {text}, which does not exist") from None


def _check_zip_name(raw: RawFile, tick: _Tick) -> None:
    """A zip that was renamed or packed wrongly contradicts its member, and the date is nowhere else."""
    stem = raw.path.stem.lower()
    dates = re.findall(r"(?<!\d)\d{8}(?!\d)", stem)
    kinds = [kind for kind in _LAYOUTS if re.search(rf"(?:^|_){kind}(?:_|$)", stem)]
    if dates not in ([], [f"{tick.day:%Y%m%d}"]) or kinds not in ([], [tick.layout.kind]):
        raise InputFileError(
            f"data file {raw.spec} holds {tick.member.name}, which contradicts its own name: which date and kind is "
            "it? Rename the one that is wrong"
        )


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
