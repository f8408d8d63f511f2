# SPDX-License-Identifier: Apache-2.0
"""The one door to a user's files (design 3).

INTERFACE SKETCH - the real module replaces this file.
"""

import msgspec


class Absent(Exception):
    """The path does not exist (ENOENT, or a component that is not a directory): not reported."""


class Refused(Exception):
    """A path that must not or cannot be read.

    `reason` is one of status.Reason; `errno` the errno's name when reason is "error", else "". Carries no path.
    """

    def __init__(self, reason: str, errno: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.errno = errno


class Match(msgspec.Struct, frozen=True):
    """One path a pattern matched: relative to the home, and one string per wildcard component."""

    path: str
    parts: tuple[str, ...]
    refused: str = ""     # a status.Reason when this path (or the directory listing) could not be walked
    errno: str = ""


class File(msgspec.Struct):
    """The bytes of one file, and its identity."""

    data: bytearray
    device: int
    inode: int


class Home:
    """A home directory held by one descriptor; every read is anchored there."""

    @classmethod
    def open(
        cls,
        path: str,
        *,
        uid: int,
        max_file_bytes: int = 128 * 1024 * 1024,
        link_roots: tuple[str, ...] = (),
    ) -> "Home":
        """Open the home. Raises Refused("home-unavailable" | ...)."""
        raise NotImplementedError

    @property
    def fd(self) -> int:
        """The home's descriptor, for Landlock."""
        raise NotImplementedError

    def read(self, path: str) -> File:
        """Read one file. Raises Absent or Refused."""
        raise NotImplementedError

    def reread(self, path: str) -> File:
        """Read again, for a file that did not parse and changed within the last second (rule 4)."""
        raise NotImplementedError

    def exists(self, path: str) -> bool:
        """Whether a path is there, by lstat; nothing is opened."""
        raise NotImplementedError

    def match(self, pattern: str) -> list[Match]:
        """Expand `*`, `**` (pattern syntax of design 4) through anchored listings, sorted by path.

        Without a wildcard the one path is returned unlooked-at. A directory that cannot be listed gives a
        Match with `refused` set and the parts known so far.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close every descriptor."""
        raise NotImplementedError
