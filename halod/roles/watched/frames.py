# SPDX-License-Identifier: Apache-2.0
"""What a watcher says on its pipe: three bytes a frame, a kind and a location number (big-endian).

The kinds are those of `halod.roles.watching`, which reads them. Invariant: no path, name or byte of a home can
be put into a frame. The number is 0 for all but CHANGED.
"""

import os
import select
import struct
from typing import Final

MAX_LOCATION: Final = 0xFFFF
SIZE: Final = 3

_FRAME: Final = struct.Struct(">BH")
_BATCH: Final = select.PIPE_BUF // SIZE  # of one write: up to PIPE_BUF bytes a pipe takes all or nothing


class Outbox:
    """Frames that wait for the pipe. A frame that waits already is not said twice, so it is bounded.

    The descriptor is made non-blocking: a supervisor that does not read must not keep a watcher from seeing
    that it is to end.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._waiting: dict[bytes, None] = {}

    def put(self, kind: int, location: int = 0) -> None:
        """Add a frame."""
        self._waiting[_FRAME.pack(kind, location)] = None

    @property
    def waiting(self) -> bool:
        """Whether there is something to say."""
        return bool(self._waiting)

    def flush(self) -> None:
        """Write what the pipe takes. Raises BrokenPipeError when nobody will ever read it."""
        while self._waiting:
            batch = list(self._waiting)[:_BATCH]
            try:
                os.write(self.descriptor, b"".join(batch))  # whole or not at all: at most PIPE_BUF bytes
            except BlockingIOError:
                return
            for frame in batch:
                del self._waiting[frame]
