# SPDX-License-Identifier: Apache-2.0
"""What the harness room hands on: locations, what was found in them, and what could not be read."""

from typing import Literal

import msgspec

from halod.definition import Definition, FileRef

Role = Literal["user", "legacy", "plugin", "agent", "state", "shared"]


class Unread(msgspec.Struct, frozen=True):
    """A file or an entry that could not be read.

    `server` is the entry's name as written (malformed-entry only), redacted before it leaves the worker.
    `line` and `column` start at 1; 0 when unknown. `errno` is a name, for reason "error" only.
    `depth` is 0 when the file alone is unread, else the number of the path's components, counted from the
    home, behind which nothing of the harness could be read: such a place is told once.
    """

    file: FileRef
    reason: str
    server: str | None = None
    line: int = 0
    column: int = 0
    errno: str = ""
    depth: int = 0

    def __repr__(self) -> str:
        """Give the type's name only: a server name is the user's text."""
        return "<Unread>"


class Found:
    """A definition; `other` is its second half where an entry has a command and a URL and the harness's

    choice is not known: the worse of the two is the definition (design 4).
    """

    __slots__ = ("definition", "other")

    def __init__(self, definition: Definition, other: Definition | None = None) -> None:
        self.definition = definition
        self.other = other


class Reading:
    """Everything one scan of a home found. `files` counts the files whose content was read."""

    __slots__ = ("files", "found", "not_covered", "read", "unread")

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.unread: list[Unread] = []
        self.files = 0
        self.not_covered: set[str] = set()
        self.read: list[FileRef] = []
