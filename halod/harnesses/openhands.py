# SPDX-License-Identifier: Apache-2.0
"""OpenHands' `[mcp]`: lists by transport; a remote server is a URL or a table with one and has no name."""

from halod.harnesses.tables import Contents, Slot
from halod.harnesses.values import mapping, sequence

_REMOTE = ("sse_servers", "shttp_servers")


def contents(document: object) -> Contents:
    """Give the entries; one without a name is called by its list and position."""
    table = mapping(document).get("mcp")
    if not isinstance(table, dict):
        return Contents([], wrong=table not in (None, []))
    found = Contents([])
    for kind in (*_REMOTE, "stdio_servers"):
        listed = table.get(kind)
        if not isinstance(listed, list):
            found.wrong = found.wrong or listed not in (None, {})
        for number, item in enumerate(sequence(listed)):
            entry = {"url": item} if kind in _REMOTE and isinstance(item, str) else item
            name = mapping(entry).get("name")
            label = name if isinstance(name, str) and name else f"{kind}[{number}]"
            found.slots.append(Slot(label, entry, f"/mcp/{kind}[]", table))
    return found
