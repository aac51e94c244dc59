"""A seeded permutation of 0 to n - 1 that is computed and not stored: any place of it costs the same, whatever n is.

A Feistel network whose two halves are numbers below a and b, with a x b just above n: each round adds a hash of one
half to the other, which can be undone, so the whole is a bijection. What falls above n goes through it again
(cycle walking), which is rare, since a x b exceeds n by less than a.
"""

from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 8
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


def permute(places: NDArray[np.int64], n: int, *, key: tuple[int, ...]) -> NDArray[np.int64]:
    """Where each of `places` (from 0 to n - 1) goes; another permutation for every `key` of numbers not below 0."""
    assert n < 1 << 62, f"{n} items are too many"
    if len(places) == 0:
        return places.astype(np.int64)
    a, b = _split(n)
    keys = _round_keys(key)
    found = _encrypt(places.astype(np.uint64), a, b, keys)
    while (outside := np.flatnonzero(found >= n)).size:
        found[outside] = _encrypt(found[outside], a, b, keys)
    return found.view(np.int64)


def _split(n: int) -> tuple[int, int]:
    a = isqrt(max(n - 1, 0)) + 1
    return a, -(-n // a) if n else 1


@lru_cache(maxsize=64)
def _round_keys(key: tuple[int, ...]) -> NDArray[np.uint64]:
    return np.random.SeedSequence(key).generate_state(_ROUNDS, np.uint64).astype(np.uint64, copy=False)


def _encrypt(x: NDArray[np.uint64], a: int, b: int, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    left, right = np.divmod(x, np.uint64(b))
    for turn, key in enumerate(keys):
        if turn % 2:
            right = _add(right, _hash(left, key), b)
        else:
            left = _add(left, _hash(right, key), a)
    return left * np.uint64(b) + right


def _hash(half: NDArray[np.uint64], key: np.uint64) -> NDArray[np.uint64]:
    """32 mixed bits for each number."""
    mixed = (half + key) * _ODD
    mixed ^= mixed >> _HALF
    mixed *= _MIX
    mixed >>= _HALF
    return mixed


def _add(half: NDArray[np.uint64], bits: NDArray[np.uint64], below: int) -> NDArray[np.uint64]:
    # 32 bits scaled to 0 .. below - 1 by a multiplication, where a remainder would cost a division.
    bits *= np.uint64(below)
    bits >>= _HALF
    bits += half
    bits -= (bits >= below).view(np.uint8) * np.uint64(below)
    return bits
