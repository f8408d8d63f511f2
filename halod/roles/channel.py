# SPDX-License-Identifier: Apache-2.0
"""One end of the connection between supervisor and agent: whole messages in, whole messages out, no waiting.

What cannot be sent at once waits in memory; the owner asks `waiting` before it makes more. After `ended`
nothing comes any more: the other side closed, or sent what is no message (Broken).
"""

import socket
from collections import deque
from typing import Final, Literal

from halod.roles.protocol import Broken, Reader, ToAgent, ToSupervisor, frame

_CHUNK: Final = 256 * 1024


class Channel:
    """A socket that speaks the protocol; `side` is the one that holds this end."""

    def __init__(self, sock: socket.socket, side: Literal["agent", "supervisor"]) -> None:
        sock.settimeout(0)
        self._socket = sock
        self._reader = Reader(side)
        self._out: deque[memoryview] = deque()
        self.waiting = 0
        self.ended = False

    def fileno(self) -> int:
        """Give the descriptor, to wait on; -1 when closed."""
        return self._socket.fileno()

    def send(self, message: ToSupervisor | ToAgent) -> None:
        """Send one message, now or as the other side takes it. Raises Broken when it is too long."""
        data = frame(message)
        self._out.append(memoryview(data))
        self.waiting += len(data)
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as it goes; call it when the descriptor is writable."""
        while self._out and not self.ended:
            try:
                sent = self._socket.send(self._out[0])
            except BlockingIOError:
                return
            except OSError:
                self.ended = True
                return
            self.waiting -= sent
            if sent == len(self._out[0]):
                self._out.popleft()
            else:
                self._out[0] = self._out[0][sent:]

    def receive(self) -> list[ToSupervisor | ToAgent]:
        """Take what has arrived. Raises Broken: what arrived is no message, and nothing more can be read."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.ended = True
            return []
        try:
            return self._reader.feed(data)
        except Broken:
            self.ended = True
            raise

    def close(self) -> None:
        """Close this end; the other side sees it."""
        self.ended = True
        self._socket.close()
