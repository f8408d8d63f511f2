# SPDX-License-Identifier: Apache-2.0
"""JSON as two readers cannot understand it differently: UTF-8, no duplicate key, no NaN (RFC 8259 section 4).

A document with `"version"` twice is one version to its author and another to whoever pins it.
"""

import json
from typing import Final, NoReturn

from halod.policy.importing.model import ImportRefused
from halod.policy.yamlpos import shown

MAX_BYTES: Final = 1024 * 1024
"""A server.json is a few KiB; the registry takes none near this."""
MAX_DEPTH: Final = 64
"""Levels of nesting: a server.json has 8."""


class _Refused(ValueError):
    """Leaves the decoder with words of ours."""


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out: dict[str, object] = {}
    for key, value in pairs:
        if key in out:
            raise _Refused(f"has the key {shown(key)} twice")
        out[key] = value
    return out


def _constant(_name: str) -> NoReturn:
    raise _Refused("holds NaN or Infinity, which are not JSON")


def parse(data: bytes) -> object:
    """Decode one strict JSON text.

    Raises:
        ImportRefused: it is larger than MAX_BYTES, not UTF-8, not JSON, nested too deep, or has a key twice.
    """
    if len(data) > MAX_BYTES:
        raise ImportRefused("the document is larger than 1 MiB; this is no server.json")
    fault = ""
    try:
        value: object = json.loads(
            data.decode("utf-8"), object_pairs_hook=_pairs, parse_constant=_constant, parse_int=float
        )
    except UnicodeDecodeError:
        fault = "is not UTF-8"
    except _Refused as error:
        fault = str(error)
    except json.JSONDecodeError as error:
        fault = f"is not JSON (line {error.lineno}, column {error.colno})"
    except RecursionError:
        fault = "is nested too deep"
    else:
        if not _deeper(value, MAX_DEPTH):
            return value
        fault = "is nested too deep"
    raise ImportRefused(f"the document {fault}")


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
