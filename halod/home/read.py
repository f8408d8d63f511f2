# SPDX-License-Identifier: Apache-2.0
"""The final component: judged, opened without following or blocking, read, judged again (design 3.2-3.4).

Invariant: the bytes handed out were read from one regular file that had the same device and inode before and
after the open, and the same size, mtime and ctime before and after the read. `Changed` says that it was not
so; the caller tries once more.
"""

import errno
import os
import stat

import msgspec

from halod.home.fault import Refused, fault

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_RECENT = 1.0  # seconds: a file that does not parse may still be in the middle of being written (design 3.4)


class Changed(Exception):
    """The file was swapped or written to between two looks at it."""


class File(msgspec.Struct, gc=False):
    """The bytes of one file, and its identity.

    `data` belongs to the caller, who may change it in place. `recent`: the file changed (ctime) less than one
    second before it was read, so content that does not parse deserves `Home.reread`.
    """

    data: bytearray
    device: int
    inode: int
    recent: bool = False

    def __repr__(self) -> str:
        """Give the type's name only: the bytes are the user's."""
        return "<File>"


class Rules(msgspec.Struct, frozen=True):
    """Who may own a file and how large it may be, in bytes.

    `owners` are uids. With more than one hard link only a file of `linker` is read, the account that could
    have made the link; None where an account makes none (a link root of root's).
    """

    owners: tuple[int, ...]
    linker: int | None
    max_bytes: int


def judge(found: os.stat_result, rules: Rules) -> None:
    """Raise Refused unless the rules allow to read such a file."""
    if not stat.S_ISREG(found.st_mode):
        raise Refused("not-regular")
    if found.st_uid not in rules.owners:
        raise Refused("wrong-owner")
    if found.st_nlink > 1 and rules.linker not in (None, found.st_uid):
        raise Refused("hard-linked")
    if found.st_size > rules.max_bytes:
        raise Refused("too-large")


def read_file(dir_fd: int, name: str, seen: os.stat_result, rules: Rules, now: float) -> File:
    """Read one file of a held directory; `seen` is its lstat, `now` the time in seconds since the epoch.

    Raises Refused, or Changed when the file is not the one that was seen or did not hold still.
    """
    judge(seen, rules)
    try:
        fd = os.open(name, _OPEN, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Refused("symlink") from None
        if error.errno == errno.ENOENT:
            raise Changed from None
        raise fault(error) from None
    try:
        return _read_open(fd, seen, rules, now)
    except OSError as error:
        raise fault(error) from None
    finally:
        os.close(fd)


def _read_open(fd: int, seen: os.stat_result, rules: Rules, now: float) -> File:
    before = os.fstat(fd)
    if (before.st_dev, before.st_ino) != (seen.st_dev, seen.st_ino) or not stat.S_ISREG(before.st_mode):
        raise Changed
    judge(before, rules)
    data = _read_bytes(fd, before.st_size)
    after = os.fstat(fd)
    if len(data) != before.st_size or _marks(after) != _marks(before):
        raise Changed
    return File(data, before.st_dev, before.st_ino, now - before.st_ctime < _RECENT)


def _marks(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read_bytes(fd: int, size: int) -> bytearray:
    """Read at most `size` + 1 bytes: the one more shows that the file grew. No second copy is made."""
    try:
        data = bytearray(size + 1)
    except MemoryError:
        raise Refused("error", "ENOMEM") from None
    filled = 0
    with memoryview(data) as view:
        while filled <= size:
            count = os.readv(fd, [view[filled:]])
            if count == 0:
                break
            filled += count
    del data[filled:]
    return data
