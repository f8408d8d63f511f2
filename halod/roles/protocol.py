# SPDX-License-Identifier: Apache-2.0
"""What supervisor and agent say to each other over their socket pair.

A frame is four bytes of length (big-endian) and one msgpack message, at most MAX_FRAME bytes. Messages are
the types below and nothing else; a frame that is too long or does not decode means that the other side is
broken, and ends the connection. Policy, scan options and workers' answers cross as opaque bytes, so that the
supervisor, which alone may change its uid, parses neither a policy nor anything a home holds (design 2).
"""

from typing import Literal

import msgspec

MAX_FRAME = 4 * 1024 * 1024
"""Bytes of one message: a policy of 4 MiB is refused when it is loaded, an answer is at most 1 MiB."""

MAX_ACCOUNTS = 1000
"""Accounts of one request: a shared host has hundreds; a list without end is a fault."""

Key = int
"""The agent's own number of an account, unique while both processes live."""


class Target(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One account as numbers and a home: what a worker or watcher needs, looked up by the agent."""

    key: Key
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    known: bool = True


class _ToSupervisor(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Base of what the agent says."""


class Loaded(_ToSupervisor, frozen=True):
    """Settings, secrets and policy are read, rights are given away: waits for Go before it touches the state.

    A process that ends before it says so costs nothing but itself: the agent before it, if any, goes on.
    """


class Ready(_ToSupervisor, frozen=True):
    """The first cycle is over and the agent serves: READY=1."""


class Alive(_ToSupervisor, frozen=True):
    """The agent's loop turns: WATCHDOG=1."""


class Words(_ToSupervisor, frozen=True):
    """One line for the service manager: STATUS=."""

    text: str


class Scan(_ToSupervisor, frozen=True):
    """Scan these accounts; `payload` (policy, options) is for the worker alone."""

    id: int
    targets: tuple[Target, ...]
    payload: bytes


class Watch(_ToSupervisor, frozen=True):
    """Watch exactly these accounts from now on; an empty list ends every watcher."""

    targets: tuple[Target, ...]
    payload: bytes


class Leaving(_ToSupervisor, frozen=True):
    """The agent ends on purpose; `reason` is one word of ours."""

    reason: str


class _ToAgent(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Base of what the supervisor says."""


class Answered(_ToAgent, frozen=True):
    """One account of a scan is done: a worker's answer as bytes, or why there is none."""

    id: int
    key: Key
    failure: Literal["", "home-unavailable", "worker-crashed", "worker-timeout", "worker-invalid"]
    answer: bytes = b""


class Changed(_ToAgent, frozen=True):
    """Watched locations of an account changed. Location numbers only: no name of a file crosses."""

    key: Key
    locations: tuple[int, ...]


class Watcher(_ToAgent, frozen=True):
    """What became of an account's watcher.

    `limited`: the watch limit is exhausted, the rest is left to the timer. `overflow`: events were lost,
    scan again. `unavailable`: the home is not there, it is looked for again. `lost`: the process ended
    unasked and is started anew. `partial` is said beside these: the kernel confines it in part only.
    """

    key: Key
    state: Literal["watching", "limited", "overflow", "unavailable", "lost", "partial"]


class Go(_ToAgent, frozen=True):
    """Begin: no other agent of this supervisor uses the state any more."""


class ReloadRefused(_ToAgent, frozen=True):
    """The settings were to be read again and cannot be used: go on with those of before, and say so."""


class Stop(_ToAgent, frozen=True):
    """End now, gently: commit what is in hand and exit."""


ToSupervisor = Loaded | Ready | Alive | Words | Scan | Watch | Leaving
ToAgent = Answered | Changed | Watcher | Go | ReloadRefused | Stop

_encoder = msgspec.msgpack.Encoder()
_of_supervisor = msgspec.msgpack.Decoder(ToAgent)
_of_agent = msgspec.msgpack.Decoder(ToSupervisor)


class Broken(Exception):
    """The other side sent what is no message; carries nothing of it."""


def frame(message: ToSupervisor | ToAgent) -> bytes:
    """Encode one message with its length. Raises Broken when it would be longer than MAX_FRAME."""
    body = _encoder.encode(message)
    if len(body) > MAX_FRAME:
        raise Broken("message too long")
    return len(body).to_bytes(4, "big") + body


class Reader:
    """Cuts a byte stream into messages; feed it whatever has arrived."""

    def __init__(self, side: Literal["agent", "supervisor"]) -> None:
        """`side` is the one that reads: it decides which messages are legal."""
        self._decoder: msgspec.msgpack.Decoder[ToSupervisor] | msgspec.msgpack.Decoder[ToAgent]
        self._decoder = _of_supervisor if side == "agent" else _of_agent
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[ToSupervisor | ToAgent]:
        """Take bytes and return the messages that are complete. Raises Broken, after which it is useless."""
        self._buffer += data
        messages: list[ToSupervisor | ToAgent] = []
        while len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[:4], "big")
            if size > MAX_FRAME:
                raise Broken("message too long")
            if len(self._buffer) < 4 + size:
                break
            body = bytes(self._buffer[4 : 4 + size])
            del self._buffer[: 4 + size]
            try:
                messages.append(self._decoder.decode(body))
            except msgspec.MsgspecError:
                raise Broken("not a message") from None
        return messages
