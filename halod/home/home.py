# SPDX-License-Identifier: Apache-2.0
"""`Home`: opening the anchor, reading a path, looking for one, expanding a pattern (design 3)."""

import os
import stat
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

from halod.home.fault import Absent, Refused, fault
from halod.home.match import Expander, Match
from halod.home.read import Changed, File, Rules, read_file
from halod.home.walk import (
    MAX_LINKS,
    Anchor,
    Dir,
    Walker,
    components,
    listing,
    open_directory,
)

MAX_FILE_BYTES = 128 * 1024 * 1024  # design 3.4


class Home:
    """A home directory held by one descriptor; every read is anchored there. Made by `Home.open`.

    Paths are relative to the home, with `/` between components; an absolute one raises Refused
    ("escapes-home"). Names that are not valid UTF-8 are written as Python does (surrogateescape).
    """

    def __init__(
        self,
        walker: Walker,
        anchor: Anchor,
        *,
        rules: Rules,
        link_rules: dict[Anchor, Rules],
        now: Callable[[], float],
    ) -> None:
        self._walker = walker
        self._anchor = anchor
        self._rules = rules
        self._link_rules = link_rules
        self._now = now
        self._expander = Expander(self._listing, self.exists)

    @classmethod
    def open(
        cls,
        path: str,
        *,
        uid: int,
        max_file_bytes: int = MAX_FILE_BYTES,
        link_roots: tuple[str, ...] = (),
        trusted_links: bool = True,
        now: Callable[[], float] = time.time,
    ) -> Self:
        """Open a home, with no more rights than the account's: call it after the uid change.

        Args:
            path: the home as in the password database, absolute.
            uid: the account; its files and root's are read.
            max_file_bytes: the largest file that is read.
            link_roots: where a link at the end of a path may end (setting `scan.link_roots`): "~", or
                absolute directories of root's. One that cannot be opened or is not root's allows nothing.
            trusted_links: links on the way to the home are followed only when root made them and their
                target's parent is root's: right for every account that a service looks up. False follows
                every link: for a person who names a directory (`scan --home`) and reads it with their own
                rights, where the path is their own word.
            now: the clock, in seconds since the epoch.

        Raises:
            Refused: "home-unavailable", whatever the cause.
        """
        walker = Walker()
        try:
            anchor = walker.add(open_anchor(path, owned_links=trusted_links))
            rules = Rules((uid, 0), uid, max_file_bytes)
            link_rules = {}
            for root in link_roots:
                if root == "~":
                    link_rules[anchor] = Rules((uid,), uid, max_file_bytes)
                elif (opened := _open_link_root(root)) is not None:
                    link_rules[walker.add(opened)] = Rules((0,), None, max_file_bytes)
        except (Absent, Refused, OSError, ValueError):
            walker.close()
            raise Refused("home-unavailable") from None
        return cls(walker, anchor, rules=rules, link_rules=link_rules, now=now)

    @property
    def fd(self) -> int:
        """The home's descriptor, for Landlock."""
        return self._anchor.root.fd

    @property
    def fds(self) -> tuple[int, ...]:
        """The descriptors of the home and of every link root: beneath these Landlock must allow to read."""
        roots = (anchor.root.fd for anchor in self._link_rules if anchor is not self._anchor)
        return self.fd, *roots

    def read(self, path: str, most: int | None = None) -> File:
        """Read one file; one that changes meanwhile is read once more. Raises Absent or Refused.

        `most` lowers the size in bytes above which a file is too large, for this file.
        """
        try:
            return self._read(path, most)
        except Changed:
            return self.reread(path, most)

    def reread(self, path: str, most: int | None = None) -> File:
        """Read a file once, walking there anew. Raises Absent or Refused.

        For a file that did not parse and is `recent`, and for one that was blank (design 3.4 and 3.7).
        """
        self._walker.forget()
        try:
            return self._read(path, most)
        except Changed:
            raise Refused("changed") from None

    def exists(self, path: str) -> bool:
        """Say whether something, be it a link, is there; it is not opened.

        Raises Refused when that cannot be told, as a directory on the way cannot be walked.
        """
        try:
            here, name, _ = self._place(path)
            os.lstat(name, dir_fd=here.fd)
        except Absent:
            return False
        except OSError as error:
            answer = fault(error)
            if isinstance(answer, Absent):
                return False
            raise answer from None
        return True

    def match(self, pattern: str) -> list[Match]:
        """Expand `*`, `**` and `{a,b}` (see `halod.home.match`) through anchored listings, sorted by path.

        A pattern without wildcard is given back unlooked-at. A directory that cannot be listed or walked
        gives a Match with `refused` set; nothing is raised.
        """
        return self._expander.expand(pattern)

    def close(self) -> None:
        """Close every descriptor. May be called again."""
        self._walker.close()

    def __enter__(self) -> Self:
        """Give the home itself; leaving the block closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, path: str, most: int | None) -> File:
        here, name, links = self._place(path)
        seen = _lstat(here, name)
        rules = self._rules
        if stat.S_ISLNK(seen.st_mode):
            here, name, seen = self._end_of_link(here, name, seen, links)
            rules = self._link_rules[here.anchor]
        if most is not None and most < rules.max_bytes:
            rules = msgspec.structs.replace(rules, max_bytes=most)
        return read_file(here.fd, name, seen, rules, self._now())

    def _place(self, path: str) -> tuple[Dir, str, int]:
        """Give the held directory of a path's last component, that component, and the links on the way."""
        _check(path)
        self._walker.trim()
        directory, _, name = path.rpartition("/")
        if "//" in path or "./" in path or name in ("", ".", ".."):
            return self._place_parts(self._anchor.root, components(path), 0)
        here, links = self._walker.locate(self._anchor.root, directory)
        return here, name, links

    def _place_parts(self, here: Dir, parts: list[str], links: int) -> tuple[Dir, str, int]:
        if not parts or parts[-1] == "..":
            raise Refused("not-regular")
        here, links = self._walker.resolve(here, parts[:-1], links)
        return here, parts[-1], links

    def _end_of_link(
        self, here: Dir, name: str, seen: os.stat_result, links: int
    ) -> tuple[Dir, str, os.stat_result]:
        """Follow a link at the end of a path to a place where one may end. Raises Absent or Refused.

        Links to links are followed (`~/.x -> /nix/store/a/.x -> /nix/store/b`): only where it ends counts.
        """
        if not self._link_rules:
            raise Refused("symlink")
        while stat.S_ISLNK(seen.st_mode):
            links += 1
            if links > MAX_LINKS:
                raise Refused("error", "ELOOP")
            try:
                target = os.readlink(name, dir_fd=here.fd)
            except OSError:
                raise Changed from None
            parts = components(target)
            if target.startswith("/"):
                here, parts = self._aim(parts)
            try:
                here, name, links = self._place_parts(here, parts, links)
            except Refused as refusal:
                raise (Refused("symlink") if refusal.reason == "escapes-home" else refusal) from None
            seen = _lstat(here, name)
        if here.anchor not in self._link_rules:
            raise Refused("symlink")
        return here, name, seen

    def _aim(self, parts: list[str]) -> tuple[Dir, list[str]]:
        for anchor in (self._anchor, *self._link_rules):
            below = anchor.beneath(parts)
            if below is not None:
                return anchor.root, below
        raise Refused("symlink")

    def _listing(self, path: str) -> dict[str, int]:
        _check(path)
        self._walker.trim()
        here, _ = self._walker.locate(self._anchor.root, path)
        return listing(here)


def _check(path: str) -> None:
    """Raise Absent for a text of a config that no file can be called, Refused for an absolute path."""
    try:
        if "\0" in path or (not path.isascii() and not os.fsencode(path)):
            raise Absent
    except UnicodeEncodeError:
        raise Absent from None
    if path.startswith("/"):
        raise Refused("escapes-home")


def _lstat(here: Dir, name: str) -> os.stat_result:
    try:
        return os.lstat(name, dir_fd=here.fd)
    except OSError as error:
        raise fault(error) from None


def open_anchor(path: str, *, owned_links: bool) -> Anchor:
    """Walk from / to a directory and hold it alone; `Home.open` for who walks without reading (a watcher).

    Raises Absent, Refused, OSError or ValueError.
    """
    if not path.startswith("/"):
        path = f"{os.getcwd()}/{path}"
    given = components(path)
    walker = Walker()
    try:
        fd, listable = open_directory("/")
        top = walker.add(Anchor(fd, [[]], listable=listable, top=True, owned_links=owned_links))
        here, _ = walker.resolve(top.root, given, 0)
        real: list[str] = []
        up = here
        while up.parent is not None:
            real.insert(0, up.name)
            up = up.parent
        # Spelled with `..` the given path says nothing about where it is.
        prefixes = [real] if ".." in given or given == real else [given, real]
        return Anchor(os.dup(here.fd), prefixes, listable=here.listable)
    finally:
        walker.close()


def _open_link_root(path: str) -> Anchor | None:
    """Open a directory of root's where links may end; None when it is not one."""
    if not path.startswith("/"):
        return None
    try:
        anchor = open_anchor(path, owned_links=True)
    except (Absent, Refused, OSError, ValueError):
        return None
    if os.fstat(anchor.root.fd).st_uid == 0:
        return anchor
    os.close(anchor.root.fd)
    return None
