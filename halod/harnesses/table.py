# SPDX-License-Identifier: Apache-2.0
"""Where each harness keeps servers: the table as numbered locations, and how a location is shown.

Invariants:

1. `LOCATIONS[n]` is location number n everywhere: in a worker's answer, in the watcher's byte, in a status.
   Supervisor, agent and workers are one process image, so the numbers need to hold for one release only.
2. A location's path begins with `~/` and holds no wildcard but `*` and `**`. All are read on every system:
   a home can be a backup, a mounted disk, or synced (design 4).
3. Importing this module does no I/O and takes a few milliseconds at most.
"""

import re
from collections.abc import Iterator, Sequence

from halod.definition import Scope
from halod.harnesses.dialect import Harness, Location, Place
from halod.harnesses.model import Role
from halod.harnesses.table_core import CORE
from halod.harnesses.table_editors import EDITORS
from halod.harnesses.table_more import MORE

HARNESSES: tuple[Harness, ...] = (*CORE, *EDITORS, *MORE)

# Data folders of VS Code and its relatives. `<CODE>` leaves out those whose User/mcp.json is their own.
_RELATIVES = ("Code", "Code - Insiders", "VSCodium", "Windsurf", "Kiro", "Antigravity", "Antigravity IDE")
_CODE = "~/{Library/Application Support,.config}/{" + ",".join(_RELATIVES) + "}"
_VSC = (
    "~/{Library/Application Support,.config}/{" + ",".join((*_RELATIVES, "Cursor", "Trae", "Trae CN")) + "}"
)
_REMOTE = "~/.vscode-server/data"
# What the table says for VS Code itself; its relatives and the remote folder are an inference.
_SURE = re.compile(r"/Code(?: - Insiders)?/")

_SCOPES: dict[Role, Scope] = {"plugin": "plugin", "agent": "agent"}
_BRACES = re.compile(r"\{([^{}]*)\}")


def expand(pattern: str) -> Iterator[str]:
    """Give every path that a pattern's `{a,b}` alternatives stand for, in order."""
    found = _BRACES.search(pattern)
    if found is None:
        yield pattern
        return
    for choice in found[1].split(","):
        yield from expand(pattern[: found.start()] + choice + pattern[found.end() :])


def folder_of(path: str) -> str:
    """Give the folder above a pattern's first wildcard, or above a path's last component, without `~/`."""
    return path.partition("*")[0].rpartition("/")[0][2:]


def _paths(place: Place) -> Iterator[tuple[str, bool]]:
    """Give a place's paths, and whether each is one that the sources name."""
    for mark, base in (("<VSC>", _VSC), ("<CODE>", _CODE)):
        if place.path.startswith(mark):
            tail = place.path[len(mark) :]
            for path in expand(base + tail):
                yield path, _SURE.search(path) is not None
            yield _REMOTE + tail, False
            return
    for path in expand(place.path):
        yield path, True


def _locations(harness: Harness) -> Iterator[Location]:
    for place in harness.places:
        scope = place.scope or _SCOPES.get(place.role, "user")
        dialect = place.dialect or harness.dialect
        for path, sure in _paths(place):
            yield Location(
                harness=harness.id,
                path=path,
                folder=folder_of(path),
                role=place.role,
                format=place.format,
                tables=place.tables,
                confidence=place.confidence if sure else max(place.confidence, "C"),
                scope=scope,
                dialect=dialect,
                place=place,
            )


LOCATIONS: tuple[Location, ...] = tuple(location for harness in HARNESSES for location in _locations(harness))
HARNESS_IDS: frozenset[str] = frozenset(harness.id for harness in HARNESSES)


def extra_location(harness: str, path: str) -> Location:
    """Make a location of `path` (`~/...`, no braces) that is read like the harness's first file.

    For what settings add where an environment variable moved a harness (design 4). Raises KeyError when there
    is no such harness, ValueError when the path does not begin with `~/` or leaves the home.
    """
    first = next((location for location in LOCATIONS if location.harness == harness), None)
    if first is None:
        raise KeyError(harness)
    parts = path.split("/")
    if parts[0] != "~" or len(parts) < 2 or any(part in {"", ".", ".."} for part in parts[1:]):
        raise ValueError("a location begins with ~/ and stays in the home")
    return Location(
        harness=harness,
        path=path,
        folder=folder_of(path),
        role="user",
        format=first.format,
        tables=first.tables,
        confidence="D",
        scope="user",
        dialect=first.dialect,
        place=first.place,
    )


def display(location: Location, parts: Sequence[str] = ()) -> str:
    """Show a location as `~/...`, its wildcards filled with what they matched.

    With fewer parts than wildcards, as where a directory could not be listed, the path ends before the first
    wildcard that is left. An empty part of `**` takes no component.
    """
    left = list(parts)
    shown = []
    for component in location.path.split("/"):
        if "*" not in component:
            shown.append(component)
        elif not left:
            break
        elif part := left.pop(0):
            shown.append(part)
    return "/".join(shown)
