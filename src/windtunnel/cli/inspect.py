"""`windtunnel ingest inspect FILE`: what a raw file is, what is odd about it, and what would be quarantined."""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from windtunnel.artifacts import to_plain
from windtunnel.errors import SettingsError
from windtunnel.ingest.inspect import inspect_file, render_report
from windtunnel.ingest.plan import SOURCES
from windtunnel.settings.base import parse_settings
from windtunnel.settings.data import TextSettings


def run_inspect(file: str, *, source: str, text: Sequence[str], as_json: bool) -> int:
    """Print the report; 1 when no source reads the file, else 0."""
    if source and source not in SOURCES:
        raise SettingsError(f"--source {source!r}, expected one of {', '.join(SOURCES)}")
    settings = parse_settings(TextSettings, dict(_parse_pair(pair) for pair in text), where="--text")
    report = inspect_file(file, source=source, text=settings)
    print(json.dumps(to_plain(report), indent=1) if as_json else "\n".join(render_report(report)), flush=True)
    return 0 if report.source else 1


def _parse_pair(pair: str) -> tuple[str, Any]:
    key, sign, value = pair.partition("=")
    if not sign:
        raise SettingsError(f"--text {pair!r}, expected KEY=VALUE, such as zone=UTC or columns=[ts,price,size]")
    try:
        return key, yaml.safe_load(value) if value else ""
    except yaml.YAMLError:
        return key, value
