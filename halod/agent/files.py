# SPDX-License-Identifier: Apache-2.0
"""Small files of the agent's own, written so that a crash leaves the old or the new one whole.

Only for the agent's directories: nothing below a home is touched here.
"""

import contextlib
import errno
import os
import secrets
import stat


class NotRegular(OSError):
    """What stands where a file should be is something else: a link, a directory, a pipe."""


def prepare_directory(path: str) -> None:
    """Make a directory of the agent's own, mode 0700, or take the one that is there.

    Raises:
        OSError: it cannot be made, is no directory, or belongs to another account.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise NotRegular("not a directory of this account")
    if found.st_mode & 0o077:
        os.chmod(path, 0o700)


def read_small(path: str, limit: int) -> bytes | None:
    """Read a regular file of at most `limit` bytes; None when there is none.

    Raises:
        NotRegular: it is no regular file, or longer.
        OSError: it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotRegular("a symbolic link") from None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            raise NotRegular("not a regular file, or too long")
        return os.read(descriptor, limit)
    finally:
        os.close(descriptor)


def replace(path: str, data: bytes) -> None:
    """Write `data` to `path`, mode 0600: to a file beside it, synced, then renamed over it.

    Raises:
        NotRegular: something other than a regular file stands there; it is left alone.
        OSError: it cannot be written; the old file is untouched and nothing is left beside it.
    """
    refuse_irregular(path)
    beside = f"{path}.{secrets.token_hex(4)}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            _write(descriptor, data)
        finally:
            os.close(descriptor)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    sync_directory(os.path.dirname(path))


def refuse_irregular(path: str) -> None:
    """Raise NotRegular when something other than a regular file stands at `path`."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise NotRegular("not a regular file")


def sync_directory(path: str) -> None:
    """Make names in a directory durable."""
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    os.fchmod(descriptor, 0o600)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)
