"""Records of `Key=value` pairs, as scontrol prints them: where each begins, and its fields. Pure."""

import re
from collections.abc import Iterator

_FIELD = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=")


def find_records(text: str, *first_keys: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Offset and fields of each record; a record begins at one of `first_keys`, wherever its line breaks are."""
    start = re.compile(rf"(?:^|(?<=\s))(?={'|'.join(f'{key}=' for key in first_keys)})")
    offset = 0
    for chunk in start.split(text):
        fields = split_fields(chunk)
        if fields.keys() & set(first_keys):
            yield offset, fields
        offset += len(chunk)


def split_fields(chunk: str) -> dict[str, str]:
    """`Key=value` pairs; a value may hold spaces, and the first of two equal keys counts."""
    matches = list(_FIELD.finditer(chunk))
    ends = [*(match.start() for match in matches), len(chunk)][1:]
    fields: dict[str, str] = {}
    for match, end in zip(matches, ends, strict=True):
        fields.setdefault(match[1], chunk[match.end() : end].strip())
    return fields
