# SPDX-License-Identifier: Apache-2.0
"""Where delivery and the state database meet: what delivery asks of the store, and what it tells it.

Delivery runs in one thread and knows no SQL; the store (`halod.agent.state.State`) knows no HTTP. Each method
is one short transaction, and each may raise EnvironmentFault (a StateFault: disk full, database locked).
Delivery then backs off and asks again: the report is sent once more, and the server drops what it has by the
transitions' ids. Nothing leaves the machine's state before the server accepted or refused it for good.
"""

from typing import Final, Literal, Protocol

from halod.agent.devicefile import Device
from halod.agent.faults import WORDS as FAULTS
from halod.agent.faults import Kind
from halod.agent.outbox import Limits, Report
from halod.agent.rows import Delivery
from halod.status import Status

Outcome = (
    Literal[
        "accepted",
        "unauthorised",
        "report-refused",
        "throttled",
        "wrong-address",
        "server-error",
        "no-token",
        "enrolled",
        "enrolment-pending",
        "enrolment-refused",
        "enrolment-malformed",
        "state",
        "internal",
    ]
    | Kind
)
"""How a try ended: `Delivery.outcome`, and a field of the log. A Kind says why there was no answer.

`unauthorised` is 401 or 403; `report-refused` 400, 413 or 422: this document will not be taken; `throttled` is 429;
`wrong-address` any other 4xx; `server-error` 5xx. `no-token`: neither a token nor an enrolment key is
configured. `state`: the store cannot answer. `internal`: a fault of halod.
"""

WORDS: Final[dict[str, str]] = {
    **{str(kind): words for kind, words in FAULTS.items()},
    "unauthorised": "the server refuses the token; see report.token_file",
    "no-token": "there is no token to report with; set report.token_file or report.enroll_key_file",
    "enrolment-pending": "the server wants an operator to accept this device",
    "enrolment-refused": "the server refuses to enrol this device",
    "enrolment-malformed": "the server's answer to the enrolment cannot be read",
    "report-refused": "the server refuses the report as it is",
    "wrong-address": "the server has nothing at report.url",
    "throttled": "the server asks to wait",
    "server-error": "the server has a fault of its own",
    "state": "the state directory cannot be read",
    "internal": "a fault inside halod",
}
"""A sentence for each outcome that is a failure, for a person."""


class Outbox(Protocol):
    """The store as delivery sees it."""

    @property
    def device(self) -> Device:
        """Give the install id and the token that enrolment brought, if any."""
        ...

    def update_device(self, **fields: object) -> Device:
        """Keep a new token or state of enrolment, durably."""
        ...

    def next_report(self, limits: Limits) -> Report | None:
        """Give the newest status with the oldest transitions within `limits`; None when all was delivered.

        With `limits.transitions` 0 and transitions waiting: the status alone, even when it was delivered.
        """
        ...

    def newest(self) -> Status | None:
        """Give the newest status, delivered or not; None before the first cycle."""
        ...

    def delivered(self, report: Report) -> None:
        """Note that the server has taken it: its transitions leave the machine."""
        ...

    def refused(self, report: Report) -> None:
        """Note that the server will never take it: its transition (there is one, or none) is dropped and counted.

        Without a transition it is the status that is refused, and not offered again by itself.
        """
        ...

    def note_delivery(self, delivery: Delivery) -> None:
        """Keep how the last try ended, for `halod status`."""
        ...
