# SPDX-License-Identifier: Apache-2.0
"""OpenCode's `mcp`: servers themselves (version 1), or an envelope with `servers` in it (version 2).

Version 2 also takes the entries of version 1, so one file may hold both (harnesses.md 6).
"""

from collections.abc import Mapping

from halod.harnesses.tables import Contents, Slot


def contents(document: object) -> Contents:
    """Give the entries of an OpenCode document."""
    if document is None or document == []:
        return Contents([])
    if not isinstance(document, dict):
        return Contents([], wrong=True)
    table = document.get("mcp")
    if not isinstance(table, dict):
        return Contents([], wrong=table not in (None, []))
    found = Contents([])
    for name, entry in table.items():
        if name == "servers" and not _is_server(entry):
            _envelope(entry, table, found)
        elif name != "timeout" or _is_server(entry):
            found.slots.append(Slot(str(name), entry, "/mcp", document))
    return found


def _envelope(entry: object, table: Mapping[str, object], found: Contents) -> None:
    if isinstance(entry, dict):
        found.slots += (Slot(str(name), value, "/mcp/servers", table) for name, value in entry.items())
    elif entry not in (None, []):
        found.wrong = True


def _is_server(entry: object) -> bool:
    """Say whether a value under `servers` or `timeout` is a server of version 1 that has this name."""
    if not isinstance(entry, dict):
        return False
    switches = (entry.get("type"), entry.get("enabled"))
    halves = (entry.get("command"), entry.get("url"))
    return any(isinstance(switch, (str, bool)) for switch in switches) or any(
        isinstance(half, (str, list)) for half in halves
    )
