# SPDX-License-Identifier: Apache-2.0
"""The YAML files of a policy repository, as `halo` reads them from a directory.

Invariants:

1. Nothing outside the directory is read: a link is followed only to a file in it, a link to a directory never.
2. What could not be read is reported, never passed over, and never costs the rest.
3. What comes out does not depend on the order of the file system.
4. A directory that is too large to be a policy repository (`/`, a home) is said to be that and nothing else:
   MAX_NAMES names are looked at, MAX_FILES files and MAX_TOTAL bytes read, MAX_DEPTH levels gone down at most.

Names that begin with a dot are not looked at: repositories keep there what is not policy (`.git`, `.github`).
"""

import errno
import os
import stat
from collections.abc import Iterator

from halod.policy.load import MAX_BYTES
from halod.policy.repository import Located

MAX_FILES = 10_000
"""YAML files of a repository; the largest that are known have some hundred."""
MAX_NAMES = 200_000
"""Files and directories of any kind: listing that many takes a second."""
MAX_TOTAL = 64 * 1024 * 1024
"""Bytes of all YAML files together."""
MAX_DEPTH = 32
"""Levels of directories."""
_SUFFIXES = (".yaml", ".yml")


class Directory:
    """One directory of policy files. `faults` and `warnings` are complete once `files` is exhausted.

    With `too_large` they are beside the point: not everything was looked at.
    """

    def __init__(self, path: str) -> None:
        self.faults: list[Located] = []
        self.warnings: list[Located] = []
        self.too_large = ""
        self._names_left = MAX_NAMES
        self._bytes_left = MAX_TOTAL
        self._root = os.path.realpath(path)
        self._seen: set[tuple[int, int]] = set()

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Give each file's name, relative to the directory, and MAX_BYTES + 1 of its bytes at most.

        Links come last: one counts only where its file is not read under a name of its own.
        """
        found, links = self._names()
        if self._names_left < 0:
            self.too_large = f"more than {MAX_NAMES} files and directories"
        elif len(found) + len(links) > MAX_FILES:
            self.too_large = f"more than {MAX_FILES} YAML files"
        if self.too_large:
            return
        for name in sorted(found):
            yield from self._read(name, os.path.join(self._root, name), link=False)
        for name in sorted(links):
            target = os.path.realpath(os.path.join(self._root, name))
            if target.startswith(self._root.rstrip("/") + "/"):
                yield from self._read(name, target, link=True)
            else:
                self._fault(name, "a link that leads out of the directory; it was not read")

    def _names(self) -> tuple[list[str], list[str]]:
        """List the YAML files below the directory: those that are there, and links."""
        found: list[str] = []
        links: list[str] = []
        waiting = [""]
        while waiting and len(found) + len(links) <= MAX_FILES and self._names_left >= 0:
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(self._root, folder)) as entries:
                    for entry in entries:
                        self._names_left -= 1
                        if self._names_left < 0:
                            break
                        if not entry.name.startswith("."):
                            self._sort_in(os.path.join(folder, entry.name), entry, found, links, waiting)
            except OSError as error:
                self._fault(folder, f"cannot be listed: {_reason(error)}")
        return found, links

    def _sort_in(
        self, name: str, entry: os.DirEntry[str], found: list[str], links: list[str], waiting: list[str]
    ) -> None:
        is_yaml = name.lower().endswith(_SUFFIXES)
        if entry.is_symlink():
            if is_yaml:
                links.append(name)
            elif os.path.isdir(os.path.join(self._root, name)):
                self.warnings.append(Located(printable(name), 1, 1, "a link to a directory is not followed"))
        elif entry.is_dir(follow_symlinks=False):
            if name.count("/") < MAX_DEPTH:
                waiting.append(name)
            else:
                self._fault(name, f"more than {MAX_DEPTH} levels of directories; it was not read")
        elif is_yaml:
            found.append(name)

    def _read(self, name: str, path: str, *, link: bool) -> Iterator[tuple[str, bytes]]:
        """Read one file, if it is one: a FIFO or a device would keep us waiting, or never end."""
        if self.too_large:
            return
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(descriptor, "rb") as file:
                about = os.fstat(descriptor)
                identity = (about.st_dev, about.st_ino)
                if not stat.S_ISREG(about.st_mode):
                    self._fault(name, "not a regular file; it was not read")
                    return
                if link and identity in self._seen:
                    return
                self._seen.add(identity)
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            self._fault(name, f"cannot be read: {_reason(error)}")
            return
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            self.too_large = f"more than {MAX_TOTAL // 1024 // 1024} MiB of YAML"
            return
        yield printable(name), data

    def _fault(self, name: str, message: str) -> None:
        self.faults.append(Located(printable(name), 1, 1, message))


def printable(name: str) -> str:
    """Show a file's name on one line of any terminal: what is not printable is escaped."""
    return "".join(char if char.isprintable() else _escaped(ord(char)) for char in name)


def _escaped(number: int) -> str:
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is not UTF-8, as os.fsdecode gives it
        number -= 0xDC00
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{{{number:x}}}"


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO)
