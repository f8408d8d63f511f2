# SPDX-License-Identifier: Apache-2.0
"""Reading state files whose shape nobody promises: what is not of the expected type is empty."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_NONE: Final[Mapping[str, Any]] = {}


def mapping(value: object) -> Mapping[str, Any]:
    """Give a mapping, empty when the value is none."""
    return value if isinstance(value, dict) else _NONE


def sequence(value: object) -> Sequence[Any]:
    """Give a list, empty when the value is none."""
    return value if isinstance(value, list) else ()


def texts(value: object) -> list[str]:
    """Give the strings of a list."""
    return [item for item in sequence(value) if isinstance(item, str)]
