# SPDX-License-Identifier: Apache-2.0
"""A person's tokens on disk: one file for each issuer, client and resource, in a directory of the person's alone.

Invariants:

1. The directory is 0700, a file 0600, both of this account; what is a link, has a second name or is open to others is
   not read. A file is made anew, synced and renamed: a crash leaves the old or the new one whole.
2. Whoever refreshes holds the lock of that file, and reads again once it has it: a refresh token that the server
   exchanges for another is used once.
"""

import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from halod.errors import EnvironmentFault
from halod.token.model import Asked, Clock, TokenRefused, Tokens, is_bearer

MAX_BYTES: Final = 64 * 1024
PATIENCE: Final = 60.0
"""Seconds for another halo that refreshes: it has three requests of 30 seconds at most, and mostly needs one."""
_STEP: Final = 0.05
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def default_directory() -> str:
    """Give `halo` in the person's state directory (XDG Base Directory Specification)."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        state = os.path.expanduser("~/.local/state")
    return os.path.join(state, "halo")


class Store:
    """The file of one kind of tokens in a directory, which is made when something is kept or locked."""

    def __init__(self, directory: str, asked: Asked, clock: Clock) -> None:
        """Open nothing yet."""
        self._directory = directory
        self._clock = clock
        self._asked = asked
        key = f"{asked.issuer}\0{asked.client_id}\0{asked.resource}"
        self._name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]

    def read(self) -> Tokens | None:
        """Give the tokens that are kept; None when there are none, or of other scopes, or not whole.

        Raises:
            EnvironmentFault: the directory or file is not this account's alone, or cannot be read.
        """
        with self._faults():
            try:
                with self._opened() as directory:
                    data = self._read(directory)
            except FileNotFoundError:
                return None
        try:
            found = msgspec.json.decode(data, type=Tokens)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return found if found.are_for(self._asked) and is_bearer(found.access_token) else None

    def write(self, tokens: Tokens) -> None:
        """Keep tokens in the place of those that are there.

        Raises:
            EnvironmentFault: it cannot be done; what was there is untouched.
        """
        with self._faults(), self._opened(make=True) as directory:
            fresh = f".{self._name}.{secrets.token_hex(4)}"
            try:
                with os.fdopen(os.open(fresh, _NEW, 0o600, dir_fd=directory), "wb") as file:
                    os.fchmod(file.fileno(), 0o600)
                    file.write(msgspec.json.encode(tokens))
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(fresh, f"{self._name}.json", src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(OSError):
                    os.unlink(fresh, dir_fd=directory)
                raise
            os.fsync(directory)

    def forget(self) -> bool:
        """Delete the tokens; tell whether there were any.

        Raises:
            EnvironmentFault: it cannot be done.
        """
        with self._faults():
            try:
                with self._opened() as directory:
                    os.unlink(f"{self._name}.json", dir_fd=directory)
                    os.fsync(directory)
            except FileNotFoundError:
                return False
        return True

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock, waiting for PATIENCE seconds at most.

        Raises:
            TokenRefused: another halo holds it all the time; EnvironmentFault: it cannot be taken.
        """
        with self._faults(), self._opened(make=True) as directory:
            descriptor = os.open(f"{self._name}.lock", _LOCK, 0o600, dir_fd=directory)
        try:
            with self._faults():
                self._take(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        _check_own(os.fstat(descriptor))
        end = self._clock.steady() + PATIENCE
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._clock.steady() >= end:
                    raise TokenRefused(
                        "another halo has been refreshing this token for a minute", advice="try again later"
                    ) from None
                self._clock.wait(_STEP)
            else:
                return

    def _read(self, directory: int) -> bytes:
        with os.fdopen(os.open(f"{self._name}.json", _READ, dir_fd=directory), "rb") as file:
            _check_own(os.fstat(file.fileno()))
            data = file.read(MAX_BYTES + 1)
        return data if len(data) <= MAX_BYTES else b""

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """Open the directory; it is closed to others where it is this account's."""
        if make:
            os.makedirs(os.path.dirname(self._directory), 0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(self._directory, 0o700)
        descriptor = os.open(self._directory, _DIRECTORY)
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid():
                raise OSError(errno.EPERM, "")
            if found.st_mode & 0o077:
                os.fchmod(descriptor, 0o700)
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            said = {
                errno.ELOOP: "it is, or holds, a symbolic link",
                errno.ENOTDIR: "it is no directory, or a symbolic link",
                errno.EPERM: "it, or a file in it, is not this account's alone",
            }
            why = said.get(error.errno or 0) or os.strerror(error.errno or errno.EIO)
            raise EnvironmentFault(
                f"cannot keep tokens in {self._directory}: {why}",
                advice="make it a directory of yours, mode 0700, and remove what is in it",
            ) from None


def _check_own(found: os.stat_result) -> None:
    """Refuse what others can read or write, and what has a second name."""
    alone = found.st_uid == os.geteuid() and found.st_nlink <= 1 and not found.st_mode & 0o077
    if not (stat.S_ISREG(found.st_mode) and alone):
        raise OSError(errno.EPERM, "")
