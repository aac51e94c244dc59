"""The affinity cells behind the codes of an `nvidia-smi topo -m` row, any of which may be blank. Pure.

The tool prints `CPU<tab>NUMA<tab><tab>GPU NUMA ID`. Where its tabs are kept, the place of a cell says its column.
Where a terminal made blanks of them, each choice of blank cells puts the others at places of its own, and the one
that fits is taken; where none or several fit, the cells are unknown.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from windtunnel.fabric.topology import Finding

_TITLES = {
    "cpus": re.compile(r"CPU\s+Affinity"),
    "numa": re.compile(r"NUMA\s+Affinity"),
    "memory_numa": re.compile(r"GPU\s+NUMA\s+ID"),
}
_TAB = 8
_FEWEST_CLIPPED = 4
"""So many CPUs in a list with gaps make it doubtful: nvidia-smi ends such lists at its column's width."""


@dataclass(frozen=True)
class Title:
    """An affinity column, and where its title begins, with tabs as blanks and without."""

    name: str
    at: int
    place: int


def find_titles(header: str) -> tuple[Title, ...]:
    """The affinity columns of a header, in its order."""
    found = [(name, match) for name, pattern in _TITLES.items() if (match := pattern.search(header)) is not None]
    ordered = sorted(found, key=lambda pair: pair[1].start())
    return tuple(Title(name, m.start(), len(header[: m.start()].expandtabs(_TAB))) for name, m in ordered)


def split_affinities(
    line: str, start: int, titles: Sequence[Title], *, number: int, findings: list[Finding]
) -> dict[str, str | None]:
    """Cell by column: a blank one is an empty text, an unknown one None. Codes end at `start`."""
    rest = line[start:]
    words = rest.split()
    names = [title.name for title in titles]
    if len(words) == len(names):
        cells: dict[str, str | None] = dict(zip(names, words, strict=True))
    elif not words:
        cells = dict.fromkeys(names, "")
    else:
        placed = _place_by_tabs(line, start, names) if "\t" in rest else _place_by_blanks(line, start, titles)
        if placed is None:
            text = f"cells {' '.join(words)!r} cannot be told apart: blank ones among {len(names)} columns"
            findings.append(Finding("warning", "unplaced-cells", text, number, start + 1))
        cells = dict.fromkeys(names) if placed is None else {name: placed.get(name, "") for name in names}
    return {name: None if cell is not None and set(cell) == {"?"} else cell for name, cell in cells.items()}


def is_clipped(cpus: str | None) -> bool:
    """Whether a CPU list is surely or likely not whole: it ends inside a range, or lists every other CPU singly."""
    if not cpus:
        return False
    parts = cpus.split(",")
    if not all(part.isdecimal() for part in parts):
        return not all(re.fullmatch(r"\d+(-\d+)?", part) for part in parts) and cpus != "N/A"
    steps = {int(after[:9]) - int(before[:9]) for before, after in pairwise(parts)}
    return len(parts) >= _FEWEST_CLIPPED and len(steps) == 1 and steps != {1}


def _place_by_tabs(line: str, start: int, names: Sequence[str]) -> dict[str, str] | None:
    if not all(cell.strip() for cell in line[:start].strip().split("\t")):
        return None  # aligned by hand, with several tabs between cells: their number says nothing
    cells = [cell.strip() for cell in line[start:].split("\t")[1:]]
    filled = {index: cell for index, cell in enumerate(cells) if cell}
    for layout in (_printed_places(names), list(range(len(names)))):
        if set(filled) <= set(layout):
            return {name: filled[index] for name, index in zip(names, layout, strict=True) if index in filled}
    return None


def _printed_places(names: Sequence[str]) -> list[int]:
    """Which cell each column is: an empty one stands before the GPU's own NUMA node."""
    return [index + (name == "memory_numa") for index, name in enumerate(names)]


def _place_by_blanks(line: str, start: int, titles: Sequence[Title]) -> dict[str, str] | None:
    places = [len(line[: m.start()].expandtabs(_TAB)) for m in re.finditer(r"\S+", line) if m.start() >= start]
    words = line[start:].split()
    by_title = {title.place: title.name for title in titles}
    aligned = all(place in by_title for place in places)
    found = [{by_title[place]: word for place, word in zip(places, words, strict=True)}] if aligned else []
    # The header may have lost the blanks before it; then the row itself says where its affinities begin.
    for first in (titles[0].place, *_next_stop(line[:start])):
        for chosen in combinations([title.name for title in titles], len(words)):
            cells = dict(zip(chosen, words, strict=True))
            if list(_printed_at(cells, titles, first)) == places and cells not in found:
                found.append(cells)
    return found[0] if len(found) == 1 else None


def _next_stop(codes: str) -> list[int]:
    """The tab stop behind the codes, from where the line begins; none where they do not stand at such stops."""
    indent = len(codes) - len(codes.lstrip())
    width = len(codes) - indent
    at_stops = all((m.start() - indent) % _TAB in (0, 1) for m in re.finditer(r"\S+", codes))
    return [indent + (width // _TAB + 1) * _TAB] if at_stops else []


def _printed_at(cells: dict[str, str], titles: Sequence[Title], first: int) -> Iterator[int]:
    """Where these cells would stand, were the others blank and each tab made blanks; the columns begin at `first`."""
    place = first
    for title in titles:
        if title.name == "memory_numa":
            place += _TAB
        if title.name in cells:
            yield place
        place += _TAB * (len(cells.get(title.name, "")) // _TAB + 1)
