# SPDX-License-Identifier: Apache-2.0
"""A finding that is none, through the whole path: `halod check --canary`, on the agent's side.

Two reports are sent out of turn: the newest status with the test finding and its `opened`, then the newest
status as it is with its `resolved`. Invariants:

1. Nothing of it enters the state: no finding, no transition, no note of a delivery. Reports of cycles go on
   as if there had been no test.
2. The server never has less than before: each report is a whole status, cut as always.
3. What was sent is taken back, later if not now: after every cycle it is tried again.

`ask` is for the agent's main thread, the rest for the one of delivery.
"""

import hashlib
import secrets
import threading
from typing import Final

import msgspec

from halod.agent.outbox import Limits, compose
from halod.agent.reply import Tested
from halod.status import Event, Finding, Status, Transition, finding_key, shorten

TEST_FINDING: Final = Finding(
    harness="halod",
    file="",
    server="halod-canary",
    kind="unapproved",
    transport="stdio",
    definition_sha256=hashlib.sha256(b"halod-canary").hexdigest(),
    detail="test finding of halod check --canary",
    fix="nothing is to be done: it is taken back at once",
    user="",
    scope="user",
    enabled=True,
)
"""Always the same one, so that a test that was never taken back is resolved by the next."""
_ROOM: Final = 2048
"""Bytes for the finding and its transition, in any form."""


class Trial:
    """The test under way, and the one before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said = Tested(number=0, outcome="unavailable")
        self._id = ""
        self.owed = False
        """Whether a test finding is at the server that was not taken back."""

    def ask(self, number: int) -> Tested:
        """Begin a test (0), unless one is under way, or tell how test `number` is."""
        with self._lock:
            if number == 0 and not self.waiting:
                self._said = Tested(number=self._said.number + 1, outcome="waiting")
            elif number not in {0, self._said.number}:
                return Tested(number=number, outcome="unavailable", words="the agent knows of no such test")
            return self._said

    @property
    def waiting(self) -> bool:
        """Whether a test is to be sent."""
        return self._said.outcome == "waiting"

    def told(self, **fields: object) -> None:
        """Say how the test ended: fields of a Tested."""
        with self._lock:
            self._said = msgspec.structs.replace(self._said, **fields)

    def opened(self, status: Status, limits: Limits, time: str) -> bytes:
        """Give the report that brings the test finding."""
        self._id = secrets.token_hex(8)
        room = limits.bytes - limits.bytes // 16 - _ROOM
        short = shorten(status, limits.findings - 1, room)
        rows = tuple(sorted((*short.mcp_drift, TEST_FINDING), key=finding_key))
        full = msgspec.structs.replace(short, mcp_drift=rows, mcp_drift_total=short.mcp_drift_total + 1)
        return compose(full, (self._transition("opened", time),), limits)[0]

    def resolved(self, status: Status, limits: Limits, time: str) -> bytes:
        """Give the report that takes it back."""
        return compose(status, (self._transition("resolved", time),), limits)[0]

    def _transition(self, event: Event, time: str) -> Transition:
        return Transition(id=f"canary-{self._id}-{event}", time=time, event=event, finding=TEST_FINDING)
