# SPDX-License-Identifier: Apache-2.0
"""What watches the console: `/healthz`, `/readyz` and `/metrics`.

`/healthz` says that the process lives: it answers, and every part that has to run (the writer of reports, the
schedulers) does; a thread that has died is mended by a restart. It asks nobody else, so an outage of the database does
not make an orchestrator restart what is well. `/readyz` says whether requests may be sent here: the database answers,
its schema is this release's, and every part runs. Both are open to everybody and say no more than which of these is
wrong.

`/metrics` tells how many devices and findings there are, so it asks for the role viewer, from this machine too: behind
a proxy on the same machine everybody comes from loopback. Prometheus sends an API token (docs/console-operations.md).
"""

import threading
from typing import Final, get_args
from weakref import WeakKeyDictionary

import msgspec
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool
from starlette.responses import Response

from halod import __version__
from halod.console import metrics
from halod.console.access import Access, Route
from halod.console.call import Call, Console
from halod.console.hooks import letters
from halod.console.metrics import Metrics, Sample
from halod.console.store import migrate
from halod.console.store.schema import DELIVERIES, DEVICES, ENROLLMENTS, HEARTBEATS, POLICIES, TALLIES
from halod.status import Kind

READY_SECONDS: Final = 1.0
"""For so long an answer of `/readyz` is good: it is open to everybody, and asks the database."""
_FRESH: Final = {"Cache-Control": "no-store"}


class Health(msgspec.Struct, frozen=True):
    """The answer of both: `failing` names what is wrong: a part, and for `/readyz` also `database` or `schema`."""

    status: str
    failing: tuple[str, ...] = ()


_lock: Final = threading.Lock()
_answers: Final[WeakKeyDictionary[Metrics, tuple[float, tuple[str, ...]]]] = WeakKeyDictionary()
"""What `/readyz` found last, and when; there is one console in a process, but for tests."""


def healthz(call: Call) -> Response:
    """Say whether the process lives: 200, or 503 with the parts that do not."""
    return _said(call.console.metrics.dead())


def readyz(call: Call) -> Response:
    """Say whether requests may be sent here: 200, or 503 with what is wrong."""
    console = call.console
    now = console.clock.monotonic()
    with _lock:
        known = _answers.get(console.metrics)
        if known is None or now - known[0] >= READY_SECONDS:
            known = _answers[console.metrics] = (now, failures(console))
    return _said(known[1])


def _said(failing: tuple[str, ...]) -> Response:
    answer = Health("unavailable" if failing else "ok", failing)
    return Response(msgspec.json.encode(answer), 503 if failing else 200, _FRESH, "application/json")


def failures(console: Console) -> tuple[str, ...]:
    """Give what keeps this console from working."""
    failing = []
    try:
        if migrate.state(console.store) != "current":
            failing.append("schema")
    except SQLAlchemyError:
        failing.append("database")
    return (*failing, *console.metrics.dead())


def exposition(call: Call) -> Response:
    """Give the metrics of this process, and of the fleet."""
    console = call.console
    return Response(
        console.metrics.text([*_process(console), *fleet(console)]),
        headers={**_FRESH, "Content-Type": metrics.CONTENT_TYPE},
    )


def _process(console: Console) -> list[Sample]:
    samples = [Sample("halo_build_info", 1, (("version", __version__),))]
    pool = console.store.engine.pool
    if isinstance(pool, QueuePool):
        for state, count in (("idle", pool.checkedin()), ("used", pool.checkedout())):
            samples.append(Sample("halo_database_connections", count, (("state", state),)))
    return samples


def fleet(console: Console) -> list[Sample]:
    """Count what the database holds: the same from every replica."""
    now = console.clock.now()
    samples = []
    with console.store.read() as c:
        every = c.scalar(select(func.count()).select_from(DEVICES)) or 0
        heard = HEARTBEATS.c.last_report >= now - console.settings.silent_after
        reporting = c.scalar(select(func.count()).select_from(HEARTBEATS).where(heard)) or 0
        partly = c.scalar(select(func.count()).select_from(DEVICES).where(DEVICES.c.partly)) or 0
        for state, count in (
            ("reporting", reporting),
            ("silent", max(every - reporting, 0)),
            ("partly", partly),
        ):
            samples.append(Sample("halo_devices", count, (("state", state),)))
        samples += _findings(c)
        waiting = select(func.count()).select_from(ENROLLMENTS).where(ENROLLMENTS.c.state == "waiting")
        samples.append(Sample("halo_enrollments_waiting", c.scalar(waiting) or 0))
        newest = select(POLICIES.c.version, POLICIES.c.expires).order_by(POLICIES.c.id.desc()).limit(1)
        for row in c.execute(newest):
            samples.append(Sample("halo_policy_version", row.version))
            samples.append(Sample("halo_policy_expires_timestamp_seconds", row.expires))
        counts = letters.counts(c)
        oldest = select(DELIVERIES.c.hook, func.min(DELIVERIES.c.created)).where(DELIVERIES.c.state == "due")
        ages = {row[0]: now - row[1] for row in c.execute(oldest.group_by(DELIVERIES.c.hook))}
    for hook in console.settings.webhooks:
        label = ("hook", hook.name)
        for state in letters.STATES:
            count = counts.get((hook.name, state), 0)
            samples.append(Sample("halo_webhook_deliveries", count, (label, ("state", state))))
        samples.append(Sample("halo_webhook_oldest_seconds", max(ages.get(hook.name, 0), 0), (label,)))
    return samples


def _findings(c: Connection) -> list[Sample]:
    """Count findings by the kinds that there are; what else devices call a kind is one more, `other`."""
    counts = dict.fromkeys((*get_args(Kind), "other"), 0)
    rows = c.execute(select(TALLIES.c.value, TALLIES.c.findings).where(TALLIES.c.dim == "kind"))
    for row in rows:
        counts[row.value if row.value in counts else "other"] += row.findings
    return [Sample("halo_findings", count, (("kind", kind),)) for kind, count in counts.items()]


ROUTES: Final = (
    Route(
        method="GET",
        path="/healthz",
        name="healthz",
        access=Access.PUBLIC,
        endpoint=healthz,
        summary="Whether the process lives",
    ),
    Route(
        method="GET",
        path="/readyz",
        name="readyz",
        access=Access.PUBLIC,
        endpoint=readyz,
        summary="Whether requests may be sent here",
    ),
    Route(
        method="GET",
        path="/metrics",
        name="metrics",
        access=Access.VIEWER,
        endpoint=exposition,
        summary="Metrics in the text format of Prometheus",
    ),
)
