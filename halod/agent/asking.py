# SPDX-License-Identifier: Apache-2.0
"""The caller's side of the control socket: one question, one answer. Loads nothing of the agent but the types."""

import os
import socket
from typing import Final

import msgspec

from halod.agent.reply import REPLY_BYTES, SOCKET_NAME, Request, Said
from halod.errors import EnvironmentFault

_SECONDS: Final = 10.0


def ask(run_dir: str, request: Request) -> Said | None:
    """Ask the agent one thing; None when nobody answers there. Raises EnvironmentFault: it is no answer."""
    data = msgspec.json.encode(request) + b"\n"
    answer = bytearray()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(_SECONDS)
            sock.connect(os.path.join(run_dir, SOCKET_NAME))
            sock.sendall(data)
            while not answer.endswith(b"\n") and len(answer) <= REPLY_BYTES:
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
