# SPDX-License-Identifier: Apache-2.0
"""The server tables of a decoded document: which entries stand in it, under which names.

Pure. A table that is absent, null or empty is empty; one of a wrong type says so (design 4).
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from halod.harnesses.dialect import Dialect, Place

_NOTHING: Final[Mapping[str, object]] = {}


class Slot(msgspec.Struct, frozen=True):
    """One entry: its name, what stands there, its table, and the mapping that holds the table."""

    name: str
    entry: object
    table: str
    parent: Mapping[str, object]

    def __repr__(self) -> str:
        """Give the type's name only: an entry is the user's text."""
        return "<Slot>"


class Contents(msgspec.Struct):
    """The entries of a document, and whether a table has a type that cannot be read."""

    slots: list[Slot]
    wrong: bool = False


def contents(document: object, place: Place, dialect: Dialect, *, stem: str = "") -> Contents:
    """Give the entries of a document. `stem` names the one entry of a file that is an entry itself."""
    if document is None or document == []:
        return Contents([])
    if isinstance(document, list) and "/[]" in place.tables:
        found = Contents([])
        _items(document, "/[]", _NOTHING, dialect, found)
        return found
    if not isinstance(document, dict):
        return Contents([], wrong=True)
    if (
        place.single
        and _is_entry(document, dialect)
        and not any(_present(document, t) for t in place.tables if t != "/")
    ):
        return Contents([Slot(stem, document, "/", _NOTHING)])
    found = Contents([])
    present = False
    for table in place.tables:
        if table == "/" or (present and place.first):
            continue
        present = _read_table(document, table, dialect, found) or present
    if not present and "/" in place.tables:
        # Notes such as `$schema` stand beside the servers of a map without a wrapper.
        bare = {key: value for key, value in document.items() if not (key.startswith("$") and _scalar(value))}
        _read_value(bare, "/", _NOTHING, dialect, found)
    return found


def _scalar(value: object) -> bool:
    return value is None or isinstance(value, (str, bool, int, float))


def _present(document: Mapping[str, object], table: str) -> bool:
    return table.removesuffix("[]").split("/")[1] in document


def _read_table(document: Mapping[str, object], table: str, dialect: Dialect, found: Contents) -> bool:
    """Add the entries at a pointer; say whether anything was there, be it empty."""
    places: list[tuple[object, Mapping[str, object]]] = [(document, _NOTHING)]
    for step in table.removesuffix("[]").removeprefix("/").split("/"):
        places = list(_step(places, step, found))
    for value, parent in places:
        _read_value(value, table, parent, dialect, found)
    return bool(places)


def _step(
    places: list[tuple[object, Mapping[str, object]]], step: str, found: Contents
) -> Iterator[tuple[object, Mapping[str, object]]]:
    for value, _ in places:
        if not isinstance(value, dict):
            found.wrong = found.wrong or value not in (None, [])
        elif step == "*":
            yield from ((item, value) for item in value.values())
        elif step in value:
            yield value[step], value


def _read_value(
    value: object, table: str, parent: Mapping[str, object], dialect: Dialect, found: Contents
) -> None:
    if value is None:
        return
    if isinstance(value, dict):
        found.slots += (Slot(str(name), entry, table, parent) for name, entry in value.items())
    elif isinstance(value, list) and (table.endswith("[]") or all(isinstance(item, dict) for item in value)):
        _items(value, table, parent, dialect, found)
    else:
        found.wrong = True


def _items(
    items: list[object], table: str, parent: Mapping[str, object], dialect: Dialect, found: Contents
) -> None:
    """Add the items of a list: an entry with its `name`, a map of names to entries, or a reference.

    References are a bare name (Claude Code's agents) and `uses` (Continue's hub).
    """
    for number, item in enumerate(items):
        if isinstance(item, str) or (isinstance(item, dict) and "uses" in item):
            continue
        if not isinstance(item, dict) or not item:
            found.slots.append(Slot(str(number), item, table, parent))
        elif _is_entry(item, dialect) or "name" in item:
            name = item.get("name")
            label = name if isinstance(name, str) and name else str(number)
            found.slots.append(Slot(label, item, table, parent))
        else:
            found.slots += (Slot(str(name), entry, table, parent) for name, entry in item.items())


def _is_entry(value: Mapping[str, object], dialect: Dialect) -> bool:
    """Say whether a mapping is an entry, not a map of names to entries."""
    keys = (*dialect.command, *dialect.urls)
    return any(value.get(key) is not None and not isinstance(value[key], dict) for key in keys)
