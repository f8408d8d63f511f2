# SPDX-License-Identifier: Apache-2.0
"""One agent per state directory: an advisory lock on a file in it (flock(2)).

Whoever removes or replaces the file takes the lock's meaning away, so its inode is looked at again: right after
locking, and by `holds` from then on.
"""

import fcntl
import os
import time
from typing import Final

from halod.errors import EnvironmentFault

FILE_NAME: Final = "lock"
_ATTEMPTS: Final = 10


class Lock:
    """The lock, held until `release` or the process's end."""

    def __init__(self, directory: str) -> None:
        """Take no lock yet."""
        self._path = os.path.join(directory, FILE_NAME)
        self._descriptor = -1

    def take(self, patience: float = 0.0) -> None:
        """Take the lock, within `patience` seconds.

        Raises:
            EnvironmentFault: another agent holds it, or the directory cannot be used.
        """
        end = time.monotonic() + patience
        while not self._try():
            if time.monotonic() >= end:
                raise EnvironmentFault(
                    f"another halod uses the state directory {os.path.dirname(self._path)}",
                    advice="halod status shows what it does",
                )
            time.sleep(0.05)

    def _try(self) -> bool:
        for _ in range(_ATTEMPTS):
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
                self._descriptor = os.open(self._path, flags, 0o600)
            except OSError as error:
                raise EnvironmentFault(
                    f"cannot use the state directory {os.path.dirname(self._path)}:"
                    f" {os.strerror(error.errno or 0)}",
                    advice="it must belong to the agent's account; halod check says more",
                ) from None
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.release()
                return False
            if self.holds():
                return True
            self.release()  # replaced between open and lock
        return False

    def holds(self) -> bool:
        """Tell whether the locked file is still the one at its path."""
        try:
            there = os.lstat(self._path)
        except OSError:
            return False
        if self._descriptor < 0:
            return False
        here = os.fstat(self._descriptor)
        return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)

    def release(self) -> None:
        """Give the lock back; the file stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
