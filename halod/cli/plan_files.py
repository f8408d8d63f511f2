# SPDX-License-Identifier: Apache-2.0
"""The directory that `halo plan` writes and compares with: files below it as on a machine, and a manifest.

Invariants:

1. No link is followed below the directory, nor at its own name: what stands at a path is what was written there.
2. A file is replaced whole or not at all; the manifest comes last, so one that fits its files is complete.
3. A directory that holds something else is never written into, and only files of an earlier manifest are removed.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from halod.errors import UsageError
from halod.policy.rendering.manifest import NAME, Manifest, Plan, decode, encode

MAX_BYTES: Final = 64 << 20
"""Of one file that is read back; the manifest of 5,000 servers is 10 MB."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SAID: Final = {
    errno.ELOOP: "it holds a symbolic link, or is one",
    errno.EINVAL: "it holds something that is no regular file where a file should be",
}
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_output(directory: str) -> dict[str, bytes]:
    """Read the files of an earlier output by their paths on a machine; one that is gone counts as absent.

    Raises:
        UsageError: it is none of ours, holds a link, or cannot be read.
    """
    with _faults(directory, "read"), _opened(directory) as root:
        manifest = _manifest(root)
        if manifest is None:
            raise UsageError(
                f"{directory} has no {NAME} of halo plan", advice="name a directory that --out wrote"
            )
        found = {}
        for listed in manifest.files:
            content = _read(root, _parts(listed.path))
            if content is not None:
                found[listed.path] = content
        return found


def write_output(directory: str, plan: Plan) -> list[str]:
    """Write a plan into a directory, made if need be; gives the paths of an earlier plan that were removed.

    Raises:
        UsageError: the directory holds something else or a link, or cannot be written.
    """
    with _faults(directory, "write"):
        with suppress(FileExistsError):
            os.makedirs(directory)
        with _opened(directory) as root:
            earlier = _manifest(root)
            if earlier is None and os.listdir(root):
                raise UsageError(
                    f"{directory} is not empty and has no {NAME} of halo plan",
                    advice="name a new directory, or one that --out wrote",
                )
            for file in plan.files:
                _write(root, _parts(file.path), file.content, int(file.mode, 8))
            now = {file.path for file in plan.files}
            gone = [listed.path for listed in earlier.files if listed.path not in now] if earlier else []
            for path in gone:
                _remove(root, _parts(path))
            _write(root, (NAME,), encode(plan.manifest), 0o644)
            return gone


@contextmanager
def _faults(directory: str, what: str) -> Iterator[None]:
    """Tell what the system refuses as a fault of the directory that was named."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        if error.errno in _SAID:
            reason = _SAID[error.errno]
        raise UsageError(
            f"cannot {what} {directory}: {reason}", advice="name a directory that this account owns"
        ) from None


@contextmanager
def _opened(directory: str) -> Iterator[int]:
    """Open a directory that is no link itself; what lies above it is the caller's choice."""
    path = directory.rstrip("/") or "/"
    if os.path.islink(path):
        raise OSError(errno.ELOOP, "")
    descriptor = os.open(path, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _parts(path: str) -> tuple[str, ...]:
    """Split a path on a machine. An earlier manifest may have been edited: nothing leads above the directory.

    Nor does a name steer a terminal, or end the line of a diff that it stands in.
    """
    parts = tuple(path.removeprefix("/").split("/"))
    if not all(parts) or ".." in parts or "." in parts or not path.isprintable():
        raise UsageError(
            f"the {NAME} there has a path that leads elsewhere or cannot be shown",
            advice="write into a new directory",
        )
    return parts


@contextmanager
def _parent(root: int, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """Open the directory of a file, one component after the other, none of them a link."""
    current = os.dup(root)
    try:
        for name in parts[:-1]:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=current)
            below = _step(current, name)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _step(current: int, name: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=current)
    except NotADirectoryError:  # Linux says so of a link, too
        if stat.S_ISLNK(os.lstat(name, dir_fd=current).st_mode):
            raise OSError(errno.ELOOP, "") from None
        raise


def _write(root: int, parts: tuple[str, ...], content: bytes, mode: int) -> None:
    with _parent(root, parts, make=True) as parent:
        name = parts[-1]
        with suppress(FileNotFoundError):
            _check_regular(os.lstat(name, dir_fd=parent).st_mode)
        fresh = f".{name}.{os.getpid()}"
        try:
            with os.fdopen(os.open(fresh, _NEW, 0o600, dir_fd=parent), "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), mode)
                file.flush()
                os.fsync(file.fileno())
            os.rename(fresh, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=parent)
            raise


def _remove(root: int, parts: tuple[str, ...]) -> None:
    with suppress(FileNotFoundError), _parent(root, parts) as parent:
        os.unlink(parts[-1], dir_fd=parent)


def _read(root: int, parts: tuple[str, ...]) -> bytes | None:
    """Read a regular file; None when it is not there."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        with (
            _parent(root, parts) as parent,
            os.fdopen(os.open(parts[-1], flags, dir_fd=parent), "rb") as file,
        ):
            _check_regular(os.fstat(file.fileno()).st_mode)
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(content) > MAX_BYTES:
        raise OSError(errno.EFBIG, "")
    return content


def _check_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.ELOOP if stat.S_ISLNK(mode) else errno.EINVAL, "")


def _manifest(root: int) -> Manifest | None:
    data = _read(root, (NAME,))
    return None if data is None else decode(data)
