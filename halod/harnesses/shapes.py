# SPDX-License-Identifier: Apache-2.0
"""Entries that are spelled unlike all others, brought into the common form before `entries` reads them.

Each function takes one entry and gives the entry in common form, or None for what the harness does not treat
as a server of the user's: that is neither a definition nor malformed (design 4). None of them changes its
argument.
"""

from collections.abc import Callable, Mapping
from typing import Final

Entry = Mapping[str, object]

# The key under which code that stands in the entry itself is handed on; no harness has a key with a blank.
INLINE: Final = "inline code"

_GOOSE_OWN: Final = frozenset({"builtin", "platform", "frontend"})
_REMOTE: Final = frozenset({"sse", "streamable-http", "http"})


def _plain(entry: Entry) -> Entry | None:
    return entry


def _zed(entry: Entry) -> Entry | None:
    """Zed: the older `command: {path, args, env}`; settings of a server that an extension brings are none."""
    command = entry.get("command")
    if isinstance(command, dict):
        return {
            **entry,
            "command": command.get("path"),
            "args": command.get("args"),
            "env": command.get("env", entry.get("env")),
        }
    extension = "settings" in entry or entry.get("source") == "extension"
    switch = entry and set(entry) <= {"enabled", "remote", "source", "settings"}
    if not command and not entry.get("url") and (extension or switch):
        return None
    return entry


def _goose(entry: Entry) -> Entry | None:
    """Goose: built-in kinds are Goose's own; `inline_python` is code that stands in the file."""
    kind = entry.get("type")
    if isinstance(kind, str) and kind in _GOOSE_OWN:
        return None
    if kind == "inline_python":
        return {
            **entry,
            "cmd": entry.get("code"),
            "args": entry.get("dependencies"),
            INLINE: True,
            "type": "stdio",
        }
    return entry


def _cline(entry: Entry) -> Entry | None:
    """Cline: `transport: {type, command, url, ...}` beside the switches."""
    transport = entry.get("transport")
    return {**entry, **transport} if isinstance(transport, dict) else entry


def _halo(entry: Entry) -> Entry | None:
    """Halo: `command` is the URL where `transport` is a remote one."""
    kind = entry.get("transport")
    if isinstance(kind, str) and kind in _REMOTE:
        return {**entry, "url": entry.get("command"), "command": None}
    return entry


SHAPES: Final[dict[str, Callable[[Entry], Entry | None]]] = {
    "plain": _plain,
    "zed": _zed,
    "goose": _goose,
    "cline": _cline,
    "halo": _halo,
}
