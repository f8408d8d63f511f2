# SPDX-License-Identifier: Apache-2.0
"""One walk of a home along the table: which directories to watch for which names, and what is there.

The walk is that of `halod.home`: from one descriptor, component by component, links followed here and never
out of the home. Invariants:

1. A directory is watched before it is looked into, so what appears during the walk is seen or told of later.
2. Each directory that a path leads through is watched too, links' included, as far as the path exists: so
   what appears, vanishes or is pointed elsewhere is followed.
3. The work is bounded: MOST_WATCHED directories are watched, MOST_VISITED looked into, MOST_LISTED entries of
   them taken, those of paths without wildcard first. `full` says that a bound was reached.
"""

import contextlib
import heapq
import os
import stat
from collections.abc import Iterable
from typing import Final, Protocol

from halod.home import Absent, Refused
from halod.home.walk import DIRECTORY, OTHER, Anchor, Dir, Walker, components, listing
from halod.roles.watched.interest import Names, Node, closure

MOST_WATCHED: Final = 1000  # about 1 KiB of kernel memory each, of the account's own allowance
MOST_VISITED: Final = 4000
MOST_LISTED: Final = 50_000  # some MiB of memory and half a second
MOST_DEEP: Final = 16  # directories beneath a `**`, as a scan
MOST_LINKS: Final = 8  # from one file to where it really is

UNWATCHED: Final = 0  # left to the timer
POLLED: Final = -1  # its files are looked at again and again

Key = tuple[int, str] | str
"""A candidate file: its watch and name or, in a directory that is not watched, its path."""

Present = dict[Key, tuple[tuple[int, ...], frozenset[int]]]
"""The candidate files that are there: what they looked like (only where polled), and their locations."""


class Watch(Protocol):
    """Watches one open directory: gives the watch's number, UNWATCHED or POLLED."""

    def __call__(self, directory: int, *, busy: bool) -> int:
        """`busy` asks for every single write."""


class Survey(Walker):
    """See the module; `names` are what to look out for by watch, `present` the files that were there."""

    def __init__(self, anchor: Anchor, watch: Watch, *, follow: bool = False) -> None:
        """`follow`: a file may be a link into the home (`scan.link_roots` has "~")."""
        super().__init__()
        self._root = self.add(anchor).root
        self._watch = watch
        self._links_in = follow
        self._keys: dict[int, int] = {}  # by descriptor
        self._todo: list[tuple[int, int, str]] = []
        self._nodes: dict[str, dict[Node, int]] = {}
        self.names: dict[int, Names] = {}
        self.present: Present = {}
        self._listed = 0
        self.polled = False
        self.full = False

    def run(self, tree: Node) -> None:
        """Walk everything that the tree of locations leads to. Raises nothing but for bugs."""
        self._later("", tree, rank=0, deep=0)
        visited = 0
        while self._todo:
            path = heapq.heappop(self._todo)[2]
            if visited == MOST_VISITED:
                self.full = True
                return
            visited += 1
            self.trim()
            nodes = self._nodes.pop(path)
            with contextlib.suppress(Absent, Refused, OSError):
                self._visit(path, self.locate(self._root, path)[0] if path else self._root, nodes)

    def forget(self) -> None:
        """Also forget what was known by descriptor."""
        self._keys.clear()
        super().forget()

    def step(self, here: Dir, name: str, links: int) -> tuple[Dir, int]:
        """Walk one component, and look out for its coming and going."""
        names = self._named(here)
        if names is not None:
            names.step(name)
        return super().step(here, name, links)

    # -- one directory -----------------------------------------------------------------------------

    def _visit(self, path: str, here: Dir, found: dict[Node, int]) -> None:
        """Look out for what may follow, note the files, and queue the directories."""
        nodes = closure(found)
        self._key(here, busy=any(node.busy for node in nodes))
        names = self._named(here)
        if names is not None:
            names.stand_for(nodes)
        entries: dict[str, int] | None = None
        for node in nodes:
            for name, child in node.exact.items():
                self._meet(path, here, name, child)
            if not (node.wild or node.repeats):
                continue
            if entries is None:
                entries = self._list(here)
            self._meet_listed(path, here, entries, (node, found.get(node, 0)))

    def _meet_listed(self, path: str, here: Dir, entries: dict[str, int], at: tuple[Node, int]) -> None:
        """Take what a wildcard stands for; `at` is its node, and how deep beneath a `**` this is."""
        node, deep = at
        for name, kind in entries.items():
            for child in node.following(name):
                self._meet(path, here, name, child, kind)
            if node.repeats and kind == DIRECTORY and deep < MOST_DEEP:
                self._later(f"{path}/{name}", node, rank=node.rank, deep=deep + 1)

    def _list(self, here: Dir) -> dict[str, int]:
        """List a directory; one that cannot be listed, or has too many entries for a scan, is empty."""
        if self._listed >= MOST_LISTED:
            self.full = True
            return {}
        try:
            entries = listing(here)
        except (Absent, Refused):
            return {}
        self._listed += len(entries)
        return entries

    def _meet(self, path: str, here: Dir, name: str, child: Node, kind: int = DIRECTORY) -> None:
        """Take a name that may be a file or a directory of the table."""
        if child.ends:
            self._note(path, here, name, child.ends)
        if child.inner and kind != OTHER:
            self._later(f"{path}/{name}" if path else name, child, rank=child.rank, deep=0)

    def _later(self, path: str, node: Node, *, rank: int, deep: int) -> None:
        """Queue a directory: those of few wildcards first, then those near the home."""
        nodes = self._nodes.get(path)
        if nodes is None:
            nodes = self._nodes[path] = {}
            heapq.heappush(self._todo, (rank, path.count("/"), path))
        nodes.setdefault(node, deep)

    # -- watches -----------------------------------------------------------------------------------

    def _key(self, here: Dir, *, busy: bool = False) -> int:
        """Watch a held directory, unless it is watched; give the watch's number, UNWATCHED or POLLED."""
        key = self._keys.get(here.fd)
        if key is None:
            if len(self.names) < MOST_WATCHED:
                key = self._watch(here.fd, busy=busy)
            else:
                key = UNWATCHED
                self.full = True
            self._keys[here.fd] = key
            self.polled = self.polled or key == POLLED
        elif busy and key > 0:
            self._watch(here.fd, busy=True)
        return key

    def _named(self, here: Dir) -> Names | None:
        """Give the names of a held directory; None when it is not watched."""
        key = self._key(here)
        return self.names.setdefault(key, Names()) if key > 0 else None

    # -- files -------------------------------------------------------------------------------------

    def _note(self, path: str, here: Dir, name: str, ends: Iterable[int]) -> None:
        """Note a candidate file when it is there."""
        key = self._key(here)
        try:
            seen = os.lstat(name, dir_fd=here.fd)
        except (OSError, ValueError):
            return
        looks = _looks(seen) if key == POLLED else ()
        if self._links_in and stat.S_ISLNK(seen.st_mode):
            looks += self._end_of_link(here, name, ends)
        place: Key = (key, name) if key > 0 else f"{path}/{name}"
        known = self.present.get(place)
        self.present[place] = looks, known[1].union(ends) if known else frozenset(ends)

    def _end_of_link(self, here: Dir, name: str, ends: Iterable[int]) -> tuple[int, ...]:
        """Look out for a file under the name that it really has; give what it looks like, where polled."""
        with contextlib.suppress(Absent, Refused, OSError):
            for _ in range(MOST_LINKS):
                target = os.readlink(name, dir_fd=here.fd)
                parts = components(target)
                if target.startswith("/"):
                    below = here.anchor.beneath(parts)
                    if below is None:
                        break
                    here, parts = self._root, below
                if not parts or parts[-1] == "..":
                    break
                here, _ = self.resolve(here, parts[:-1], 0)
                name = parts[-1]
                names = self._named(here)
                if names is not None:
                    names.file(name, ends)
                    names.step(name)  # it may be a link itself, pointed elsewhere one day
                seen = os.lstat(name, dir_fd=here.fd)
                if not stat.S_ISLNK(seen.st_mode):
                    return _looks(seen) if self._key(here) == POLLED else (seen.st_dev, seen.st_ino)
        return ()


def _looks(seen: os.stat_result) -> tuple[int, ...]:
    """Give what changes when a file is written, replaced, or its rights change."""
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def difference(before: Present, after: Present) -> set[int]:
    """Give the locations whose files came, went, or look different."""
    changed: set[int] = set()
    for place in before.keys() | after.keys():
        old, new = before.get(place), after.get(place)
        if old is None or new is None or old[0] != new[0]:
            changed.update(*(one[1] for one in (old, new) if one is not None))
    return changed
