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
    line: str, start: int, titles: Sequence[Title], number: int, findings: list[Finding]
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
        placed = _place_by_tabs(rest, names) if "\t" in rest else _place_by_blanks(line, start, titles)
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


def _place_by_tabs(rest: str, names: Sequence[str]) -> dict[str, str] | None:
    cells = [cell.strip() for cell in rest.split("\t")[1:]]
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
    found = []
    if all(place in by_title for place in places):
        found.append({by_title[place]: word for place, word in zip(places, words, strict=True)})
    for chosen in combinations([title.name for title in titles], len(words)):
        cells = dict(zip(chosen, words, strict=True))
        if list(_printed_at(cells, titles)) == places and cells not in found:
            found.append(cells)
    return found[0] if len(found) == 1 else None


def _printed_at(cells: dict[str, str], titles: Sequence[Title]) -> Iterator[int]:
    """Where these cells would stand, were the others blank and every tab made blanks."""
    place = titles[0].place
    for title in titles:
        if title.name == "memory_numa":
            place += _TAB
        if title.name in cells:
            yield place
        place += _TAB * (len(cells.get(title.name, "")) // _TAB + 1)
