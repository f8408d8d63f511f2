# SPDX-License-Identifier: Apache-2.0
"""The control socket: `halod status` and `halod scan --send` ask here (design 9).

Everybody on the machine may connect, so everything is bounded: CLIENTS at once, SECONDS for each,
REQUEST_BYTES of a request. Who floods takes the places of their own account, never root's nor another's.
Who asks is known from the kernel (SO_PEERCRED, LOCAL_PEERCRED), never from what the caller says. Nothing
here waits: the agent's loop calls `step` when a descriptor is ready.
"""

import os
import select
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from halod.agent.reply import REQUEST_BYTES, SOCKET_NAME, Refused, Request, Said
from halod.errors import EnvironmentFault

CLIENTS: Final = 16
SECONDS: Final = 5.0
_BACKLOG: Final = 4096
"""Callers who wait to be accepted: a full queue refuses whoever comes, root too. The kernel may lower it."""
_ACCEPTS: Final = 128  # in one step
_DECODER: Final = msgspec.json.Decoder(Request)
_ENCODER: Final = msgspec.json.Encoder()
_LOCAL_PEERCRED: Final = 1  # sys/un.h of macOS, at level SOL_LOCAL, which is 0; gives struct xucred

Handler = Callable[[Request, int], Said]
"""Answers a request of a caller, known by uid."""


class _Client:
    __slots__ = ("data", "deadline", "out", "sock", "uid")

    def __init__(self, sock: socket.socket, uid: int, deadline: float) -> None:
        self.sock = sock
        self.uid = uid
        self.deadline = deadline
        self.data = bytearray()
        self.out = memoryview(b"")


class Control:
    """The listening socket and its clients."""

    def __init__(
        self, directory: str, handler: Handler, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Listen in `directory`, which belongs to this account. Raises EnvironmentFault."""
        self._path = os.path.join(directory, SOCKET_NAME)
        self._handler = handler
        self._clock = clock
        self._clients: list[_Client] = []
        self._socket = _listen(self._path)

    def register(self, poll: select.poll) -> None:
        """Say what to wait for."""
        poll.register(self._socket.fileno(), select.POLLIN)
        for client in self._clients:
            poll.register(client.sock.fileno(), select.POLLOUT if client.out else select.POLLIN)

    def timeout(self) -> float | None:
        """Give the seconds until a client has had its time."""
        ends = [client.deadline for client in self._clients]
        return max(0.0, min(ends) - self._clock()) if ends else None

    def step(self) -> None:
        """Accept, read, answer, drop: whatever is possible now."""
        for _ in range(_ACCEPTS):
            if not self._accept():
                break
        now = self._clock()
        for client in tuple(self._clients):
            if now >= client.deadline or not self._serve(client):
                self._clients.remove(client)
                client.sock.close()

    def close(self) -> None:
        """Close everything; the socket's name goes too."""
        for client in self._clients:
            client.sock.close()
        self._clients = []
        self._socket.close()
        with suppress(OSError):
            os.unlink(self._path)

    def _accept(self) -> bool:
        try:
            sock, _ = self._socket.accept()
        except OSError:
            return False
        sock.settimeout(0)
        try:
            uid = peer_uid(sock)
        except (OSError, struct.error):
            sock.close()
            return True
        self._clients.append(_Client(sock, uid, self._clock() + SECONDS))
        if len(self._clients) > CLIENTS:
            self._evict()
        return True

    def _evict(self) -> None:
        """Drop the oldest client of the account, other than root, that has the most."""
        uids = [client.uid for client in self._clients]
        busiest = max(uids, key=lambda uid: (uid != 0, uids.count(uid)))
        victim = self._clients.pop(uids.index(busiest))
        victim.sock.close()

    def _serve(self, client: _Client) -> bool:
        """Go on with a client; False when it is done with."""
        try:
            if not client.out:
                self._read(client)
            if client.out:
                client.out = client.out[client.sock.send(client.out) :]
                return bool(client.out)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def _read(self, client: _Client) -> None:
        """Read on; an end before the line is whole is an error. Raises OSError."""
        chunk = client.sock.recv(REQUEST_BYTES)
        if not chunk:
            raise ConnectionError
        client.data += chunk
        line, end, _ = client.data.partition(b"\n")
        if end or len(client.data) > REQUEST_BYTES:
            said = self._answer(bytes(line), client.uid) if len(line) <= REQUEST_BYTES else _TOO_LONG
            client.out = memoryview(_ENCODER.encode(said) + b"\n")

    def _answer(self, line: bytes, uid: int) -> Said:
        try:
            request = _DECODER.decode(line)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return Refused(words="this is no request")
        return self._handler(request, uid)


_TOO_LONG: Final = Refused(words=f"a request has at most {REQUEST_BYTES // 1024} KiB")


def _listen(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)
        sock.bind(path)
        os.chmod(path, 0o666)  # noqa: S103 - the handler goes by the caller's uid
        sock.listen(_BACKLOG)
        sock.settimeout(0)
    except (OSError, ValueError) as error:
        sock.close()
        number = error.errno if isinstance(error, OSError) else 0
        raise EnvironmentFault(
            f"cannot make the control socket {path}: {os.strerror(number or 0) if number else 'path too long'}",
            advice="the run directory must belong to the agent's account, with a path below 90 characters",
        ) from None
    return sock


def peer_uid(sock: socket.socket) -> int:
    """Give the uid of the process that connected. Raises OSError, struct.error."""
    if sys.platform == "darwin":
        credentials = sock.getsockopt(0, _LOCAL_PEERCRED, 76)
        version, uid = struct.unpack_from("=II", credentials)
        if version:
            raise OSError("unknown credentials")
        return int(uid)
    packed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("=iII", packed)[1])
