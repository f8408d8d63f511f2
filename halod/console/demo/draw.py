# SPDX-License-Identifier: Apache-2.0
"""Chance that is the same on every machine and release of Python: numbers made of the sha256 of their names."""

import hashlib
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")
_RANGE: Final = 2**48


def number(*names: object) -> float:
    """Give a number from 0 up to, not including, 1."""
    text = "\x1f".join(str(name) for name in ("halod demonstration", *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) / _RANGE


def pick(values: Sequence[T], *names: object) -> T:
    """Give one of the values."""
    return values[int(number(*names) * len(values))]


def weighted(values: Sequence[T], weights: Sequence[float], *names: object) -> T:
    """Give one of the values, each as often as its weight."""
    left = number(*names) * sum(weights)
    for value, weight in zip(values, weights, strict=True):
        left -= weight
        if left < 0:
            return value
    return values[-1]


def between(least: int, most: int, *names: object) -> int:
    """Give a whole number from `least` to `most`."""
    return least + int(number(*names) * (most - least + 1))
