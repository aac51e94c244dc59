"""Plain values as YAML for people and programs: what any YAML reader reads back as it was.

PyYAML writes the same in five times the time, which a sweep would spend on the configuration of every trial.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TAKEN = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that YAML 1.1 reads as something else than text."""
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_WORDS = {None: "null", True: "true", False: "false"}
_SPECIAL = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}


def render_yaml(value: Mapping[str, Any]) -> str:
    """A mapping of mappings, lists, texts, numbers, booleans and nulls, in block style; texts are quoted."""
    lines: list[str] = []
    _add_mapping(lines, value, "")
    lines.append("")
    return "\n".join(lines)


def _add_mapping(lines: list[str], value: Mapping[str, Any], pad: str) -> None:
    for key, item in value.items():
        _add_item(lines, item, pad, f"{pad}{_render_key(key)}:")


def _add_item(lines: list[str], item: Any, pad: str, head: str) -> None:
    if isinstance(item, dict) and item:
        lines.append(head)
        _add_mapping(lines, item, pad + "  ")
    elif isinstance(item, list) and item:
        lines.append(head)
        for each in item:
            _add_item(lines, each, pad + "  ", f"{pad}  -")
    else:
        lines.append(f"{head} {_render_scalar(item)}")


@lru_cache(4096)
def _render_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and key.lower() not in _TAKEN else _render_text(key)


def _render_scalar(value: Any) -> str:
    if isinstance(value, str):
        return _render_text(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, float):
        text = repr(value)
        # YAML 1.1 takes a number without a point for text.
        return _SPECIAL.get(text, text if "e" not in text or "." in text else text.replace("e", ".0e"))
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    assert isinstance(value, int), f"{type(value).__name__} is no plain value"
    return str(value)


def _render_text(value: str) -> str:
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", encode_basestring(value))
