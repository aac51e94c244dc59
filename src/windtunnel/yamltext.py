"""Plain values as YAML for people and programs: what any YAML reader reads back as it was.

PyYAML writes the same in six times the time, which a sweep would spend on the configuration of every trial.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TAKEN = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that YAML 1.1 reads as something else than text."""
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_SPECIAL = {"Infinity": ".inf", "-Infinity": "-.inf", "NaN": ".nan"}


def render_yaml(value: Mapping[str, Any]) -> str:
    """A mapping of mappings, lists, texts, numbers, booleans and nulls, in block style; texts are quoted."""
    return "".join(f"{line}\n" for line in _render_mapping(value, ""))


def _render_mapping(value: Mapping[str, Any], pad: str) -> Iterator[str]:
    for key, item in value.items():
        yield from _render_item(item, pad, f"{pad}{_render_key(key)}:")


def _render_item(item: Any, pad: str, head: str) -> Iterator[str]:
    if isinstance(item, Mapping) and item:
        yield head
        yield from _render_mapping(item, pad + "  ")
    elif isinstance(item, list | tuple) and item:
        yield head
        for each in item:
            yield from _render_item(each, pad + "  ", f"{pad}  -")
    else:
        yield f"{head} {_render_scalar(item)}"


def _render_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and key.lower() not in _TAKEN else _render_scalar(key)


def _render_scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        # YAML 1.1 takes a number without a point for text.
        return _SPECIAL.get(text, text if "e" not in text or "." in text else text.replace("e", ".0e"))
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) if isinstance(value, str) else text
