# SPDX-License-Identifier: Apache-2.0
"""From a home to a `Reading`: every file of every location, its entries, and the harnesses' own switches.

Invariants:

1. Each file, entry and harness fails alone: what cannot be read is an `Unread`, the rest goes on (design 4).
2. A harness reports the definitions of one file once, by whatever paths it reaches it; every harness that
   lists the file reports its own.
3. Definitions of one file come in the order of its entries; equal names keep their order.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from halod.definition import FileRef, Scope
from halod.harnesses import claude, desktop, jetbrains, opencode, openhands, plugins, tables
from halod.harnesses.database import read_database
from halod.harnesses.dialect import Location, Place
from halod.harnesses.entries import Origin, read_entry
from halod.harnesses.formats import prepare
from halod.harnesses.formats.sqlite import Unsupported
from halod.harnesses.model import Found, Reading, Unread
from halod.harnesses.scan import ABSENT, Scan, Source, parent_of, switch
from halod.harnesses.switches import SWITCHES
from halod.harnesses.table import LOCATIONS
from halod.harnesses.tables import Contents, Slot
from halod.harnesses.values import texts
from halod.home import Home, Refused

# ~/.claude.json grows to hundreds of megabytes (`may_be_large`): its types are made before a fork.
prepare(LOCATIONS[0].tables, LOCATIONS[0].place.also)

_POINTERS: Final = 50  # paths and maps of one manifest; people write one
_READ_ROLES = frozenset({"user", "legacy", "plugin", "agent", "shared"})


def read_home(
    home: Home,
    *,
    harnesses: frozenset[str] | None = None,
    extra: tuple[Location, ...] = (),
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.process_time,
) -> Reading:
    """Read every definition of a home.

    Args:
        home: the opened home; it is read, never written.
        harnesses: only these harness ids; None for all.
        extra: locations that settings add; they are numbered after `LOCATIONS`.
        clock: the processor time that was used, in seconds; a scan ends in time, whatever a home holds.
        sleep: waits seconds, once and for a tenth of one at most: a file that is blank is read again then.

    Raises nothing for what a home may hold.
    """
    scan = Scan(home, LOCATIONS + extra, sleep, clock)
    sources = [source for number in _numbers(scan, harnesses) for source in scan.sources(number)]
    scan.fetch(sources)
    for source in sources:
        try:
            _READERS[source.location.place.reader](scan, source)
        except Exception:  # noqa: BLE001 - a fault of ours too costs its file only, and is told
            scan.reading.unread.append(Unread(source.file, "error"))
    scan.tell_refused()
    shared = [found for found in scan.reading.found if found.definition.file in scan.twice]
    own = [found.definition.enabled for found in shared]
    for harness, apply in SWITCHES.items():
        if harnesses is None or harness in harnesses:
            try:
                apply(scan)
            except Exception:  # noqa: BLE001 - as above: what is not switched counts as enabled
                scan.reading.unread.append(Unread(FileRef(_state_of(scan, harness)), "error"))
    for found, enabled in zip(shared, own, strict=True):
        # One file of two plugins: a switch of the one that is told says nothing of the other.
        if found.definition.scope == "plugin":
            for half in (found.definition, found.other):
                if half is not None:
                    half.enabled = enabled
    return scan.reading


def _state_of(scan: Scan, harness: str) -> int:
    """Give the first location of a harness's state, or of the harness where it keeps none."""
    numbers = [number for number, location in enumerate(scan.locations) if location.harness == harness]
    return next((number for number in numbers if scan.locations[number].role == "state"), numbers[0])


def _numbers(scan: Scan, harnesses: frozenset[str] | None) -> Iterable[int]:
    """Give the locations to read; paths without wildcard first, so that a refused folder is told by one."""
    wanted = [
        number
        for number, location in enumerate(scan.locations)
        if location.role in _READ_ROLES
        and not location.place.pointed
        and (harnesses is None or location.harness in harnesses)
    ]
    return sorted(wanted, key=lambda number: "*" in scan.locations[number].path)


def _tables(scan: Scan, source: Source) -> None:
    """Read a file whose tables are where its location says."""
    document = scan.load(source)
    if document is None:
        return
    location = source.location
    stem = source.parts[-1].rpartition(".")[0] if source.parts else ""
    if location.role == "plugin" and isinstance(document, dict) and isinstance(document.get("name"), str):
        scan.labels[source.file] = document["name"]
    new = take(scan, source, tables.contents(document, location.place, location.dialect, stem=stem))
    # A file in the way that was not read (a dangling link) may not be in the harness's way.
    if location.place.shadow[2:] in scan.documents:
        for found in new:
            switch(found, on=False)


def take(scan: Scan, source: Source, contents: Contents) -> list[Found]:
    """Make definitions of the entries of a document."""
    if contents.wrong:
        scan.reading.unread.append(Unread(source.file, "malformed"))
    location = source.location
    place = location.place
    new: list[Found] = []
    off: dict[int, frozenset[str]] = {}
    room = scan.room()
    for slot in contents.slots[:room]:
        if slot.name in place.reserved:
            continue
        scope: Scope = "project" if slot.table.startswith("/projects/") else location.scope
        origin = Origin(location.harness, source.file, scope, location.dialect)
        try:
            found = read_entry(slot.name, slot.entry, origin)
        except Exception:  # noqa: BLE001 - Unusable, or a fault of ours: the neighbours are read
            scan.reading.unread.append(Unread(source.file, "malformed-entry", server=slot.name))
            continue
        if found is not None:
            switch(found, on=slot.table not in place.dead and slot.name not in _off(slot, place, off))
            new.append(found)
    if len(contents.slots) > room:
        scan.reading.unread.append(Unread(source.file, "too-many-entries"))
    scan.reading.found += new
    return new


def _off(slot: Slot, place: Place, known: dict[int, frozenset[str]]) -> frozenset[str]:
    """Give the list of switched-off names beside a slot's table; `known` are those of this document.

    Where a location has a table per project, only a project's own list decides about the project's servers.
    """
    if not place.off or ("*" not in slot.table and any("*" in table for table in place.tables)):
        return frozenset()
    if id(slot.parent) not in known:
        known[id(slot.parent)] = frozenset(texts(slot.parent.get(place.off)))
    return known[id(slot.parent)]


def _opencode(scan: Scan, source: Source) -> None:
    _take(scan, source, opencode.contents)


def _desktop(scan: Scan, source: Source) -> None:
    _take(scan, source, lambda document: desktop.contents(document, source))


def _openhands(scan: Scan, source: Source) -> None:
    _take(scan, source, openhands.contents)


def _jetbrains(scan: Scan, source: Source) -> None:
    _take(scan, source, jetbrains.contents)


def _take(scan: Scan, source: Source, contents: Callable[[object], Contents]) -> None:
    document = scan.load(source)
    if document is not None:
        take(scan, source, contents(document))


def _database(scan: Scan, source: Source) -> None:
    """Read an SQLite database and its write-ahead log, which may be absent (design 3.9)."""
    location = source.location

    def parse(data: bytes | bytearray) -> Contents:
        log = scan.open(source.path + "-wal")
        if isinstance(log, Refused):
            raise log
        try:
            return read_database(location.tables[0], data, log.data if log else None, location.dialect)
        except Unsupported:
            raise Refused("error", "ENOTSUP") from None

    contents = scan.load(source, parse)
    if isinstance(contents, Contents):
        take(scan, source, contents)


def _manifest(scan: Scan, source: Source) -> None:
    """Read a plugin's manifest: `mcpServers` is a map, a path, or a list of both."""
    document = scan.load(source)
    if isinstance(document, dict):
        _bring(scan, source, document.get("mcpServers"), plugins.folder(source), source.parts)
    elif document not in (None, []):
        scan.reading.unread.append(Unread(source.file, "malformed"))


def _bring(scan: Scan, source: Source, value: object, root: str, parts: tuple[str, ...]) -> list[Found]:
    """Take what a plugin's `mcpServers` says. A path is read only inside the plugin's own folder, `root`."""
    new: list[Found] = []
    items = value if isinstance(value, list) else [value]
    if len(items) > _POINTERS:
        scan.reading.unread.append(Unread(source.file, "too-many-entries"))
    for item in items[:_POINTERS]:
        if isinstance(item, dict):
            inner = item.get("mcpServers")
            servers = inner if isinstance(inner, dict) and len(item) == 1 else item
            slots = [Slot(str(name), entry, "/mcpServers", item) for name, entry in servers.items()]
            new += take(scan, source, Contents(slots))
        elif type(item) is str:
            _follow(scan, plugins.named(scan, source, root, parts, item))
        elif item is not None:
            scan.reading.unread.append(Unread(source.file, "malformed"))
    return new


def _follow(scan: Scan, target: Source | None) -> None:
    """Read a file of a plugin that its manifest points to."""
    if target is None:
        scan.reading.not_covered.add(plugins.PLUGIN_SOURCES)
    elif target.path.endswith(plugins.BUNDLES):
        if scan.exists(target.path):
            scan.reading.unread.append(Unread(target.file, "opaque"))
    elif scan.blocked(parent_of(target.path)) != ABSENT:
        scan.fetch([target])
        _tables(scan, target)


def _skill(scan: Scan, source: Source) -> None:
    """Read a skill's servers: only a skill with a plugin manifest is loaded as a plugin (harnesses.md 1)."""
    if scan.exists(plugins.folder(source) + "/.claude-plugin/plugin.json"):
        _tables(scan, source)


def _opaque(scan: Scan, source: Source) -> None:
    """Tell that a program stands where a config should: it is never run or guessed at (design 4)."""
    if scan.exists(source.path):
        scan.reading.unread.append(Unread(source.file, "opaque"))


def _catalogue(scan: Scan, source: Source) -> None:
    """Read a marketplace's catalogue: only entries that stand for an installed plugin's manifest."""
    document = scan.load(source)
    offers = document.get("plugins") if isinstance(document, dict) else document
    if not (offers is None or isinstance(offers, list)) or (isinstance(document, list) and document):
        scan.reading.unread.append(Unread(source.file, "malformed"))
    for brought in claude.catalogue(scan, source, document):
        for found in _bring(scan, source, brought.value, brought.root, brought.parts):
            switch(found, on=brought.on)


_READERS: Final[dict[str, Callable[[Scan, Source], None]]] = {
    "tables": _tables,
    "opencode": _opencode,
    "manifest": _manifest,
    "catalogue": _catalogue,
    "skill": _skill,
    "desktop": _desktop,
    "opaque": _opaque,
    "database": _database,
    "jetbrains": _jetbrains,
    "openhands": _openhands,
}
