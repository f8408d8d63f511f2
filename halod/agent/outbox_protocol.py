# SPDX-License-Identifier: Apache-2.0
"""Where delivery and the state database meet: what delivery asks of the store, and what it tells it.

Delivery runs in one thread and knows no SQL; the store (`halod.agent.state`) knows no HTTP. All methods are
called from the delivery thread only, each is one short transaction, and each may raise OutboxFault (disk full,
database locked): delivery then backs off and asks again, the report is sent once more, and the server drops
what it has by the transitions' ids. Nothing is removed before the server accepted it.
"""

from typing import Literal, Protocol

import msgspec

Outcome = Literal[
    "accepted",
    "failed",
    "unauthorised",
    "document-refused",
    "no-token",
    "enrolment-pending",
    "enrolment-refused",
    "state-fault",
]
"""How a try ended, for `halod status` and the log.

`failed` names its fault in `fault`; `unauthorised` is 401 or 403; `document-refused` is 400, 413 or 422;
`no-token` says that neither a token nor an enrolment key is configured; `state-fault` is OutboxFault.
"""


class OutboxFault(Exception):
    """The store cannot answer now; `args` hold one word of ours at most, never a path or a document."""


class Report(msgspec.Struct, frozen=True):
    """One report, ready to be sent.

    `body` is the JSON of a Status; `ids` are those of its transitions, oldest first; `serial` names the status
    in it (any number that grows with each committed status), so that a newer one that is committed while this
    one travels is not taken for delivered.
    """

    body: bytes
    ids: tuple[str, ...]
    serial: int

    def __repr__(self) -> str:
        """Tell the size, never the document."""
        return f"Report({len(self.body)} bytes, {len(self.ids)} transitions, serial={self.serial})"


class Result(msgspec.Struct, frozen=True):
    """How one try ended. `time` is wall time in seconds; `retry_in` seconds until the next try (0: at once)."""

    time: float
    outcome: Outcome
    fault: str = ""
    status: int = 0
    transitions: int = 0
    retry_in: float = 0.0


class Outbox(Protocol):
    """The store as delivery sees it."""

    def next_report(self, most: int) -> Report | None:
        """Give the newest status with the oldest `most` pending transitions at most, within SENT_BYTES.

        None when the newest status was delivered (or set aside) and no transition is pending. With `most` 0 the
        newest status without transitions, even when it was delivered before (delivery asks so to learn
        whether it is the status or a transition that the server refuses).
        """
        ...

    def delivered(self, report: Report) -> None:
        """The server accepted it: remove its transitions, and note that this status has arrived."""
        ...

    def refused(self, report: Report, status: int) -> None:
        """The server will never take it as it is (400, 413, 422): set its one transition aside and count it.

        With `ids` empty it is the status that is refused: do not offer this serial again by itself. Its
        transitions stay, and travel with the next status.
        """
        ...

    def record(self, result: Result) -> None:
        """Keep how the last try ended, for `halod status`."""
        ...


class Tokens(Protocol):
    """Where the device's token and its install id are kept (the state database)."""

    def install_id(self) -> str:
        """Give the random id that was made once on this machine and binds the token."""
        ...

    def token(self) -> str:
        """Give the token that enrolment brought, or ""."""
        ...

    def keep_token(self, token: str) -> None:
        """Keep a new token in place of the old one, durably, before it is used."""
        ...
