# SPDX-License-Identifier: Apache-2.0
"""What a watcher says on its pipe: three bytes a frame, a kind and a location number (big-endian).

Invariant: no path, name or byte of a home can be put into a frame. The number is 0 for all but `changed`.
"""

import os
import select
import struct
from typing import Final, Literal

Kind = Literal["changed", "limited", "overflow", "watching"]

MAX_LOCATION: Final = 0xFFFF
SIZE: Final = 3

_FRAME: Final = struct.Struct(">cH")
_BYTES: Final[dict[Kind, bytes]] = {"changed": b"c", "limited": b"l", "overflow": b"o", "watching": b"w"}
_KINDS: Final[dict[bytes, Kind]] = {byte: kind for kind, byte in _BYTES.items()}
_BATCH: Final = select.PIPE_BUF // SIZE  # of one write: up to PIPE_BUF bytes a pipe takes all or nothing


class Broken(Exception):
    """A watcher sent what is no frame; carries nothing of it."""


def encode(kind: Kind, location: int = 0) -> bytes:
    """Give one frame."""
    return _FRAME.pack(_BYTES[kind], location)


class Reader:
    """Cuts a watcher's bytes into frames, in the supervisor; feed it whatever has arrived."""

    def __init__(self, locations: int = MAX_LOCATION + 1) -> None:
        """`locations` is how many there are; a number beyond them is no frame."""
        self._locations = locations
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[Kind, int]]:
        """Take bytes and give the frames that are complete. Raises Broken, after which it is useless."""
        data = self._rest + data
        whole = len(data) - len(data) % SIZE
        self._rest = data[whole:]
        frames = []
        for byte, location in _FRAME.iter_unpack(data[:whole]):
            kind = _KINDS.get(byte)
            if kind is None or location >= self._locations or (location and kind != "changed"):
                raise Broken("not a frame")
            frames.append((kind, location))
        return frames


class Outbox:
    """Frames that wait for the pipe. A frame that waits already is not said twice, so it is bounded.

    The descriptor is made non-blocking: a supervisor that does not read must not keep a watcher from seeing
    that it is to end.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._waiting: dict[bytes, None] = {}

    def put(self, kind: Kind, location: int = 0) -> None:
        """Add a frame."""
        self._waiting[encode(kind, location)] = None

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
