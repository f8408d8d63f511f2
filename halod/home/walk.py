# SPDX-License-Identifier: Apache-2.0
"""Directory components, opened one by one from an anchor (design 3.1).

Invariants:

1. A `Dir` is a real directory: it was opened by one name from its parent's descriptor with O_NOFOLLOW, so
   where the path leads cannot be changed by whoever renames, links or replaces things meanwhile.
2. The chain of `Dir.parent` is the stack of held descriptors. `..` in a link's target goes to the parent of
   that chain; the kernel never sees it, so a directory that is moved during the walk leads nowhere else.
3. Descriptors are bounded (`MAX_HELD`; a worker has 128) and belong to the `Walker`, which closes them all.

The kernel's own confined walk (openat2 with RESOLVE_BENEATH) refuses every absolute link and does not exist
on macOS, so it is not used.
"""

import errno
import os
import stat
from collections.abc import Sequence

from halod.home.fault import Absent, Refused, fault

MAX_LINKS = 40  # as Linux counts them (path_resolution(7)); macOS allows 32
MAX_HELD = 96  # descriptors held; a walk that needs more ends in EMFILE
KEEP = 32  # descriptors kept from one walk to the next: each walk can have MAX_HELD - KEEP
MAX_ENTRIES = 1000  # of one directory (design 3.8)

OTHER, DIRECTORY, LINK = 0, 1, 2  # what a listing says of an entry; only a hint, opening decides

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A directory one may pass but not list (mode 0711, as /home often is): Linux O_PATH, macOS O_SEARCH. Without
# either the first, refused open stands.
_PASS = getattr(os, "O_PATH", getattr(os, "O_SEARCH", 0))
_SWAPS = 3  # how often a name may turn from link to directory under our hands


class Anchor:
    """Where a walk begins and what it may not leave.

    `prefixes` are the spellings of the anchor's absolute path, as components. `top` is the anchor `/`, whose
    `..` is itself. `owned_links`: follow only links that root made, to places in directories of root's.
    """

    __slots__ = ("owned_links", "prefixes", "root", "top")

    def __init__(
        self,
        fd: int,
        prefixes: Sequence[list[str]],
        *,
        listable: bool = True,
        top: bool = False,
        owned_links: bool = False,
    ) -> None:
        self.root = Dir(self, None, "", fd, listable=listable)
        self.prefixes = prefixes
        self.top = top
        self.owned_links = owned_links

    def beneath(self, parts: list[str]) -> list[str] | None:
        """Give the rest of an absolute path's components below this anchor; None when it is not below."""
        for prefix in self.prefixes:
            if parts[: len(prefix)] == prefix:
                return parts[len(prefix) :]
        return None


class Dir:
    """An open directory. `entries` keeps its listing, name to OTHER, DIRECTORY or LINK."""

    __slots__ = ("anchor", "children", "entries", "fd", "listable", "name", "parent")

    def __init__(self, anchor: Anchor, parent: "Dir | None", name: str, fd: int, *, listable: bool) -> None:
        self.anchor = anchor
        self.parent = parent
        self.name = name
        self.fd = fd
        self.listable = listable
        self.children: dict[str, Dir] = {}
        self.entries: dict[str, int] | None = None


class Walker:
    """Walks paths and owns every directory descriptor below the anchors it walks from."""

    def __init__(self) -> None:
        self._anchors: list[Anchor] = []
        self._held: list[Dir] = []
        self._found: dict[str, tuple[Dir, int]] = {}
        self._failed: dict[str, tuple[str, str]] = {}

    def add(self, anchor: Anchor) -> Anchor:
        """Take over an anchor's descriptor."""
        self._anchors.append(anchor)
        return anchor

    def locate(self, root: Dir, path: str) -> tuple[Dir, int]:
        """Give the directory at a plain relative path, and how many links led there.

        Remembers both what it found and what it did not, so that many candidate paths in few directories
        cost little. All calls must give the same `root`. Raises Absent or Refused.
        """
        known = self._found.get(path)
        if known is not None:
            return known
        if path in self._failed:
            raise self._again(path)
        here, links, missing = root, 0, []
        prefix = path
        while prefix and prefix not in self._found:
            if prefix in self._failed:
                raise self._again(prefix)
            prefix, _, name = prefix.rpartition("/")
            missing.append(name)
        if prefix:
            here, links = self._found[prefix]
        while missing:
            name = missing.pop()
            prefix = f"{prefix}/{name}" if prefix else name
            try:
                here, links = self.step(here, name, links)
            except Absent:
                self._failed[prefix] = ("", "")
                raise
            except Refused as refusal:
                self._failed[prefix] = (refusal.reason, refusal.errno)
                raise
            self._found[prefix] = here, links
        return here, links

    def _again(self, path: str) -> Absent | Refused:
        reason, name = self._failed[path]
        return Refused(reason, name) if reason else Absent()

    def resolve(self, here: Dir, parts: Sequence[str], links: int) -> tuple[Dir, int]:
        """Walk components, which may hold `..`, from a held directory. Raises Absent or Refused."""
        for part in parts:
            if part != "..":
                here, links = self.step(here, part, links)
            elif here.parent is not None:
                here = here.parent
            elif not here.anchor.top:
                raise Refused("escapes-home")
        return here, links

    def step(self, here: Dir, name: str, links: int) -> tuple[Dir, int]:
        """Walk one component: a real directory, or a link that ends at one below the same anchor."""
        child = here.children.get(name)
        if child is not None:
            return child, links
        for _ in range(_SWAPS):
            try:
                return self._enter(here, name), links
            except OSError as error:
                # A link is refused with ENOTDIR on Linux, where O_DIRECTORY is judged first, ELOOP on macOS.
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise fault(error) from None
            link = _read_link(here, name)
            if link is not None:
                return self._follow(here, link, links + 1)
        raise Refused("changed")

    def _enter(self, here: Dir, name: str) -> Dir:
        if len(self._held) >= MAX_HELD:
            raise Refused("error", "EMFILE")
        fd, listable = open_directory(name, here.fd)
        child = Dir(here.anchor, here, name, fd, listable=listable)
        here.children[name] = child
        self._held.append(child)
        return child

    def _follow(self, here: Dir, target: str, links: int) -> tuple[Dir, int]:
        if links > MAX_LINKS:
            raise Refused("error", "ELOOP")
        parts = components(target)
        if target.startswith("/"):
            below = here.anchor.beneath(parts)
            if below is None:
                raise Refused("escapes-home")
            here, parts = here.anchor.root, below
        end, links = self.resolve(here, parts, links)
        if end.anchor.owned_links and end.parent is not None and os.fstat(end.parent.fd).st_uid != 0:
            raise Refused("home-unavailable")
        return end, links

    def trim(self) -> None:
        """Make room for a walk. A Dir from before it may be closed after it."""
        if len(self._held) > KEEP:
            self.forget()

    def forget(self) -> None:
        """Close every directory but the anchors', and drop what is remembered of paths and listings."""
        for anchor in self._anchors:
            anchor.root.children.clear()
            anchor.root.entries = None
        self._found.clear()
        self._failed.clear()
        while self._held:
            os.close(self._held.pop().fd)

    def close(self) -> None:
        """Close every directory, the anchors' too. May be called again."""
        self.forget()
        while self._anchors:
            os.close(self._anchors.pop().root.fd)


def components(path: str) -> list[str]:
    """Split a path; empty components and `.` mean nothing, `..` is kept."""
    return [part for part in path.split("/") if part not in ("", ".")]


def open_directory(name: str, dir_fd: int | None = None) -> tuple[int, bool]:
    """Open one real directory; the second value says whether it can be listed. Raises OSError."""
    try:
        return os.open(name, _OPEN, dir_fd=dir_fd), True
    except PermissionError as error:
        if error.errno != errno.EACCES or not _PASS:
            raise
    return os.open(name, _OPEN | _PASS, dir_fd=dir_fd), False


def _read_link(here: Dir, name: str) -> str | None:
    """Read a link's target; None when it is a link no more. Raises Absent for what no path leads through."""
    try:
        before = os.lstat(name, dir_fd=here.fd)
        if stat.S_ISDIR(before.st_mode):
            return None
        if not stat.S_ISLNK(before.st_mode):
            raise Absent
        target = os.readlink(name, dir_fd=here.fd)
        if here.anchor.owned_links:
            # The owner counts here, so the link that was judged must be the one that was read.
            after = os.lstat(name, dir_fd=here.fd)
            if before.st_uid != 0 or (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino):
                raise Refused("home-unavailable")
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None  # swapped since it was refused as a directory: look again
        raise fault(error) from None
    return target


def listing(here: Dir) -> dict[str, int]:
    """List a directory: each name with OTHER, DIRECTORY or LINK, sorted by name.

    Raises Refused, "too-many-entries" for more than MAX_ENTRIES: which of them one would see is chance.
    """
    if here.entries is None:
        if not here.listable:
            raise Refused("unreadable")
        entries: dict[str, int] = {}
        try:
            # Stops early, so a directory of millions costs as little as one of a thousand. The descriptor's
            # offset is shared with scandir's duplicate; leaving the block rewinds it.
            with os.scandir(here.fd) as scan:
                for entry in scan:
                    if len(entries) == MAX_ENTRIES:
                        raise Refused("too-many-entries")
                    entries[entry.name] = _kind(entry)
        except OSError as error:
            raise fault(error) from None
        here.entries = dict(sorted(entries.items()))
    return here.entries


def _kind(entry: os.DirEntry[str]) -> int:
    try:
        if entry.is_symlink():
            return LINK
        return DIRECTORY if entry.is_dir(follow_symlinks=False) else OTHER
    except OSError:
        return DIRECTORY  # unknown: opening it will tell
