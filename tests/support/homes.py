# SPDX-License-Identifier: Apache-2.0
"""A home in memory, for tests of what is read rather than of how a file is opened."""

from halod.harnesses.model import Reading
from halod.harnesses.reader import read_home
from halod.harnesses.table import LOCATIONS, display
from halod.home import Absent, File, Match, Refused
from halod.home.match import Expander
from halod.home.walk import DIRECTORY, OTHER


class MemoryHome:
    """Has `read`, `reread`, `exists` and `match` of `halod.home.Home`.

    `files` are contents by path; `later` replaces them from the second look on; `recent` are paths whose file
    changed a moment ago. `opened` counts the looks at what is there.
    """

    def __init__(self, files, *, later=None, recent=()):
        self.files = {path: _bytes(content) for path, content in files.items()}
        self.later = {path: _bytes(content) for path, content in (later or {}).items()}
        self.recent = set(recent)
        self.opened: dict[str, int] = {}
        self._expander = Expander(self._listing, self.exists)

    def read(self, path, most=None):
        content = self.files.get(path)
        if content is None:
            raise Absent
        self.opened[path] = self.opened.get(path, 0) + 1
        if isinstance(content, Refused):
            raise content
        return File(bytearray(content), 1, list(self.files).index(path) + 1, path in self.recent)

    def reread(self, path):
        if path in self.later:
            self.files[path] = self.later[path]
        return self.read(path)

    def exists(self, path):
        return path in self.files or any(known.startswith(path + "/") for known in self.files)

    def match(self, pattern) -> list[Match]:
        return self._expander.expand(pattern)

    def _listing(self, path):
        below = [known[len(path) + 1 :] for known in self.files if known.startswith(path + "/")]
        if not below:
            raise Absent
        return {name.partition("/")[0]: DIRECTORY if "/" in name else OTHER for name in sorted(below)}


def _bytes(content):
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content


def read(files, **options) -> Reading:
    """Read a home made of `files` with the options of `read_home`; nothing sleeps."""
    return read_home(MemoryHome(files), **{"sleep": lambda _: None, **options})


def place(reference) -> str:
    """Show a FileRef as `~/...`."""
    return display(LOCATIONS[reference.location], reference.parts)


def gaps(reading: Reading) -> list[tuple[str, str, str]]:
    """Give what could not be read: harness, file and reason."""
    return [(LOCATIONS[gap.file.location].harness, place(gap.file), gap.reason) for gap in reading.unread]


def names(reading: Reading) -> list[str]:
    """Give the names of all definitions."""
    return [found.definition.name for found in reading.found]
