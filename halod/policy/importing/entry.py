# SPDX-License-Identifier: Apache-2.0
"""One entry of `mcp.servers` as text: YAML to paste below `servers:`, or JSON.

Invariants:

1. What is written reads back as what was meant, by YAML 1.1 and 1.2 alike: a scalar stands without quotes only
   where no reader takes it for anything but that text.
2. `problems` asks the reader of policies itself, so an entry that is printed passes `halo validate`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from halod.policy.load import examine
from halod.policy.model import Entry, Problem

Value = str | Sequence[str] | Mapping[str, str]
Fields = Mapping[str, Value]

MAX_ID: Final = 63
_WIDTH: Final = 110
_INDENT: Final = "    "
"""Below `mcp:` and `servers:`, as in packaging/halos.yaml."""

# Begins with a letter, or is a version of three or more parts: no reader has a number, date or boolean of that form.
_PLAIN: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9._/-]*|[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.-]*|https://[A-Za-z0-9._~/-]+"
)
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def entry_id(name: str) -> str:
    """Make an id of a server's name: its last part in lower case, with what an id cannot hold as `-`."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", name.rpartition("/")[2].lower())
    return plain.lstrip("._-")[:MAX_ID].rstrip("-") or "server"


def to_json(fields: Fields) -> str:
    """Write an entry as a JSON object."""
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def to_yaml(fields: Fields, comments: Sequence[str] = ()) -> str:
    """Write an entry as an item of `servers`, with comment lines above it, escaped where they are not ASCII."""
    lines = [f"{_INDENT}# {''.join(map(_plain, comment))}" for comment in comments]
    lead = "- "
    for key, value in fields.items():
        lines += [
            f"{_INDENT}{lead}{line}" if not at else f"{_INDENT}  {line}"
            for at, line in enumerate(_pair(key, value))
        ]
        lead = "  "
    return "\n".join(lines) + "\n"


def problems(fields: Fields) -> list[Problem]:
    """Give what the reader of policies has against an entry: nothing when it can be pasted."""
    return read(fields)[1]


def read(fields: Fields) -> tuple[tuple[Entry, ...], list[Problem]]:
    """Read an entry as a policy of its own."""
    text = "mcp:\n  servers:\n" + to_yaml(fields)
    policy, _, found = examine(text.encode("utf-8", "surrogatepass"))
    return (policy.entries if policy is not None else ()), found


def _pair(key: str, value: Value) -> list[str]:
    if isinstance(value, str):
        return [f"{key}: {_scalar(value)}"]
    if isinstance(value, Mapping):
        pairs = [f"{name}: {_scalar(text)}" for name, text in value.items()]
        line = f"{key}: {{{', '.join(pairs)}}}"
        return (
            [line]
            if len(line) + len(_INDENT) + 2 <= _WIDTH
            else [f"{key}:", *(f"  {pair}" for pair in pairs)]
        )
    return [f"{key}: [{', '.join(map(_scalar, value))}]"]


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _plain(char: str) -> str:
    return char if " " <= char <= "~" else _escaped(char)


def _escaped(char: str) -> str:
    """Give a character of a double-quoted scalar: with all that is not ASCII escaped, nothing hides in it."""
    if char in {'"', "\\"}:
        return f"\\{char}"
    if " " <= char <= "~":
        return char
    number = ord(char)
    letter, digits = ("x", 2) if number < 0x100 else ("u", 4) if number < 0x10000 else ("U", 8)
    return f"\\{letter}{number:0{digits}x}"
