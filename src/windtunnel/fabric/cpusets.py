"""Sets of CPUs and NUMA nodes: hexadecimal masks in words of 32 bits, as hwloc, NCCL and sysfs write them. Pure."""

import re
from collections.abc import Sequence

_WORD = re.compile(r"(?:0x)?([0-9a-fA-F]{1,8})")
_BITS = 32


def read_mask(text: str) -> tuple[int, ...] | None:
    """Numbers of a mask such as `0x00000410,0x41041041`; None for an infinite or unreadable one."""
    words = [_WORD.fullmatch(word.strip()) for word in text.split(",")]
    mask = 0
    for word in words:
        if word is None:
            return None
        mask = mask << _BITS | int(word[1], 16)
    return tuple(index for index in range(mask.bit_length()) if mask >> index & 1)


def render_list(numbers: Sequence[int]) -> str:
    """Ranges, as Linux writes lists of CPUs: `0-3,8`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def read_list(text: str) -> tuple[int, ...] | None:
    """Numbers of a list such as `0-3,8`; None where it does not parse."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7}))?", part)
        if match is None:
            return None
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(numbers)
