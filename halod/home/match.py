# SPDX-License-Identifier: Apache-2.0
"""Patterns of locations, expanded through anchored listings (design 3.8 and 4).

A pattern is a path with `*` for a component or a part of one, `**` for any number of real directories (links
are not followed), and `{a,b}` alternatives. `*` also stands for names that begin with a dot: what a tool
hides is what a scan must see. There is no escape character; a lone brace means itself.

Limits, each told as `too-many-entries` beside what was found until then: entries of one directory (`walk`),
directories beneath a `**`, entries looked at for one pattern, entries in one scan, refusals for one pattern.
"""

import functools
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from halod.home.fault import Absent, Refused
from halod.home.walk import DIRECTORY, LINK, OTHER

MAX_DEPTH = 16  # directories beneath a `**`: plugin caches are 3 to 5 deep, node_modules up to about 12
PATTERN_ENTRIES = 20_000  # about 0.2 s of listing
SCAN_ENTRIES = 100_000  # about 1 s: a hostile home cannot spend a worker's time
MAX_REFUSED = 100  # rows of one pattern: an answer is bounded (design 3)


class Match(msgspec.Struct, frozen=True):
    """One path a pattern matched, relative to the home.

    `parts` has one string per wildcard component: the component as it stands, for `**` the components joined
    by `/`, or "". `refused` is a status.Reason when the path, or a directory that had to be listed, could not
    be walked: then `path` is that place and `parts` are those known so far.
    """

    path: str
    parts: tuple[str, ...]
    refused: str = ""
    errno: str = ""

    def __repr__(self) -> str:
        """Give the type's name only: names of folders are the user's text."""
        return "<Match>"


class Expander:
    """Expands patterns for one scan.

    `listing` gives a directory's entries and raises Absent or Refused; `exists` says whether a path is there
    and raises Refused.
    """

    def __init__(self, listing: Callable[[str], Mapping[str, int]], exists: Callable[[str], bool]) -> None:
        self._listing = listing
        self._exists = exists
        self._scan_left = SCAN_ENTRIES

    def expand(self, pattern: str) -> list[Match]:
        """Give every match, sorted by path; a pattern without wildcard is given back unlooked-at."""
        found: dict[str, Match] = {}
        for parts in compiled(pattern):
            run = _Run(self._listing, self._exists, min(PATTERN_ENTRIES, self._scan_left))
            before = run.left
            run.expand("", parts, ())
            self._scan_left -= before - max(run.left, 0)
            for match in run.found:
                found.setdefault(match.path, match)
        return [found[path] for path in sorted(found)]


class _Full(Exception):
    """A limit of the run is reached."""


class _Run:
    """One pattern without alternatives."""

    def __init__(
        self,
        listing: Callable[[str], Mapping[str, int]],
        exists: Callable[[str], bool],
        left: int,
    ) -> None:
        self._listing = listing
        self._exists = exists
        self._refusals = 0
        self.left = left
        self.found: list[Match] = []

    def expand(self, base: str, rest: tuple[str, ...], parts: tuple[str, ...]) -> None:
        """Expand the components `rest` beneath the path `base`."""
        for place, component in enumerate(rest):
            if "*" not in component:
                base = _join(base, component)
                continue
            try:
                if component == "**":
                    self._deep(base, rest[place + 1 :], parts)
                else:
                    self._wide(base, component, rest[place + 1 :], parts)
            except _Full:
                if parts:
                    raise  # told once, at the pattern's first wildcard
                self.found.append(Match(base, parts, "too-many-entries"))
            return
        self._keep(base, parts)

    def _keep(self, path: str, parts: tuple[str, ...]) -> None:
        """Add a path whose last component is no wildcard, when it exists."""
        try:
            if not parts or self._exists(path):
                self.found.append(Match(path, parts))
        except Refused as refusal:
            self._refuse(path, parts, refusal)

    def _wide(self, base: str, component: str, rest: tuple[str, ...], parts: tuple[str, ...]) -> None:
        pieces = component.split("*")
        for name, kind in self._entries(base, parts).items():
            if not fits(name, pieces):
                continue
            if not rest:
                self.found.append(Match(_join(base, name), (*parts, name)))
            elif kind != OTHER:
                self.expand(_join(base, name), rest, (*parts, name))

    def _deep(self, base: str, rest: tuple[str, ...], parts: tuple[str, ...]) -> None:
        """Go breadth first, so that a limit costs the deepest places."""
        queue = deque([(base, "", 0)])
        too_deep = False
        while queue:
            path, below, depth = queue.popleft()
            here = (*parts, below)
            entries = self._entries(path, here if below else parts)
            if len(rest) != 1 or "*" in rest[0]:
                self.expand(path, rest, here)
            elif rest[0] in entries:
                self.found.append(Match(_join(path, rest[0]), here))
            for name, kind in entries.items():
                if kind == LINK:
                    self._linked(_join(path, name), _join(below, name), parts)
                elif kind == DIRECTORY and depth < MAX_DEPTH:
                    queue.append((_join(path, name), _join(below, name), depth + 1))
                elif kind == DIRECTORY:
                    too_deep = True
        if too_deep:
            raise _Full

    def _linked(self, path: str, below: str, parts: tuple[str, ...]) -> None:
        """Tell a link beneath a `**` that leads to a directory: a tool may look there, and it is not read.

        Those of installed packages (`node_modules` links all of its own) are no place of a config.
        """
        if "node_modules" in below.split("/"):
            return
        try:
            self._listing(path)
        except Absent:
            return  # a file, or nothing
        except Refused as refusal:
            self._refuse(path, (*parts, below), refusal)
            return
        self._refuse(path, (*parts, below), Refused("symlink"))

    def _entries(self, path: str, parts: tuple[str, ...]) -> Mapping[str, int]:
        """List a directory within the limits; a refusal is told, an absent one is empty and costs nothing."""
        entries: Mapping[str, int] = {}
        try:
            entries = self._listing(path)
        except Absent:
            return entries
        except Refused as refusal:
            self._refuse(path, parts, refusal)
        if self.left <= 0:
            raise _Full
        self.left -= len(entries) + 1
        return entries

    def _refuse(self, path: str, parts: tuple[str, ...], refusal: Refused) -> None:
        if self._refusals >= MAX_REFUSED:
            raise _Full
        self._refusals += 1
        self.found.append(Match(path, parts, refusal.reason, refusal.errno))


def _join(base: str, name: str) -> str:
    return f"{base}/{name}" if base else name


def fits(name: str, pieces: list[str]) -> bool:
    """Say whether a name has the form of a component that was split at its `*`s.

    Linear in the name for every `*`: no backtracking, so no pattern of the settings can be slow.
    """
    first, *middle, last = pieces
    end = len(name) - len(last)
    at = len(first)
    if end < at or not name.startswith(first) or not name.endswith(last):
        return False
    for piece in middle:
        at = name.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> tuple[tuple[str, ...], ...]:
    """Write out a pattern's alternatives, each split into components."""
    opened = pattern.find("{")
    closed = pattern.find("}", opened)
    if opened < 0 or closed < 0:
        return (tuple(part for part in pattern.split("/") if part not in ("", ".")),)
    head, tail = pattern[:opened], pattern[closed + 1 :]
    chosen = (compiled(head + choice + tail) for choice in pattern[opened + 1 : closed].split(","))
    return tuple(parts for alternative in chosen for parts in alternative)
