"""Write docs/settings.md from the settings models, or check that it is current.

usage: python tools/settings_reference.py [--check]
"""

import sys
import types
import typing
from pathlib import Path

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from windtunnel.settings.base import Settings
from windtunnel.settings.study import StudySettings
from windtunnel.units import parse_memory_mib, parse_time_min

TARGET = Path(__file__).parent.parent / "docs" / "settings.md"
HEAD = """# Settings

Every setting of a study, by its group. A study (`conf/study/<name>.yaml`) names the options it picks and only
what it changes; any value can be set on the command line (`training.steps=500`). Unknown names are errors.
This page is written by `make docs` from the settings models.
"""


def render() -> str:
    """The whole page."""
    parts = [HEAD, *_section("study", StudySettings, plain_only=True)]
    for name, field in StudySettings.model_fields.items():
        if _is_group(field):
            parts += _section(name, field.annotation, plain_only=False, lead=field.description)
    return "\n".join(parts) + "\n"


def _section(name: str, model: typing.Any, *, plain_only: bool, lead: str | None = None) -> list[str]:
    rows = _rows(model, plain_only=plain_only)
    title = ["", f"## `{name}`", ""] + ([lead, ""] if lead else [])
    return [*title, "| setting | kind | default | meaning |", "|---|---|---|---|", *rows]


def _rows(model: typing.Any, *, plain_only: bool = False, prefix: str = "") -> list[str]:
    rows: list[str] = []
    for key, field in model.model_fields.items():
        if not _is_group(field):
            rows.append(_row(f"{prefix}{field.alias or key}", field))
        elif not plain_only:
            rows += _rows(field.annotation, prefix=f"{prefix}{key}.")
    return rows


def _row(key: str, field: FieldInfo) -> str:
    default = "required" if field.default is PydanticUndefined else f"`{_plain(field.default)}`"
    meaning = " ".join((field.description or "").split()).replace("|", "\\|")
    bounds = ", ".join(_bound(item) for item in field.metadata if not hasattr(item, "func"))
    kind = _slurm_kind(field) or _kind(field.annotation) + (f", {bounds}" if bounds else "")
    return f"| `{key}` | {kind.replace('|', chr(92) + '|')} | {default} | {meaning} |"


def _bound(item: typing.Any) -> str:
    for name, sign in {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "min_length": "at least"}.items():
        if hasattr(item, name):
            return f"{sign} {getattr(item, name)}"
    return f"like `{item.pattern}`"


def _slurm_kind(field: FieldInfo) -> str | None:
    parsers = {parse_time_min: "time", parse_memory_mib: "memory"}
    return next((parsers[item.func] for item in field.metadata if getattr(item, "func", None) in parsers), None)


def _plain(value: typing.Any) -> str:
    text = {None: "null", True: "true", False: "false"}.get(value) if isinstance(value, bool | None) else None
    return text if text is not None else (list(value).__repr__() if isinstance(value, tuple) else repr(value))


def _kind(annotation: typing.Any) -> str:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in args)
    if origin is types.UnionType:
        return " or ".join(_kind(arg) for arg in args)
    if origin is tuple:
        return f"list of {_kind(args[0])}"
    if origin is dict:
        return f"mapping of {_kind(args[0])} to {_kind(args[1])}"
    return "null" if annotation is type(None) else getattr(annotation, "__name__", str(annotation))


def _is_group(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, Settings)


def main() -> int:
    """Write the page, or with --check say whether it is current."""
    text = render()
    if "--check" not in sys.argv:
        TARGET.write_text(text)
        return 0
    if TARGET.exists() and TARGET.read_text() == text:
        return 0
    print(f"{TARGET.name} is not current: run `make docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
