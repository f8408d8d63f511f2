# SPDX-License-Identifier: Apache-2.0
"""The server tables of a decoded document: which entries stand in it, under which names.

Pure. A table that is absent, null or empty is empty; one of a wrong type says so (design 4).
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from halod.harnesses.dialect import Dialect, Place

_NOTHING: Final[Mapping[str, object]] = {}
_Held = tuple[object, Mapping[str, object]]
"""A value and the mapping that holds it."""


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
    walk = _Walk(place, dialect)
    if isinstance(document, list) and "/[]" in place.tables:
        walk.items(document, "/[]", _NOTHING)
    elif isinstance(document, dict):
        walk.document(document, stem)
    else:
        walk.found.wrong = document not in (None, [])
    return walk.found


class _Walk:
    """One walk over a document: see `contents`."""

    __slots__ = ("dialect", "found", "place")

    def __init__(self, place: Place, dialect: Dialect) -> None:
        self.place = place
        self.dialect = dialect
        self.found = Contents([])

    def document(self, document: Mapping[str, object], stem: str) -> None:
        """Add the entries of all tables; the file itself is one when no other table is present."""
        present = False
        for table in self.place.tables:
            if table == "/[]":  # a list should stand here
                self.found.wrong = bool(document)
            elif table != "/" and not (present and self.place.first):
                present = self.table(document, table) or present
        if present or "/" not in self.place.tables:
            return
        if self.place.single:
            self.single(document, stem)
            return
        # Notes such as `$schema` stand beside the servers of a map without a wrapper, and so may a table that
        # is null: to most readers that is as good as none.
        tables = {table[1:] for table in self.place.tables}
        bare = {
            key: value
            for key, value in document.items()
            if not (key.startswith("$") and _scalar(value)) and not (key in tables and value is None)
        }
        self.value(bare, "/", _NOTHING)

    def single(self, document: Mapping[str, object], stem: str) -> None:
        """Add a file that is one entry, or what looks like entries in it; any other file is none of ours."""
        if self.is_entry(document):
            self.found.slots.append(Slot(stem, document, "/", _NOTHING))
            return
        for name, value in document.items():
            if isinstance(value, dict) and self.is_entry(value):
                self.found.slots.append(Slot(name, value, "/", _NOTHING))

    def table(self, document: Mapping[str, object], table: str) -> bool:
        """Add the entries at a pointer; say whether anything but null was there, be it empty."""
        places: list[_Held] = [(document, _NOTHING)]
        for step in table.removesuffix("[]").removeprefix("/").split("/"):
            places = list(self.step(places, step))
        for value, parent in places:
            self.value(value, table, parent)
        return any(value is not None for value, _ in places)

    def step(self, places: list[_Held], step: str) -> Iterator[_Held]:
        for value, _ in places:
            if not isinstance(value, dict):
                self.found.wrong = self.found.wrong or value not in (None, [])
            elif step == "*":
                yield from ((item, value) for item in value.values())
            elif step in value:
                yield value[step], value

    def value(self, value: object, table: str, parent: Mapping[str, object]) -> None:
        """Add the entries of a table: a map, or a list where one should be or all items could be entries."""
        if isinstance(value, dict):
            self.found.slots += (Slot(str(name), entry, table, parent) for name, entry in value.items())
        elif isinstance(value, list) and (
            table.endswith("[]") or all(isinstance(item, dict) for item in value)
        ):
            self.items(value, table, parent)
        elif value is not None:
            self.found.wrong = True

    def items(self, items: list[object], table: str, parent: Mapping[str, object]) -> None:
        """Add the items of a list: an entry with its `name`, or a map of names to entries.

        References are no entries: a bare name in an agent's list (Claude Code), `uses` (Continue's hub).
        """
        slots = self.found.slots
        for number, item in enumerate(items):
            if isinstance(item, dict) and item:
                if isinstance(item.get("uses"), str) and not self.is_entry(item):
                    continue
                if "name" not in item and not self.is_entry(item):
                    slots += (Slot(str(name), entry, table, parent) for name, entry in item.items())
                    continue
                name = item.get("name")
                slots.append(
                    Slot(name if isinstance(name, str) and name else str(number), item, table, parent)
                )
            elif self.place.role != "agent" or type(item) is not str:
                slots.append(Slot(str(number), item, table, parent))

    def is_entry(self, value: Mapping[str, object]) -> bool:
        """Say whether a mapping is an entry, not a map of names to entries."""
        if self.dialect.shape == "cline" and isinstance(value.get("transport"), dict):
            return True
        keys = (*self.dialect.command, *self.dialect.urls)
        return any(value.get(key) is not None and not isinstance(value[key], dict) for key in keys)


def _scalar(value: object) -> bool:
    return value is None or isinstance(value, (str, bool, int, float))
