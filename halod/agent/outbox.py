# SPDX-License-Identifier: Apache-2.0
"""The next report: the newest status with the oldest transitions, within what a server takes. Pure.

Invariants:

1. Transitions travel in the order of their numbers, and are never left out of the middle.
2. A report is never longer than its limit, as far as the document without rows is not; findings give way, and
   `truncated` says so.
3. Where there are transitions, at least one travels: a machine with very many findings still gets on.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from halod.status import SENT_BYTES, SENT_FINDINGS, Status, Transition, encode, shorten

SENT_TRANSITIONS: Final = 64
"""Transitions of one report (design 8)."""
_SHARE: Final = 4
_ENOUGH: Final = 16
"""Where findings leave less than a sixteenth of a report, they give way to transitions up to a quarter."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a server takes: findings, bytes of JSON, transitions; `with_transitions` is `report.transitions`."""

    findings: int = SENT_FINDINGS
    bytes: int = SENT_BYTES
    transitions: int = SENT_TRANSITIONS
    with_transitions: bool = True


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One document to send, and what to give back to `State.delivered` when the server has taken it.

    `ids` are the transitions in it; `upto` the number of the last one that its delivery settles; `status` the
    number of its status; `more` says that another report waits behind it. `generation` is the database's, so
    that numbers of one that was started anew are not mixed up; `notice` and `fault` are what it tells.
    """

    body: bytes
    ids: tuple[str, ...] = ()
    upto: int = 0
    status: int = 0
    more: bool = False
    generation: int = 0
    notice: bool = False
    fault: str = ""


def compose(status: Status, waiting: Sequence[Transition], limits: Limits) -> tuple[bytes, int]:
    """Make a document of a status and the first of the waiting transitions.

    Gives its bytes and how many transitions it has. With `with_transitions` false it has no such field.
    """
    if not limits.with_transitions:
        bare = msgspec.structs.replace(status, transitions=msgspec.UNSET)
        return encode(shorten(bare, limits.findings, limits.bytes)), 0
    short = shorten(_with(status, ()), limits.findings, limits.bytes)
    free = limits.bytes - len(encode(short))
    if free < limits.bytes // _ENOUGH:
        free = limits.bytes // _SHARE
    taken = _fitting(waiting[: limits.transitions], free)
    full = _with(short, taken)
    if len(encode(full)) > limits.bytes:
        full = shorten(_with(status, taken), limits.findings, limits.bytes)
    return encode(full), len(taken)


def _with(status: Status, transitions: tuple[Transition, ...]) -> Status:
    return msgspec.structs.replace(status, transitions=transitions)


def _fitting(waiting: Sequence[Transition], room: int) -> tuple[Transition, ...]:
    """Give the first ones that fit into `room` bytes, each with its comma; one in any case."""
    for count, one in enumerate(waiting):
        room -= len(encode(one)) + 1
        if room < 0:
            return tuple(waiting[: max(count, 1)])
    return tuple(waiting)
