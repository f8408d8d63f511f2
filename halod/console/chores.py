# SPDX-License-Identifier: Apache-2.0
"""The jobs of a console: who has fallen silent, what is past its time, webhooks.

Each is a function of a console and a time that does a bounded piece of work and tells whether more is left; all of
them may run twice, or late, without harm (`jobs`).
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, delete, insert, select, update

from halod.console import logs
from halod.console.call import Console
from halod.console.hooks import events
from halod.console.hooks.deliver import Deliverer
from halod.console.jobs import Job, Scheduler
from halod.console.notify import Notifier
from halod.console.security import login, sessions
from halod.console.store import bulk, retention
from halod.console.store.schema import DEVICES, HEARTBEATS, META

BATCH: Final = 500
"""Devices that are marked in one transaction."""
AWAKE: Final = 300
"""Seconds without a run after which the console was not there to hear anybody."""
_LAST_RUN: Final = "silent.last-run"
_AWAKE_SINCE: Final = "silent.awake-since"
_log = logs.get("jobs")


def schedulers(console: Console) -> tuple[Scheduler | Notifier, ...]:
    """Give what an application starts: the jobs, apart from them webhooks, which wait for others, and at the end the
    word to systemd that everything runs.
    """
    deliverer = Deliverer(console.store, console.settings.webhooks, console.metrics, clock=console.clock.now)
    deliveries = Job(name="webhooks", every=2, run=lambda _, now: deliverer.turn(now), stop=deliverer.stop)
    return (
        Scheduler(console, JOBS),
        Scheduler(console, (deliveries,), name="webhooks"),
        Notifier(console.metrics),
    )


# --- who has fallen silent ----------------------------------------------------------------------------------


def silent(console: Console, now: int) -> bool:
    """Mark devices from which nothing has come for `silent_after`, and those that are back, and tell the webhooks.

    Nobody is marked as silent before the console itself has been there for as long: after an outage of its own, every
    device would be.
    """
    store, settings = console.store, console.settings
    cutoff = now - settings.silent_after
    with store.write() as c:
        awake = _awake_since(c, now) <= cutoff
    left = _mark(console, "device.back", _back(cutoff), silent=False, now=now)
    if awake:
        left = _mark(console, "device.silent", _fallen(cutoff), silent=True, now=now) or left
    return left


_ABOUT: Final = (DEVICES.c.device, DEVICES.c.hostname, DEVICES.c.ring, HEARTBEATS.c.last_report)


def _fallen(cutoff: int) -> Select[Any]:
    heard = select(*_ABOUT).join(HEARTBEATS, HEARTBEATS.c.device == DEVICES.c.device)
    return heard.where(HEARTBEATS.c.last_report < cutoff, ~DEVICES.c.silent)


def _back(cutoff: int) -> Select[Any]:
    heard = select(*_ABOUT).join(HEARTBEATS, HEARTBEATS.c.device == DEVICES.c.device)
    return heard.where(DEVICES.c.silent, HEARTBEATS.c.last_report >= cutoff)


def _mark(console: Console, event: str, which: Select[Any], *, silent: bool, now: int) -> bool:
    """Mark a batch; tell whether more is left. Nothing is locked when there is nobody to mark."""
    which = which.order_by(DEVICES.c.device).limit(BATCH)
    with console.store.read() as c:
        if c.execute(which).first() is None:
            return False
    with console.store.change() as c:
        rows: Sequence[Row[Any]] = c.execute(which).all()
        devices = [row.device for row in rows]
        c.execute(update(DEVICES).where(bulk.among(c, DEVICES.c.device, devices)).values(silent=silent))
        events.devices_changed(
            c,
            console.settings.webhooks,
            event,
            ((r.device, r.hostname, r.ring, r.last_report) for r in rows),
            now,
        )
    _log.info("devices have fallen silent" if silent else "devices are back", devices=len(devices))
    return len(devices) == BATCH


def _awake_since(c: Connection, now: int) -> int:
    """Note that this job has run, and give since when it has without a long break."""
    known = {
        row.key: int(row.value)
        for row in c.execute(select(META).where(META.c.key.in_((_LAST_RUN, _AWAKE_SINCE))))
    }
    since = known.get(_AWAKE_SINCE, now)
    if now - known.get(_LAST_RUN, 0) > AWAKE:
        since = now
    _set_meta(c, {_LAST_RUN: now, _AWAKE_SINCE: since})
    return since


def _set_meta(c: Connection, values: dict[str, int]) -> None:
    c.execute(delete(META).where(META.c.key.in_(values)))
    c.execute(insert(META), [{"key": key, "value": str(value)} for key, value in values.items()])


# --- what is past its time ----------------------------------------------------------------------------------


def sign_ins(console: Console, now: int) -> bool:
    """Drop sessions that have ended, and sign-ins that were begun and not ended."""
    with console.store.write() as c:
        sessions.prune(c, console.settings, now=now)
        login.prune(c, now=now)
    return False


def prune(console: Console, now: int) -> bool:
    """Forget a batch of what is past its time (`store.retention`)."""
    done = retention.step(console.store, console.settings.retention, now)
    if any(done.values()):
        _log.info("forgotten", **{kind: count for kind, count in done.items() if count})
    return retention.more(done)


def statistics(console: Console, _now: int) -> bool:
    """Let SQLite look at what its tables hold, so that it chooses the right index; PostgreSQL does so by itself."""
    if console.store.sqlite:
        with console.store.write() as c:
            c.exec_driver_sql("PRAGMA analysis_limit = 1000")  # rows of an index: milliseconds, however large
            c.exec_driver_sql("ANALYZE")
    return False


JOBS: Final = (
    Job(name="silent", every=60, run=silent),
    Job(name="sign-ins", every=600, run=sign_ins),
    Job(name="prune", every=3_600, run=prune),
    Job(name="statistics", every=86_400, run=statistics),
)
