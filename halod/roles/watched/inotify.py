# SPDX-License-Identifier: Apache-2.0
"""Linux's file events, through watchdog's bindings; the only module that imports watchdog.

Imported by a watcher in its own process, never by the supervisor. Of watchdog only the bindings of its inotify
back-end are used, one inotify instance for all directories: its observers start a thread for each watch (a
confined watcher has no threads), name directories by path (which the account can swap between the look and
the watch), and tell an overflow to a log only.

Invariants:

1. A directory is watched by its open descriptor: `fchdir` to it, then ".". The working directory goes back to
   `/` with `rest`, so that no home is kept from being unmounted.
2. The instance is made after the change of uid, so that it counts against the account's own limits.
3. watchdog's loggers are silent: what it would say names paths.
"""

import ctypes
import errno
import logging
import os
import struct
from typing import Final

from watchdog.observers.inotify_c import (
    InotifyConstants,
    inotify_add_watch,
    inotify_init,
    inotify_rm_watch,
)

logging.getLogger("watchdog").setLevel(logging.CRITICAL + 1)

# Attributes, as a file that becomes unreadable is a finding; no reads, opens or single writes.
_MASK: Final = int(
    InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_MOVE
    | InotifyConstants.IN_CREATE
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_ATTRIB
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR
    | InotifyConstants.IN_EXCL_UNLINK
    | InotifyConstants.IN_MASK_ADD  # what a directory was asked for once stays asked for
)
_LIMITS: Final = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_HEAD: Final = struct.Struct("iIII")  # watch, mask, cookie, length of the name (inotify(7))
_CHUNK: Final = 65536

Event = tuple[int, int, str]
"""A watch, a mask, and a name in its directory: "" for the directory itself."""


class Exhausted(Exception):
    """The account may have no more inotify instances."""


class Inotify:
    """One instance. `limited` is set once the system refused a watch because there are too many."""

    def __init__(self) -> None:
        """Raise Exhausted, or OSError when there is no inotify."""
        self._descriptor = inotify_init()
        if self._descriptor == -1:
            code = ctypes.get_errno()
            if code in _LIMITS:
                raise Exhausted
            raise OSError(code, "inotify_init")
        os.set_blocking(self._descriptor, False)
        self.limited = False

    def fileno(self) -> int:
        """Give the descriptor that becomes readable with events."""
        return self._descriptor

    def add(self, directory: int, *, busy: bool = False) -> int:
        """Watch an open directory and give the watch's number, the same for the same directory; 0: refused.

        `busy` asks for every single write in it too.
        """
        try:
            os.fchdir(directory)
        except OSError:
            return 0
        watch = int(inotify_add_watch(self._descriptor, b".", _MASK | InotifyConstants.IN_MODIFY * busy))
        if watch != -1:
            return watch
        if ctypes.get_errno() in _LIMITS:
            self.limited = True
        return 0

    def rest(self) -> None:
        """Leave the directory that was watched last."""
        os.chdir("/")

    def remove(self, watch: int) -> None:
        """Watch a directory no more; one that is gone already is none."""
        inotify_rm_watch(self._descriptor, watch)  # type: ignore[arg-type] # a NewType of theirs

    def read(self) -> list[Event]:
        """Give the events that wait, at most about a thousand."""
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return []
        return parse(data)

    def close(self) -> None:
        """Give the instance back, with all its watches."""
        os.close(self._descriptor)


def parse(data: bytes) -> list[Event]:
    """Cut what the kernel gave into events."""
    events = []
    at = 0
    while at + _HEAD.size <= len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        events.append((watch, mask, os.fsdecode(data[at : at + length].rstrip(b"\0"))))
        at += length
    return events
