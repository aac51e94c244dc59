"""`{key}` in a user's texts: which keys one names, and what it becomes. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w.-]*)\}|[{}]")
_BRACES = {"{{": "{", "}}": "}"}


def list_keys(text: str) -> tuple[str, ...]:
    """The keys that `text` names, in order. Raises ValueError for a brace that belongs to no key."""
    keys = []
    for found in _TOKEN.finditer(text):
        if found[1]:
            keys.append(found[1])
        elif found[0] not in _BRACES:
            raise ValueError(f"{text!r} has a {found[0]!r} that belongs to no {{key}}: write {found[0] * 2!r} for it")
    return tuple(keys)


def fill(text: str, values: Mapping[str, Any]) -> str:
    """`text` with each `{key}` replaced by its value, `{{` and `}}` by single braces."""
    return _TOKEN.sub(lambda found: render_value(values[found[1]]) if found[1] else _BRACES[found[0]], text)


def render_value(value: Any) -> str:
    """A text as it is; anything else as JSON, so that true, null, numbers and lists read back."""
    return value if isinstance(value, str) else json.dumps(value)
