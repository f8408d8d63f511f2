# SPDX-License-Identifier: Apache-2.0
"""The state of one scan of a home: which paths are there, their files and documents, and what is unread.

Invariants:

1. Every file is opened through `Home` and at most once, but for the one more look that design 3.4 and 3.7 ask
   for. What does not parse, cannot be opened or cannot be listed costs itself only, and is told once.
2. Nothing of a file leaves a document but through `model` types.
"""

from collections.abc import Callable, Iterator

import msgspec

from halod.definition import FileRef
from halod.harnesses.dialect import Location
from halod.harnesses.formats import Malformed, TooLarge, decode
from halod.harnesses.model import Found, Reading, Unread
from halod.home import Absent, File, Home, Refused

BLANK_WAIT = 0.1  # seconds: a file of zero bytes may be in the middle of being written (design 3.7)
# A hostile file cannot spend a worker's time, nor the room of the other files: what is beyond is told.
MAX_ENTRIES = 20_000  # definitions and broken entries of one home
FILE_ENTRIES = 12_000  # of one table
RESERVED = 200  # that each file may have after others took all of a home's, up to twice as many
MAX_BYTES = 512 << 20  # of all files of one home
SMALL_BYTES = 64 << 10  # a file of this size is read though others used up what all may take
HELD_BYTES = 160 << 20  # between reading and decoding, when a file is opened before its turn
SLOW = 5.0  # seconds of processor time after which only small files are read
LATE = 8.0  # and after which none are; a worker has 15
ABSENT = "/absent"  # an answer of `blocked`; no path in a home begins with a slash

Parser = Callable[[bytes | bytearray], object]


class Source(msgspec.Struct, frozen=True):
    """One file that a location names: the location's number, the path, and what the wildcards matched."""

    number: int
    location: Location
    path: str
    parts: tuple[str, ...] = ()

    @property
    def file(self) -> FileRef:
        """How the file is named outside the scan."""
        return FileRef(self.number, self.parts)

    @property
    def wildcards(self) -> int:
        """How many components of the path have a wildcard; fewer parts than that mean a folder."""
        return sum("*" in component for component in self.location.path.split("/"))

    def __repr__(self) -> str:
        """Give the type's name only: names of folders are the user's text."""
        return "<Source>"


class Scan:
    """One scan: see the module. `sleep` waits seconds; `clock` gives the processor time that was used."""

    def __init__(
        self,
        home: Home,
        locations: tuple[Location, ...],
        sleep: Callable[[float], object],
        clock: Callable[[], float],
    ) -> None:
        self.home = home
        self.locations = locations
        self.reading = Reading()
        self.labels: dict[FileRef, str] = {}
        """The name that an extension's manifest gives itself."""
        self.twice: set[FileRef] = set()
        """Files that one harness reached by a second path: what switches the first may not switch the second."""
        self.memo: dict[str, object] = {}
        """What a harness's module worked out once for this scan."""
        self.documents: dict[str, object] = {}
        """The decoded files of locations without wildcard, by path."""
        self._clock = clock
        self._begun = clock()
        self._bytes = 0
        self._held = 0
        self._sleep: Callable[[float], object] | None = sleep
        self._walks: dict[str, str | None] = {"": None}
        self._files: dict[str, File | Refused | None] = {}
        self._spent: dict[str, tuple[int, int]] = {}
        self._told: set[tuple[str, str]] = set()
        self._refused: list[tuple[Source, Refused]] = []
        self._seen: dict[tuple[object, ...], Source] = {}
        self._counted: set[tuple[int, int]] = set()
        self._uses: dict[str, int] = {}

    # What is there

    def blocked(self, directory: str) -> str | None:
        """Say what keeps a directory from being walked: None for nothing, ABSENT, or the part that does.

        The part is the path of the first component that cannot be walked.
        """
        if directory in self._walks:
            return self._walks[directory]
        parent = parent_of(directory)
        answer = self.blocked(parent)
        if answer is None:
            try:
                answer = None if self.home.exists(directory) else ABSENT
            except Refused:
                answer = parent
        self._walks[directory] = answer
        return answer

    def exists(self, path: str) -> bool:
        """Say whether a path is there; False where that cannot be told."""
        if self.blocked(parent_of(path)) is not None:
            return False
        try:
            return self.home.exists(path)
        except Refused:
            return False

    def sources(self, number: int) -> Iterator[Source]:
        """Give the files of a location, as far as directories tell; see also `tell_refused`."""
        location = self.locations[number]
        pattern = location.path[2:]
        if self.blocked(location.folder) == ABSENT:
            return
        if "*" not in pattern:
            yield Source(number, location, pattern)
            return
        for match in self.home.match(pattern):
            source = Source(number, location, match.path, match.parts)
            if match.refused:
                self._refused.append((source, Refused(match.refused, match.errno)))
            else:
                yield source

    # Files and documents

    def fetch(self, sources: list[Source]) -> None:
        """Read the files of all sources; the blank ones once more, after one wait for all of them."""
        blank = []
        for source in sources:
            if source.path in self._spent:
                continue
            found = self.open(source.path)
            if isinstance(found, File):
                self._uses[source.path] = self._uses.get(source.path, 0) + 1
                if is_blank(found):
                    blank.append(source.path)
                elif self._held + len(found.data) > HELD_BYTES:
                    del self._files[source.path]  # opened again at its turn
                else:
                    self._held += len(found.data)
        if blank:
            self._wait()
            for path in dict.fromkeys(blank):
                self._reopen(path)

    def open(self, path: str) -> File | Refused | None:
        """Read a file once; None when it is absent. After `MAX_BYTES` of all files only small ones are read."""
        if path not in self._files:
            try:
                found = self.home.read(path, max(MAX_BYTES - self._bytes, SMALL_BYTES))
                self._bytes += len(found.data)
                self._files[path] = found
            except Absent:
                self._files[path] = None
            except Refused as refusal:
                self._files[path] = refusal
        return self._files[path]

    def _reopen(self, path: str) -> None:
        try:
            self._files[path] = self.home.reread(path)
        except Absent:
            self._files[path] = None
        except Refused as refusal:
            self._files[path] = refusal

    def _wait(self) -> None:
        """Wait once per scan, however many files are blank (design 3.7)."""
        sleep, self._sleep = self._sleep, None
        if sleep is not None:
            sleep(BLANK_WAIT)

    def load(self, source: Source, parse: Parser | None = None) -> object:
        """Decode a source's file, by its format or with `parse`; None, told where it must be, for nothing.

        A harness that reaches one file by two paths gets it once: the second time gives None.
        """
        identity = self._spent.get(source.path)
        if identity is None:
            found = self.open(source.path)
            if found is None:
                return None
            if isinstance(found, Refused):
                self.refuse(source, found)
                return None
            identity = (found.device, found.inode)
        if self._is_late(source):
            return None
        location = source.location
        key = (location.harness, identity, location.tables, location.place.reader, id(location.dialect))
        first = self._seen.setdefault(key, source)
        if first is not source:
            self.reading.read.append(source.file)
            if first.path != source.path:
                self.twice.add(first.file)
            return None
        return self._decode(source, identity, parse or _by_format(source))

    def _is_late(self, source: Source) -> bool:
        """Say, and tell, that there is no time left for a file: for a large one sooner than for a small one.

        So a few files that are slow to decode cost themselves and not the account, and a flood costs its tail.
        """
        used = self._clock() - self._begun
        if used < SLOW:
            return False
        found = self._files.get(source.path)
        large = not isinstance(found, File) or len(found.data) > SMALL_BYTES
        if used >= LATE and source.wildcards:
            place = f"*{source.number}"  # all that is left of the location, told once
            if (source.location.harness, place) not in self._told:
                self._told.add((source.location.harness, place))
                self.reading.unread.append(Unread(FileRef(source.number), "too-many-entries"))
        elif large or used >= LATE:
            self.reading.unread.append(Unread(source.file, "too-large"))
        else:
            return False
        return True

    def _decode(self, source: Source, identity: tuple[int, int], parse: Parser) -> object:
        try:
            document = self._parse(source, parse)
        except Refused as refusal:
            self.refuse(source, refusal)
            return None
        except Malformed as fault:
            reason = "too-large" if isinstance(fault, TooLarge) else "malformed"
            self.reading.unread.append(Unread(source.file, reason, line=fault.line, column=fault.column))
            return None
        except Absent:
            return None
        self._counted.add(identity)
        self.reading.files = len(self._counted)
        self.reading.read.append(source.file)
        if not source.parts:
            self.documents[source.path] = document
        return document

    def _parse(self, source: Source, parse: Parser) -> object:
        """Decode; a file that does not parse and changed within the last second is read once more."""
        found = self._take(source.path)
        try:
            return _parsed(found, parse)
        except Malformed:
            if not found.recent:
                raise
        return _parsed(self.home.reread(source.path), parse)

    def _take(self, path: str) -> File:
        """Give a file to a decoder, which may spoil it: a copy while another source needs the bytes too."""
        found = self._files.pop(path, None)
        if not isinstance(found, File):
            return self.home.reread(path)
        identity = (found.device, found.inode)
        left = self._uses.get(path, 1) - 1
        self._uses[path] = left
        if left > 0:
            self._files[path] = found
            return File(found.data[:], found.device, found.inode, found.recent)
        self._spent[path] = identity
        return found

    def state(self, path: str, harness: str) -> object:
        """Give the document of a state file (`~/...`), read when first asked for; {} for none."""
        relative = path[2:]
        if relative in self.documents:
            return self.documents[relative]
        for number, location in enumerate(self.locations):
            if location.path == path and location.harness == harness:
                document = self.side(Source(number, location, relative))
                return self.documents.setdefault(relative, document)
        raise KeyError(path)

    def side_of(self, harness: str, path: str, parts: tuple[str, ...], *, pattern: str) -> object:
        """Give the document of a state file that a location with wildcards names; {} for none."""
        if path in self.documents:
            return self.documents[path]
        for number, location in enumerate(self.locations):
            if location.path == pattern and location.harness == harness:
                document = self.side(Source(number, location, path, parts))
                return self.documents.setdefault(path, document)
        raise KeyError(pattern)

    def side(self, source: Source) -> object:
        """Load a file that another one made necessary; {} when there is nothing in it."""
        if self.blocked(parent_of(source.path)) == ABSENT:
            return {}
        self.fetch([source])
        document = self.load(source)
        return {} if document is None else document

    # What could not be read

    def refuse(self, source: Source, refusal: Refused) -> None:
        """Tell that a path cannot be read: once per harness for all that lies behind the same directory."""
        place = self.blocked(parent_of(source.path)) or self._cause(source.path)
        key = (source.location.harness, place)
        if key in self._told:
            return
        self._told.add(key)
        depth = 0 if place == source.path and len(source.parts) == source.wildcards else place.count("/") + 1
        self.reading.unread.append(Unread(source.file, refusal.reason, errno=refusal.errno, depth=depth))
        if refusal.reason == "escapes-home" and source.location.scope == "plugin":
            self.reading.not_covered.add("plugin-sources")

    def tell_refused(self) -> None:
        """Tell what `sources` could not walk, after the files: a refused folder is told by a file in it."""
        refused, self._refused = self._refused, []
        for source, refusal in refused:
            self.refuse(source, refusal)

    def _cause(self, path: str) -> str:
        """Give the directory of a path when it is what cannot be walked, else the path."""
        try:
            self.home.exists(path)
        except Refused:
            return parent_of(path)
        return path

    def room(self) -> int:
        """Give how many entries one more table may have."""
        used = len(self.reading.found) + len(self.reading.unread)
        reserved = min(RESERVED, FILE_ENTRIES, max(2 * MAX_ENTRIES - used, 0))
        return max(min(FILE_ENTRIES, MAX_ENTRIES - used), reserved)

    def found(self, harness: str) -> Iterator[Found]:
        """Give what was found of one harness so far."""
        return (found for found in self.reading.found if found.definition.harness == harness)


def _by_format(source: Source) -> Parser:
    location = source.location
    return lambda data: decode(location.format, data, location.tables, location.place.also)


def _parsed(found: File, parse: Parser) -> object:
    return {} if is_blank(found) else parse(found.data)


def parent_of(path: str) -> str:
    """Give the directory of a path, "" for the home itself."""
    return path.rpartition("/")[0]


def is_blank(found: File) -> bool:
    """Say whether a file has no content: zero bytes or blanks. Looks at large files' first bytes only."""
    return not found.data[:64].strip() and not found.data.strip()


def switch(found: Found, *, on: bool) -> None:
    """Switch a definition, both halves of it, off unless `on`."""
    for half in (found.definition, found.other):
        if half is not None:
            half.enabled = half.enabled and on
