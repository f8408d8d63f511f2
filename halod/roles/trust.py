# SPDX-License-Identifier: Apache-2.0
"""May root run this installation: could anybody else have written what it is made of (design 3)?

Every path is walked from `/`, component by component, links included: what could be replaced on the way
counts as much as the file at its end. A component is safe when root owns it and neither a group but root's
nor everybody may write it. A directory that everybody may write and whose sticky bit is set (`/tmp`) is safe
for an entry that root owns, since nobody else can rename or remove that. A POSIX ACL with a writable mask
counts as writable: its entries could name anybody. Not seen: ACLs of macOS, which only root sets on
root-owned files, and read-only mounts.
"""

import os
import posixpath
import stat
import sys
from collections.abc import Iterable, Iterator

import halod
from halod.errors import EnvironmentFault

_MOST_LINKS = 40
_ACL = "system.posix_acl_access"


def own_paths() -> list[str]:
    """Give what this process is made of: the interpreter, every entry of `sys.path`, the package's files."""
    package = posixpath.dirname(posixpath.abspath(halod.__file__))
    paths = [sys.executable, *(posixpath.abspath(entry) for entry in sys.path)]
    for directory, _, files in os.walk(
        getattr(sys, "_MEIPASS", package)
    ):  # a self-contained build's own tree
        paths += [directory, *(posixpath.join(directory, name) for name in files)]
    return paths


def check(paths: Iterable[str]) -> list[str]:
    """Give one sentence per thing on the way to these paths that a non-root user could write, sorted.

    A path that does not exist yet is fine where nobody but root can create it.
    """
    problems: set[str] = set()
    walked: set[tuple[str, bool, bool]] = set()
    plain: dict[str, bool] = {}
    for path in paths:
        if path:
            for seen, words in _walk(posixpath.abspath(path), walked, plain):
                problems.add(f"{seen} {words}")
    return sorted(problems)


def demand(paths: Iterable[str]) -> None:
    """Refuse to run as root what others could have written. Raises EnvironmentFault.

    Not running as root, nothing is demanded: the caller could only betray itself.
    """
    if os.geteuid() != 0:
        return
    named = check(paths)
    if named:
        raise EnvironmentFault(
            f"refusing to run as root: {_first(named)}",
            advice="give it to root and to nobody else to write: chown root it, chmod go-w it",
        )
    own = check(own_paths())
    if own:
        raise EnvironmentFault(
            f"refusing to run as root: {_first(own)}",
            advice="install halod where only root can write, for example with the system's package",
        )


def _first(problems: list[str]) -> str:
    return problems[0] + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else "")


def _walk(
    path: str, walked: set[tuple[str, bool, bool]], plain: dict[str, bool]
) -> Iterator[tuple[str, str]]:
    """Walk one absolute path; give what is wrong with the components that were not walked before.

    `plain` holds the directories that were walked as something to pass, without a link on the way, and whether
    each is shared: the hundreds of files of one package are not walked from `/` every time.
    """
    links = 0
    parent = posixpath.dirname(path)
    # `shared`: does `here` lie in a sticky directory that others may write?
    here, rest, shared = (path, [], plain[parent]) if parent in plain else ("/", _parts(path), False)
    while True:
        try:
            status = os.lstat(here)
        except OSError:
            if shared:
                yield here, "could be created by anybody"
            return
        if (here, shared, bool(rest)) not in walked:
            walked.add((here, shared, bool(rest)))
            yield from ((here, words) for words in _judge(here, status, shared=shared, passed=bool(rest)))
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MOST_LINKS:
                yield path, "has too many links"
                return
            target = os.readlink(here)
            rest += _parts(target)
            here = "/" if target.startswith("/") else posixpath.dirname(here)
            shared = _shared(os.lstat(here))
        else:
            shared = _shared(status)
            if not links and rest:
                plain[here] = shared
        if rest and rest[-1] == "..":
            here = _up(here, rest)
            shared = _shared(os.lstat(here))
        if not rest:
            return
        here = posixpath.join(here, rest.pop())


def _up(here: str, rest: list[str]) -> str:
    """Take the steps up that come next in `rest`, and give where they lead."""
    while rest and rest[-1] == "..":
        rest.pop()
        here = posixpath.dirname(here)
    return here


def _parts(path: str) -> list[str]:
    """Split a path into its components, the first one last."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _shared(status: os.stat_result) -> bool:
    """Whether a directory can be written by others, who cannot touch each other's entries."""
    return bool(status.st_mode & stat.S_ISVTX and status.st_mode & 0o022)


def _judge(path: str, status: os.stat_result, *, shared: bool, passed: bool) -> Iterator[str]:
    """Say what is wrong with one component; `passed` when the path goes on behind it.

    A link cannot be written, only replaced: its owner counts where its directory is shared.
    """
    link = stat.S_ISLNK(status.st_mode)
    if status.st_uid != 0 and (shared or not link):
        yield f"is owned by uid {status.st_uid}"
    if link or (passed and _shared(status)):
        return
    if status.st_mode & stat.S_IWOTH:
        yield "can be written by everybody"
    if status.st_mode & stat.S_IWGRP:
        if status.st_gid != 0:
            yield f"can be written by group {status.st_gid}"
        elif _has_acl(path):
            yield "can be written by those its ACL names"


def _has_acl(path: str) -> bool:
    """Whether a POSIX ACL lies on a path; the group bits of its mode are then the ACL's mask (acl(5))."""
    try:
        return bool(os.getxattr(path, _ACL))
    except (AttributeError, OSError):
        return False
