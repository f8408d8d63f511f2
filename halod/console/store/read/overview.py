# SPDX-License-Identifier: Apache-2.0
"""The fleet at a glance."""

from typing import Final

from sqlalchemy import ColumnElement, Connection, func, select

from halod.console.store.counts import KINDS, day_kind
from halod.console.store.paging import MOST
from halod.console.store.read.findings import Tally, prevalence
from halod.console.store.read.rows import Date, Row, columns
from halod.console.store.schema import DAYS, DEVICES, ENROLLMENTS, HEARTBEATS, POLICIES, TALLIES


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
    """Findings of one kind on one day: open at its end, and what happened on it."""

    day: Date
    kind: str
    open: int
    opened: int
    changed: int
    resolved: int


_DAY: Final = DAYS.c
_MOST_KINDS: Final = 20
"""There are three; a device of a later version may name others, and so may a lying one."""


def overview(c: Connection, *, now: int, silent_after: int) -> Overview:
    """Count."""
    device, heard = DEVICES.c, HEARTBEATS.c

    def count(*conditions: ColumnElement[bool]) -> int:
        return c.scalar(select(func.count()).select_from(DEVICES).where(*conditions)) or 0

    every = count()
    # Few, mostly: so this is counted, and not those that report. A heartbeat without a device never sent a status.
    silent = c.scalar(
        select(func.count())
        .select_from(HEARTBEATS)
        .join(DEVICES, device.device == heard.device)
        .where(heard.last_report < now - silent_after)
    )
    waiting = select(func.count()).select_from(ENROLLMENTS).where(ENROLLMENTS.c.state == "waiting")
    digest = select(POLICIES.c.digest).order_by(POLICIES.c.id.desc()).limit(1)
    kinds = _kinds(c)
    every_finding = select(func.sum(TALLIES.c.findings)).where(TALLIES.c.dim == "kind")
    return Overview(
        devices=every,
        reporting=every - (silent or 0),
        silent=silent or 0,
        partly=count(device.partly),
        limited=count(device.limited),
        findings=int(c.scalar(every_finding) or 0),
        by_kind=kinds,
        by_harness=prevalence(c, "harness", limit=MOST).rows,
        waiting=c.scalar(waiting) or 0,
        policy_digest=c.scalar(digest) or "",
    )


def _kinds(c: Connection) -> tuple[Tally, ...]:
    """Give the kinds that there are, and of those that somebody made up the most frequent; most devices first."""
    ours = select(TALLIES).where(TALLIES.c.dim == "kind", TALLIES.c.value.in_(sorted(KINDS)))
    rows = [Tally(**columns(row, *Tally.__struct_fields__)) for row in c.execute(ours)]
    rows += [row for row in prevalence(c, "kind", limit=_MOST_KINDS).rows if row.value not in KINDS]
    return tuple(sorted(rows, key=lambda row: (-row.devices, row.value)))


def trend(c: Connection, *, today: int, days: int = 30) -> tuple[Day, ...]:
    """Give the last `days` days up to `today`, oldest first, without gaps: a quiet day repeats what was open.

    A row for each day and kind; kinds are those that have findings now or had any in that time. All that are not of
    `counts.KINDS` are one, `other`.
    """
    first = today - days + 1
    rows = c.execute(select(DAYS).where(_DAY.day >= first, _DAY.day <= today)).all()
    found = {(row.day, row.kind): row for row in rows}
    kinds = {day_kind(one.value) for one in _kinds(c)} | {row.kind for row in rows}
    result = []
    for kind in sorted(kinds):
        open_ = c.scalar(
            select(_DAY.open).where(_DAY.kind == kind, _DAY.day < first).order_by(_DAY.day.desc()).limit(1)
        )
        still = open_ or 0
        for day in range(first, today + 1):
            row = found.get((day, kind))
            if row is None:
                result.append(Day(day=day, kind=kind, open=still, opened=0, changed=0, resolved=0))
            else:
                still = row.open
                result.append(Day(**columns(row, *Day.__struct_fields__)))
    return tuple(sorted(result, key=lambda one: (one.day, one.kind)))
