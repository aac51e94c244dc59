"""Hydra's messages as ours: one line, with the value, what was expected, and the fix. Pure."""

import re
from collections.abc import Sequence
from typing import Any

from windtunnel.settings.study import StudySettings

NO_OPTION = "Config group override must be"
"""How Hydra's ValueError begins, which is none of its own errors."""
_NO_NAME = re.compile(r"[^.=]+=(null|true|false|[-+.\d].*)", re.IGNORECASE)
_UNREADABLE = "LexerNoViableAltException"


def explain_hydra(message: str, overrides: Sequence[str]) -> str:
    """Hydra's message in one line, with the names that are known where an override's is not."""
    if message.startswith(NO_OPTION):
        wrong = ", ".join(word for word in overrides if _NO_NAME.fullmatch(word)) or "an override"
        return f"{wrong}: a group takes the name of one of its options, or a value for one setting: GROUP.NAME=VALUE"
    if message.startswith(_UNREADABLE):
        strange = [word for word in overrides if not word.isascii()]
        if any(word.startswith("study=") for word in strange):
            return f"{strange[0]}: the name of a study has only the letters a to z, digits and _"
        if strange:
            return f"{strange[0]}: put a value with other characters than ASCII's into quotes: {_quote(strange[0])}"
    lines = [line.strip() for line in message.partition("Config search path:")[0].splitlines() if line.strip()]
    option = re.search(r"Could not find '([^']+)/([^']+)'\s+Available options in '[^']+':\s+(.*)", message, re.DOTALL)
    if option is not None:
        known = ", ".join(option[3].partition("Config search path:")[0].split())
        return f"unknown option {option[2]!r} of group {option[1]!r} (known: {known})"
    unknown = re.search(r"Could not override '([^']+)'", message)
    if unknown is None:
        return " ".join(lines) + (f" (overrides: {' '.join(overrides)})" if overrides else "")
    path = unknown[1].split("/")[0].split(".")
    kind: Any = StudySettings
    for depth, part in enumerate(path):
        fields = getattr(kind, "model_fields", {})
        if part not in fields:
            inside = ".".join(path[:depth]) or "a study"
            return f"unknown setting {unknown[1]!r} (known in {inside}: {', '.join(sorted(fields)) or 'none'})"
        kind = fields[part].annotation
    return " ".join(lines)


def _quote(override: str) -> str:
    key, _, value = override.partition("=")
    return f"\"{key}='{value}'\""
