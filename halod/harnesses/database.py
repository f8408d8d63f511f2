# SPDX-License-Identifier: Apache-2.0
"""Servers that Halo and Warp keep in SQLite (harnesses.md 21 and 31), read from bytes in memory (design 3.9).

Columns are selected by name; one that a release does not have is empty. A row whose JSON does not parse costs
that row only.
"""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Final

from halod.harnesses.dialect import Dialect, Place
from halod.harnesses.formats import Malformed, decode
from halod.harnesses.formats.sqlite import columns, open_database, rows
from halod.harnesses.tables import Contents, Slot, contents
from halod.harnesses.values import mapping

_HALO: Final = ("spec_id", "status", "spec_json", "user_config_json")
_WARP: Final = ("templatable_mcp_server",)
_TEMPLATE: Final = Place(
    path="", tables=("/mcpServers", "/mcp_servers", "/servers", "/mcp/servers", "/"), first=True
)
SWITCH: Final = "halod status"
"""The key that carries the row's switch to the entry; no harness writes a key with a blank."""


def read_database(
    table: str, data: bytes | bytearray, log: bytes | bytearray | None, dialect: Dialect
) -> Contents:
    """Give the entries of a database.

    Raises:
        Malformed: not a database, damaged, or without the columns that hold servers.
        halod.harnesses.formats.sqlite.Unsupported: this Python cannot open one in memory.
    """
    connection = open_database(data, log)
    try:
        return _QUERIES[table](connection, dialect)
    finally:
        connection.close()


def _select(
    connection: sqlite3.Connection, table: str, wanted: tuple[str, ...]
) -> Iterator[tuple[object, ...]]:
    """Give the wanted columns of every row; nothing when the table is not there (a database without any)."""
    present = columns(connection, table)
    if not present:
        return
    chosen = ", ".join(f'"{name}"' if name in present else "NULL" for name in wanted)
    yield from rows(connection, f'SELECT {chosen} FROM "{table}" ORDER BY rowid')  # noqa: S608 - names of ours


def _halo(connection: sqlite3.Connection, _dialect: Dialect) -> Contents:
    """Halo: apps of type `mcp`. An uninstalled row is gone; a paused one is switched off."""
    found = Contents([])
    for spec_id, status, spec_json, user_config in _select(connection, "installed_apps", _HALO):
        if status == "uninstalled":
            continue
        spec = _json(spec_json)
        name = spec_id if isinstance(spec_id, str) else ""
        if spec is None:
            found.slots.append(Slot(name, None, "installed_apps", {}))
            continue
        app = mapping(spec)
        if app.get("type") != "mcp" or mapping(app.get("store")).get("install_source") == "builtin":
            continue
        entry = app.get("mcp_server")
        if isinstance(entry, dict):
            env = {**mapping(entry.get("env")), **mapping(_json(user_config))}
            entry = {**entry, "env": env, SWITCH: status != "paused"}
        other = app.get("name")
        label = name or (other if isinstance(other, str) else "")
        found.slots.append(Slot(label, entry, "installed_apps", app))
    return found


def _warp(connection: sqlite3.Connection, dialect: Dialect) -> Contents:
    """Warp: each installation is a template with servers; its `{{variables}}` stay as they are."""
    found = Contents([])
    for (text,) in _select(connection, "mcp_server_installations", _WARP):
        server = mapping(_json(text))
        template = mapping(server.get("template")).get("json")
        document = _json(template) if isinstance(template, str) else template
        name = server.get("name")
        label = name if isinstance(name, str) else ""
        if not isinstance(document, dict):
            found.slots.append(Slot(label, None, "mcp_server_installations", {}))
            continue
        single = any(
            key in document and not isinstance(document[key], dict) for key in ("command", "url", "serverUrl")
        )
        if single:
            found.slots.append(Slot(label, document, "mcp_server_installations", server))
            continue
        inner = contents(document, _TEMPLATE, dialect)
        found.slots += inner.slots
        found.wrong = found.wrong or inner.wrong
    return found


def _json(text: object) -> object:
    """Decode a column's JSON; None when it is none."""
    if not isinstance(text, str):
        return None
    try:
        return decode("json", text.encode("utf-8", "replace"), ("/",))
    except Malformed:
        return None


_QUERIES: Final[dict[str, Callable[[sqlite3.Connection, Dialect], Contents]]] = {
    "installed_apps": _halo,
    "mcp_server_installations": _warp,
}
