# SPDX-License-Identifier: Apache-2.0
"""The fleet at a glance."""

from sqlalchemy import Connection

from halod.console.store.read.findings import Tally
from halod.console.store.read.rows import Row


class Overview(Row, frozen=True, kw_only=True):
    """Counts over the fleet. `by_harness` has a row for each harness and kind."""

    devices: int
    reporting: int
    silent: int
    partly: int
    limited: int
    findings: int
    by_kind: tuple[Tally, ...]
    by_harness: tuple[Tally, ...]
    waiting: int
    policy_digest: str
    """Of the policy that the console serves; "" if none."""


class Day(Row, frozen=True, kw_only=True):
    """Findings of one kind on one day (days since 1970, UTC): open at its end, and what happened on it."""

    day: int
    kind: str
    open: int
    opened: int
    changed: int
    resolved: int


def overview(c: Connection, *, now: int, silent_after: int) -> Overview:
    """Count."""
    raise NotImplementedError


def trend(c: Connection, *, today: int, days: int = 30) -> tuple[Day, ...]:
    """Give the last `days` days up to `today`, oldest first, without gaps: a quiet day repeats what was open."""
    raise NotImplementedError
