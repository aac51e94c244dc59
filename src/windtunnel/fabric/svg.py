"""Outlines as SVG, for a page: plain shapes and text in the page's own colours. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from windtunnel.fabric.outline import Branch, count_lines, walk

_LINE_PX = 20
_INDENT_PX = 22
_CHARACTER_PX = 7.2
"""Width of a character of the font below, at 12 px; a little more than most fonts need."""
_MOST_LINES = 120


def render_outline_svg(branches: Sequence[Branch], title: str, *, most_lines: int = _MOST_LINES) -> str:
    """An SVG element whose text a screen reader can read; longer lists of switches are cut, and the cut is said."""
    shown = shorten(branches, most_lines)
    lines = list(walk(shown))
    width = max((_width_of(depth, branch) for depth, branch in lines), default=0)
    body = [*_render_strokes([depth for depth, _ in lines])]
    body += [_render_line(row, depth, branch) for row, (depth, branch) in enumerate(lines)]
    size = f'width="{width}" height="{len(lines) * _LINE_PX}" viewBox="0 0 {width} {len(lines) * _LINE_PX}"'
    style = 'font-family="monospace" font-size="12" fill="currentColor"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} {style}><title>{escape(title)}</title>'
    return "\n".join([head, *body, "</svg>"])


def shorten(branches: Sequence[Branch], most_lines: int) -> tuple[Branch, ...]:
    """The outline with its longest lists cut until it has so few lines; where they do not do, the top is cut too."""
    shown = tuple(branches)
    keep = max((len(branch.below) for _, branch in walk(shown)), default=0)
    while count_lines(shown) > most_lines and keep > 1:
        keep //= 2
        shown = tuple(_cut(branch, keep) for branch in branches)
    if count_lines(shown) > most_lines:
        top = max(1, most_lines // max(1, count_lines(shown[:1])))
        shown = (*shown[:top], *([Branch(f"… {len(shown) - top} more")] if len(shown) > top else []))
    return shown


def _cut(branch: Branch, keep: int) -> Branch:
    below = tuple(_cut(child, keep) for child in branch.below[:keep])
    left = len(branch.below) - keep
    return replace(branch, below=(*below, Branch(f"… {left} more")) if left > 0 else below)


def _width_of(depth: int, branch: Branch) -> int:
    return round(depth * _INDENT_PX + (len(branch.label) + len(branch.note) + 4) * _CHARACTER_PX)


def _render_line(row: int, depth: int, branch: Branch) -> str:
    x, y = depth * _INDENT_PX + 4, row * _LINE_PX + 14
    note = f'<tspan dx="8" opacity="0.7">{escape(branch.note)}</tspan>' if branch.note else ""
    return f'<text x="{x}" y="{y}"><tspan font-weight="bold">{escape(branch.label)}</tspan>{note}</text>'


def _render_strokes(depths: Sequence[int]) -> list[str]:
    """From each line to the one it stands below."""
    strokes = []
    parent_rows: dict[int, int] = {}
    for row, depth in enumerate(depths):
        parent_rows[depth] = row
        if depth:
            x, y = (depth - 1) * _INDENT_PX + 8, row * _LINE_PX + 10
            top = parent_rows[depth - 1] * _LINE_PX + 18
            strokes.append(
                f'<path d="M{x} {top}V{y}H{x + _INDENT_PX - 6}" fill="none" stroke="currentColor" opacity="0.4"/>'
            )
    return strokes
