# SPDX-License-Identifier: Apache-2.0
"""The caller's side of the control socket: one question, one answer. Loads nothing of the agent but the types."""

import os
import socket
import struct
import time
from typing import Final

import msgspec

from halod.agent.reply import REPLY_BYTES, SOCKET_NAME, Request, Said
from halod.errors import EnvironmentFault

_SECONDS: Final = 10.0
"""For everything: a service that sends a byte now and then holds nobody."""


def ask(run_dir: str, request: Request) -> Said | None:
    """Ask the agent one thing; None when nobody answers there. Raises EnvironmentFault: it is no answer."""
    data = msgspec.json.encode(request) + b"\n"
    answer = bytearray()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            end = time.monotonic() + _SECONDS
            _connect(sock, os.path.join(run_dir, SOCKET_NAME))
            sock.settimeout(_left(end))
            sock.sendall(data)
            while not answer.endswith(b"\n") and len(answer) <= REPLY_BYTES:
                sock.settimeout(_left(end))
                chunk = sock.recv(1 << 16)
                if not chunk:
                    break
                answer += chunk
    except OSError:
        return None
    try:
        return msgspec.json.decode(bytes(answer), type=Said)
    except (msgspec.MsgspecError, ValueError):
        raise EnvironmentFault(
            "the service's answer cannot be read", advice="is it of another version than this command?"
        ) from None


def _connect(sock: socket.socket, path: str) -> None:
    """Connect within _SECONDS. Raises OSError.

    Where somebody keeps the queue full, a socket of Python's with a timeout, which does not block, is turned away at
    once (EAGAIN, unix(7)); one that blocks waits in the kernel for its turn, as long as SO_SNDTIMEO says.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(_SECONDS), 0))
    sock.connect(path)


def _left(end: float) -> float:
    """Give the seconds that are left. Raises TimeoutError: none are."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
