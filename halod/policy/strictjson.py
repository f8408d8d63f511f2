# SPDX-License-Identifier: Apache-2.0
"""JSON as two readers cannot understand it differently: UTF-8, no duplicate key, no NaN (RFC 8259 section 4).

A document with `"version"` twice is one version to its author and another to whoever pins or signs it.
"""

import json
from typing import Final, NoReturn

MAX_DEPTH: Final = 64
"""Levels of nesting: a server.json has 8, an envelope 3."""


class NotStrictError(ValueError):
    """A text that is not strict JSON: `fault` says what it is or has, `key` is the one that stands twice."""

    def __init__(self, fault: str, key: str | None = None) -> None:
        super().__init__(fault)
        self.fault = fault
        self.key = key


def decode(data: bytes) -> object:
    """Decode one strict JSON text; a whole number comes out as a float, however long it is.

    Raises:
        NotStrictError: it is not UTF-8, not JSON, nested more than MAX_DEPTH levels, or has a key twice. No text of
            `data` is in its `fault`.
    """
    try:
        value: object = json.loads(
            data.decode("utf-8"), object_pairs_hook=_pairs, parse_constant=_constant, parse_int=float
        )
    except NotStrictError as error:
        refused = error
    except UnicodeDecodeError:
        refused = NotStrictError("is not UTF-8")
    except json.JSONDecodeError as error:
        refused = NotStrictError(f"is not JSON (line {error.lineno}, column {error.colno})")
    except RecursionError:
        refused = NotStrictError("is nested too deep")
    else:
        if not _deeper(value, MAX_DEPTH):
            return value
        refused = NotStrictError("is nested too deep")
    raise refused from None


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out: dict[str, object] = {}
    for key, value in pairs:
        if key in out:
            raise NotStrictError("has a key twice", key)
        out[key] = value
    return out


def _constant(_name: str) -> NoReturn:
    raise NotStrictError("holds NaN or Infinity, which are not JSON")


def _deeper(value: object, levels: int) -> bool:
    """Tell whether `value` has more than `levels` levels, without recursion."""
    layer = [value]
    for _ in range(levels):
        nested: list[object] = []
        for one in layer:
            if isinstance(one, dict):
                nested.extend(one.values())
            elif isinstance(one, list):
                nested.extend(one)
        layer = nested
    return bool(layer)
