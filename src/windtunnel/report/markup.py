"""HTML that cannot forget to escape: plain text is escaped, only what `tag` made passes through."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

VOID = frozenset({"meta", "input", "link"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


@dataclass(frozen=True)
class Column:
    """A table's column; `hint` says how its numbers came about."""

    title: str
    numeric: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Cell:
    """A table's cell: what is shown, what sorts (None goes last), and a tone of the stylesheet."""

    text: str
    value: float | str | None = None
    tone: str = ""


def tag(name: str, /, *children: str, **attributes: str | bool | None) -> Html:
    """An element. `class_` is the attribute `class`, `data_x` is `data-x`; None and False leave one out."""
    opening = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{html.escape(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Html(f"<{name}{opening}>")
    return Html(f"<{name}{opening}>{join(children)}</{name}>")


def join(children: Sequence[str]) -> Html:
    """Several pieces in a row, plain ones escaped."""
    return Html("".join(child if isinstance(child, Html) else html.escape(child) for child in children))


def render_table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    caption: str,
    ident: str | None = None,
    row_keys: Sequence[str] = (),
) -> Html:
    """A table in a scrolling frame; one with an `ident` gets buttons that sort it. `row_keys` are for filters."""
    head = tag("tr", *[_render_head(column, sortable=ident is not None) for column in columns])
    keys = row_keys or [""] * len(rows)
    body = [
        tag("tr", *[_render_cell(*pair) for pair in zip(row, columns, strict=True)], data_key=key or None)
        for row, key in zip(rows, keys, strict=True)
    ]
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", head),
        tag("tbody", *body),
        id=ident,
        class_="sortable" if ident else None,
    )
    return tag("div", table, class_="frame", tabindex="0", role="region", aria_label=caption)


def _render_head(column: Column, *, sortable: bool) -> Html:
    title = tag("button", column.title, type="button") if sortable else column.title
    return tag("th", title, scope="col", class_="number" if column.numeric else None, title=column.hint or None)


def _render_cell(cell: Cell, column: Column) -> Html:
    classes = " ".join(filter(None, ("number" if column.numeric else "", cell.tone)))
    value = cell.value if cell.value is not None or column.numeric else cell.text
    return tag("td", cell.text, class_=classes or None, data_value=None if value is None else str(value))
