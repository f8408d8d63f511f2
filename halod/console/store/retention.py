# SPDX-License-Identifier: Apache-2.0
"""Forgets what is past its time, a bounded batch at a time.

Invariants:

1. A step takes at most BATCH rows of each kind (DEVICES_BATCH devices), each kind in a transaction of its own: reports
   wait for milliseconds at most.
2. Counts stay right: devices go through `apply.forget`, which takes them out by their difference, under the lock.
3. What is current stays, whatever its age: a finding, a policy, a token that opens something, a delivery that is due.
4. A period of 0 days keeps for ever.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, delete, exists, select, tuple_

from halod.console.settings import DAY, Retention
from halod.console.store import apply
from halod.console.store.engine import Store
from halod.console.store.places import EVERYWHERE
from halod.console.store.schema import (
    AUDIT,
    DAYS,
    DELIVERIES,
    DEVICES,
    ENROLLMENTS,
    GROUP_COUNTS,
    HEARTBEATS,
    SEEN_NAMES,
    TALLIES,
    THINGS,
    TOKENS,
    TRANSITIONS,
)

BATCH: Final = 2_000
DEVICES_BATCH: Final = 50
ASKING_DAYS: Final = 30
"""An enrolment that waits is asked for again every hour: one that was not for so long has given up."""
KINDS: Final = (
    *(
        "devices",
        "transitions",
        "audit",
        "deliveries",
        "names",
        "enrolments",
        "tokens",
        "definitions",
        "groups",
    ),
    "days",
)


class _Past(msgspec.Struct, frozen=True):
    """Rows that have ended. `locked`: reports write to the table, and must not wait for us while we wait for them."""

    kind: str
    table: Table
    where: ColumnElement[bool]
    locked: bool = False


def step(store: Store, retention: Retention, now: int) -> dict[str, int]:
    """Forget a batch of everything that is past its time; gives how much of each kind."""
    done = dict.fromkeys(KINDS, 0)
    done["devices"] = _devices(store, retention, now)
    for past in _past(retention, now):
        with store.change() if past.locked else store.write() as c:
            done[past.kind] = _delete(c, past)
    done["groups"] = _groups(store, retention, now)
    return done


def more(done: dict[str, int]) -> bool:
    """Tell whether a step was cut off by its size."""
    return any(count >= (DEVICES_BATCH if kind == "devices" else BATCH) for kind, count in done.items())


def _past(retention: Retention, now: int) -> Iterator[_Past]:
    """Give the rows that simply end."""
    yield _Past("names", SEEN_NAMES, SEEN_NAMES.c.last_seen <= now - apply.NAMES_WINDOW, locked=True)
    if retention.transitions:
        past = now - retention.transitions * DAY
        yield _Past("transitions", TRANSITIONS, TRANSITIONS.c.received < past)
        yield _Past("days", DAYS, DAYS.c.day < past // DAY)
        # Kept when nobody has it any more, so that a definition is new once; but not for ever.
        ended = (TALLIES.c.dim == "definition") & (TALLIES.c.devices <= 0) & (TALLIES.c.first_seen < past)
        yield _Past("definitions", TALLIES, ended, locked=True)
    if retention.audit:
        yield _Past("audit", AUDIT, AUDIT.c.time < now - retention.audit * DAY)
    if retention.deliveries:
        ended = DELIVERIES.c.state.in_(("done", "dead")) & (
            DELIVERIES.c.created < now - retention.deliveries * DAY
        )
        yield _Past("deliveries", DELIVERIES, ended)
    if retention.devices:
        past = now - retention.devices * DAY
        given_up = (ENROLLMENTS.c.state == "waiting") & (ENROLLMENTS.c.last_asked < now - ASKING_DAYS * DAY)
        decided = (ENROLLMENTS.c.state != "waiting") & (ENROLLMENTS.c.last_asked < past)
        yield _Past("enrolments", ENROLLMENTS, given_up | decided)
        # With its last token a known device shows that it is the same one, also when that has expired.
        useless = (TOKENS.c.kind != "device") | ~exists().where(DEVICES.c.device == TOKENS.c.device)
        yield _Past("tokens", TOKENS, (TOKENS.c.revoked < past) | ((TOKENS.c.expires < past) & useless))


def _delete(c: Connection, past: _Past) -> int:
    key = tuple(past.table.primary_key.columns)
    which = select(*key).where(past.where).limit(BATCH)
    return c.execute(delete(past.table).where(tuple_(*key).in_(which))).rowcount


def _devices(store: Store, retention: Retention, now: int) -> int:
    """Forget devices from which nothing has come."""
    if not retention.devices:
        return 0
    silent = (
        select(HEARTBEATS.c.device)
        .where(HEARTBEATS.c.last_report < now - retention.devices * DAY)
        .order_by(HEARTBEATS.c.last_report, HEARTBEATS.c.device)
        .limit(DEVICES_BATCH)
    )
    with store.read() as c:
        if c.execute(silent).first() is None:
            return 0
    with store.change() as c:
        # A report that changes nothing comes without the lock: where it is just being written, the device stays.
        devices = c.execute(silent.with_for_update(skip_locked=True)).scalars().all()
        apply.forget(c, devices, now)
        # Of a device that never got as far as a status only its heartbeat is known.
        c.execute(delete(HEARTBEATS).where(HEARTBEATS.c.device.in_(devices)))
    return len(devices)


def _groups(store: Store, retention: Retention, now: int) -> int:
    """Forget what no device has had for long. Found without the lock, since that looks at every thing."""
    if not retention.transitions:
        return 0
    # A thing that any device has is counted over the whole fleet, too.
    unused = ~exists().where(GROUP_COUNTS.c.place == EVERYWHERE, GROUP_COUNTS.c.thing == THINGS.c.id)
    old = THINGS.c.first_seen < now - retention.transitions * DAY
    with store.read() as c:
        found = c.execute(select(THINGS.c.id).where(old, unused).limit(BATCH)).scalars().all()
    if not found:
        return 0
    with store.change() as c:
        return c.execute(delete(THINGS).where(THINGS.c.id.in_(found), unused)).rowcount
