"""A folder of files with an INDEX.csv of what each says, held against what is understood here.

Columns of the index: `file`, `expected` (JSON: facts by key, as `topology facts` prints them), and `fidelity`, where
the version of the Slurm that printed the file may stand. A line of Gres strings may carry its own facts behind a tab.
"""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windtunnel.errors import InputFileError
from windtunnel.fabric.detect import parse_topology
from windtunnel.fabric.facts import collect_facts, list_differences

INDEX = "INDEX.csv"
_SLURM = re.compile(r"\(Slurm (\d+\.\d+\.\d+)\)")
_REMARK = "note"
"""A key of expectations that is for people."""


@dataclass(frozen=True)
class Entry:
    """A row of the index."""

    file: str
    expected: dict[str, Any]
    version: str | None
    """Of the Slurm that printed the file."""


@dataclass(frozen=True)
class Checked:
    """A file held against its row: no differences where all expected facts are right."""

    file: str
    differences: tuple[str, ...]


def check_corpus(folder: Path) -> tuple[Checked, ...]:
    """Every file of the index; raises InputFileError where the index is absent or does not parse."""
    return tuple(check_entry(folder, entry) for entry in read_index(folder))


def read_index(folder: Path) -> tuple[Entry, ...]:
    """Rows of a folder's index."""
    path = folder / INDEX
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return tuple(_read_rows(file, path))
    except FileNotFoundError as error:
        raise InputFileError(f"{path} does not exist: a corpus is files beside an {INDEX}") from error


def find_entry(path: Path) -> Entry | None:
    """What an index beside a file says of it; None where there is none."""
    if not (path.parent / INDEX).is_file():
        return None
    return next((entry for entry in read_index(path.parent) if entry.file == path.name), None)


def read_text(path: Path) -> str:
    """A file's text, bytes that are no UTF-8 replaced; raises InputFileError where it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from error


def check_entry(folder: Path, entry: Entry) -> Checked:
    """One file against its expectations."""
    try:
        text = read_text(folder / entry.file)
        facts = collect_facts(parse_topology(text, entry.file), version=entry.version)
    except InputFileError as error:
        return Checked(entry.file, (str(error),))
    differences = [*list_differences(entry.expected, facts), *_check_lines(text, facts)]
    return Checked(entry.file, tuple(differences))


def _read_rows(file: Any, path: Path) -> Iterator[Entry]:
    reader = csv.DictReader(file)
    lacking = {"file", "expected"} - set(reader.fieldnames or ())
    if lacking:
        raise InputFileError(f"{path} has no column {', '.join(sorted(lacking))}")
    for row in reader:
        try:
            expected = json.loads(row["expected"])
        except (json.JSONDecodeError, TypeError) as error:
            raise InputFileError(f"{path}, line {reader.line_num}: `expected` is no JSON: {error}") from error
        found = _SLURM.search(row.get("fidelity") or "")
        yield Entry(row["file"], expected, found[1] if found else None)


def _check_lines(text: str, facts: dict[str, Any]) -> Iterator[str]:
    if facts["kind"] != "gres":
        return
    lines = [line.split("\t", 1) for line in text.splitlines() if line.strip()]
    for (string, *noted), got in zip(lines, facts["gres"], strict=True):
        if noted:
            expected = json.loads(noted[0])
            expected.pop(_REMARK, None)
            yield from (f"{string}: {difference}" for difference in list_differences(expected, got))
