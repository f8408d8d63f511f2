# SPDX-License-Identifier: Apache-2.0
"""TOML 1.0 for tables of servers: strings, lists of strings, and inline tables of strings.

Invariant: what is written parses to exactly what was given. Every character that a basic string may not hold
(toml.io 1.0, "String") is escaped, and every key that is not bare is quoted.
"""

import re
from collections.abc import Mapping

Value = str | list[str] | dict[str, str]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED = re.compile('[\\x00-\\x1f\\x7f"\\\\]')
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def tables(name: str, entries: Mapping[str, Mapping[str, Value]]) -> bytes:
    """Write `[name.KEY]` for each entry; without entries the header `[name]`, an empty table."""
    if not entries:
        return f"[{_key(name)}]\n".encode()
    blocks = []
    for key, values in entries.items():
        lines = [f"[{_key(name)}.{_key(key)}]"]
        lines += [f"{_key(field)} = {_value(value)}" for field, value in values.items()]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks).encode()


def _value(value: Value) -> str:
    if isinstance(value, str):
        return string(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(string, value)) + "]"
    return "{ " + ", ".join(f"{_key(key)} = {string(text)}" for key, text in value.items()) + " }"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else string(key)


def string(text: str) -> str:
    """Write a basic string."""
    return '"' + _ESCAPED.sub(lambda found: _SHORT.get(found[0], f"\\u{ord(found[0]):04X}"), text) + '"'
