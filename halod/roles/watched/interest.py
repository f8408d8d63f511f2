# SPDX-License-Identifier: Apache-2.0
"""Which names matter where: the table of locations as a tree, and as the names of one watched directory.

Pure. Patterns are those of `halod.home.match`: `*` within a component, `**` for real directories. Left out are
places that only another file points to (`pointed`): they are known when that file is read; the timer sees them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from halod.harnesses.dialect import Location
from halod.home.match import fits
from halod.roles.watched.frames import MAX_LOCATION

_LOG: Final = "-wal"  # SQLite writes here first, and to the database itself much later (design 3.9)


class Node:
    """One component of a pattern: what stands below it.

    `exact` and `wild` are the components that follow (a wild one is split at its `*`s), `deep` the node of a
    `**` that follows. `ends` are the locations that end here. `repeats`: this is a `**`. `busy`: a file here
    is written while it stays open. `rank` grows with the wildcards on the way here.
    """

    __slots__ = ("busy", "deep", "ends", "exact", "rank", "repeats", "wild")

    def __init__(self, *, rank: int = 0, repeats: bool = False) -> None:
        self.rank = rank
        self.exact: dict[str, Node] = {}
        self.wild: dict[tuple[str, ...], Node] = {}
        self.deep: Node | None = None
        self.ends: set[int] = set()
        self.repeats = repeats
        self.busy = False

    @property
    def inner(self) -> bool:
        """Whether something follows, that is whether this can be a directory."""
        return bool(self.exact or self.wild or self.deep)

    def follow(self, component: str) -> "Node":
        """Give the node of a component that follows, made when it is new."""
        if component == "**":
            self.deep = self.deep or Node(rank=self.rank + 2, repeats=True)
            return self.deep
        if "*" in component:
            return self.wild.setdefault(tuple(component.split("*")), Node(rank=self.rank + 1))
        return self.exact.setdefault(component, Node(rank=self.rank))

    def following(self, name: str) -> Iterator["Node"]:
        """Give the nodes of wild components that a name fits."""
        for pieces, child in self.wild.items():
            if fits(name, list(pieces)):
                yield child


def tree(locations: Sequence[Location]) -> Node:
    """Make the tree of all locations that are watched."""
    root = Node()
    for number, location in enumerate(locations[: MAX_LOCATION + 1]):
        *folders, name = location.path[2:].split("/")
        if location.place.pointed or name == "**":
            continue
        node = root
        for component in folders:
            node = node.follow(component)
        node.follow(name).ends.add(number)
        if location.format == "sqlite":
            node.follow(name + _LOG).ends.add(number)
            node.busy = True
    return root


def closure(nodes: Iterable[Node]) -> list[Node]:
    """Add the nodes that the same directory stands for, as a `**` may take no component."""
    found = list(dict.fromkeys(nodes))
    for node in found:  # grows while it is walked
        if node.deep is not None and node.deep not in found:
            found.append(node.deep)
    return found


class Names:
    """What is looked out for in one watched directory: names, each with the locations it is a file of.

    `below`: whether another look at the directories is due when something of that name comes or goes.
    """

    __slots__ = ("_any", "_exact", "_wild")

    def __init__(self) -> None:
        self._exact: dict[str, tuple[frozenset[int], bool]] = {}
        self._wild: dict[tuple[str, ...], tuple[frozenset[int], bool]] = {}
        self._any = False

    def step(self, name: str) -> None:
        """Look out for a directory, or a link to one, that a path leads through."""
        self._exact[name] = self._exact.get(name, (frozenset(), False))[0], True

    def file(self, name: str, ends: Iterable[int]) -> None:
        """Look out for a file of these locations."""
        known, below = self._exact.get(name, (frozenset(), False))
        self._exact[name] = known.union(ends), below

    def stand_for(self, nodes: Iterable[Node]) -> None:
        """Look out for everything that may follow these nodes."""
        for node in nodes:
            for name, child in node.exact.items():
                self.file(name, child.ends)
                if child.inner:
                    self.step(name)
            for pieces, child in node.wild.items():
                known, below = self._wild.get(pieces, (frozenset(), False))
                self._wild[pieces] = known.union(child.ends), below or child.inner
            self._any = self._any or node.repeats

    def match(self, name: str, *, directory: bool) -> tuple[frozenset[int], bool]:
        """Give the locations that a name is a file of, and `below`."""
        ends, below = self._exact.get(name, (frozenset(), False))
        for pieces, (more, inner) in self._wild.items():
            if fits(name, list(pieces)):
                ends, below = ends | more, below or inner
        return ends, below or (directory and self._any)
