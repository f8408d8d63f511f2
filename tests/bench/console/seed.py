# SPDX-License-Identifier: Apache-2.0
"""Fills a database with a fleet: by COPY on PostgreSQL, by executemany on SQLite; what can be derived, set-wise.

Documents are read and cleaned as reports are, so the rows are those that reporting would have made, and the next report
of a device changes nothing. Counts are made by one statement for each dimension; `check` compares them with the
console's own recount.
"""

import itertools
import json
import time

from halod.console.ingest import wire
from halod.console.security import tokens
from halod.console.store import counts, known, schema
from halod.console.store.places import place
from tests.bench.console import fleet

DAY = 86_400
TRANSITIONS = 10
"""Of each finding."""
AUDIT = 50_000
CHUNK = 2000
_DIMS = ("harness", "ring", "unit")
_CLAIMS = (
    *("hostname", "os", "halod", "username", "ring", "digest", "mode", "claimed_time", "content"),
    *("drift_total", "accounts", "files", "definitions", "error_code", "last_error", "truncated"),
)
_OF_FINDING = (
    *("username", "harness", "file", "scope", "server", "kind", "transport", "host", "sha256", "secret"),
)


def fill(store, devices, now, say=lambda _text: None):
    """Fill an empty, migrated store."""
    begun = time.monotonic()
    with store.write() as c:
        if not store.sqlite:
            c.exec_driver_sql("SET LOCAL statement_timeout = 0")
        things = {}
        numbers = itertools.count(1)
        for at in range(0, devices, CHUNK):
            rows, before = {}, len(things)
            for nth in range(at, min(at + CHUNK, devices)):
                _device(rows, nth, devices, now, things, numbers)
            write(c, schema.THINGS, list(itertools.islice(things.values(), before, None)))
            for table, those in rows.items():
                write(c, table, those)
        say(f"devices and findings: {time.monotonic() - begun:.0f} s")
        _derive(c, now, sqlite=store.sqlite)
        _tokens(c, min(devices, fleet.LOADED), now)
        _audit(c, now)
        if not store.sqlite:
            for table in ("findings", "things", "audit", "transitions"):
                key = "seq" if table in ("audit", "transitions") else "id"
                c.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{table}', '{key}'), max({key})) FROM {table}"
                )
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
        if not store.sqlite:
            c.exec_driver_sql("SET statement_timeout = 0")
        c.exec_driver_sql("ANALYZE" if store.sqlite else "VACUUM ANALYZE")
        if not store.sqlite:  # SQLite does it when the last connection is closed
            c.exec_driver_sql("CHECKPOINT")
    say(f"everything: {time.monotonic() - begun:.0f} s")


def check(store):
    """Compare the counts with a recount."""
    with store.read() as c:
        if not store.sqlite:
            c.exec_driver_sql("SET LOCAL statement_timeout = 0")
        return counts.kept(c) == counts.recount(c)


def sizes(store):
    """Give the number of rows of the large tables."""
    names = ("devices", "findings", "transitions", "things", "group_counts", "tallies")
    with store.read() as c:
        if not store.sqlite:
            c.exec_driver_sql("SET LOCAL statement_timeout = 0")
        return {name: c.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar() for name in names}


def _device(rows, nth, devices, now, things, numbers):
    document = fleet.document(nth, devices)
    report = wire.report(wire.read(json.dumps(document).encode()), document["device"])
    age = nth * 7919 % (300 * DAY)
    first = now - age - DAY
    heard = now - (nth * 31 % 900 if nth % 20 else nth * 104_729 % (80 * DAY))

    def add(table, row):
        rows.setdefault(table, []).append(row)

    add(
        schema.DEVICES,
        {
            "device": report.device, **{name: getattr(report, name) for name in _CLAIMS}, "install_id": "",
            "units": json.dumps(report.units, separators=(",", ":")), "assigned_ring": "", "assigned_units": "[]",
            "not_covered": json.dumps(report.not_covered, separators=(",", ":")), "first_seen": first,
            "changed_at": max(heard - 3600, first), "findings": len(report.findings), "skipped": len(report.skipped),
            "partly": report.partly, "silent": heard < now - 3600, "limited": nth % 5000 == 4999,
        },
    )  # fmt: skip
    add(schema.HEARTBEATS, {"device": report.device, "last_report": heard})
    for unit in report.units:
        add(schema.DEVICE_UNITS, {"unit": unit, "device": report.device})
    for row in report.approved:
        add(
            schema.APPROVED,
            {"device": report.device, "harness": row.harness, "username": row.username, "entry": row.entry,
             "count": row.count},
        )  # fmt: skip
    for at, row in enumerate(report.skipped):
        columns = ("username", "harness", "file", "reason", "server", "errno", "line")
        values = {name: getattr(row, name) for name in columns}
        add(schema.SKIPPED, {"device": report.device, "nth": at, **values, "column_": row.column})
    for row in report.findings:
        if row.thing not in things:
            kind, server, what = row.thing
            things[row.thing] = {
                "id": len(things) + 1, "kind": kind, "server": server, "what": what, "transport": row.transport,
                "fix": row.fix, "first_seen": first,
            }  # fmt: skip
        values = {name: getattr(row, name) for name in known._FINDING}
        at = min(first + (next_number := next(numbers)) % DAY, now)
        add(
            schema.FINDINGS,
            {"id": next_number, "device": report.device, "thing": things[row.thing]["id"], "nth": 0, **values,
             "ring": report.ring, "first_seen": at, "last_seen": at},
        )  # fmt: skip


def _derive(c, now, *, sqlite):
    """Make transitions and every count from what is there."""
    for number in range(TRANSITIONS):
        names = ", ".join(_OF_FINDING)
        event = "opened" if number == 0 else "changed"
        was = "''" if number == 0 else "sha256"
        c.exec_driver_sql(
            f"INSERT INTO transitions (device, tid, received, claimed_time, event, was, {names})"
            f" SELECT device, id || '-{number}', first_seen + ({now} - first_seen) * {number} / {TRANSITIONS}, '',"
            f" '{event}', {was}, {names} FROM findings ORDER BY id"
        )
    for wanted in itertools.product((False, True), repeat=3):
        _groups(c, [dim for dim, one in zip(_DIMS, wanted, strict=True) if one])
    _tallies(c)
    _days(c, sqlite=sqlite)


def _groups(c, dims):
    """Count at one kind of places. Their numbers are made here, so they go through a table."""
    columns = [_column(dim) for dim in dims]
    where = " AND ".join(f"{column} <> ''" for column in columns) or "1 = 1"
    rows = f"findings f{_joined(dims)}"
    words = [()]
    if dims:
        words = c.exec_driver_sql(f"SELECT DISTINCT {', '.join(columns)} FROM {rows} WHERE {where}").all()
    keys = "".join(f", {dim} text" for dim in dims)
    c.exec_driver_sql(
        f"CREATE TEMPORARY TABLE seed_places (place bigint{keys}, PRIMARY KEY ({', '.join(dims) or 'place'}))"
    )
    numbered = [dict(zip(dims, one, strict=True)) for one in words]
    write(c, Named("seed_places"), [{"place": place(**one), **one} for one in numbered])
    if c.dialect.name != "sqlite":
        c.exec_driver_sql("ANALYZE seed_places")
    match = " AND ".join(f"p.{dim} = {column}" for dim, column in zip(dims, columns, strict=True)) or "1 = 1"
    c.exec_driver_sql(
        "INSERT INTO group_counts (place, thing, kind, findings, devices, last_seen)"
        " SELECT p.place, f.thing, f.kind, count(*), count(DISTINCT f.device), max(f.last_seen)"
        f" FROM {rows} CROSS JOIN seed_places p WHERE {match} GROUP BY 1, 2, 3"
    )
    c.exec_driver_sql("DROP TABLE seed_places")


def _column(dim):
    return {"unit": "u.unit"}.get(dim, f"f.{dim}")


def _joined(dims):
    return " JOIN device_units u ON u.device = f.device" if "unit" in dims else ""


def _tallies(c):
    head = "INSERT INTO tallies (dim, value, kind, findings, devices, first_seen) SELECT"
    many = "count(*), count(DISTINCT f.device), min(f.first_seen)"
    for dim, column in (
        ("kind", "f.kind"), ("harness", "f.harness"), ("ring", "f.ring"), ("server", "f.server"),
        ("definition", "f.sha256"), ("unit", "u.unit"),
    ):  # fmt: skip
        c.exec_driver_sql(
            f"{head} '{dim}', {column}, f.kind, {many} FROM findings f{_joined([dim])} WHERE {column} <> '' GROUP BY 2, 3"
        )
    first = "JOIN devices d ON d.device = t.device GROUP BY 2"
    c.exec_driver_sql(
        f"{head} 'reason', t.reason, '', count(*), count(DISTINCT t.device), min(d.first_seen) FROM skipped t {first}"
    )
    c.exec_driver_sql(
        f"{head} 'approved', t.entry, '', sum(t.count), count(DISTINCT t.device), min(d.first_seen) FROM approved t {first}"
    )
    c.exec_driver_sql(
        f"{head} 'digest', digest, '', 0, count(*), min(first_seen) FROM devices WHERE digest <> '' GROUP BY 2"
    )


def _days(c, *, sqlite):
    opened = "sum(count(*)) OVER (PARTITION BY kind ORDER BY first_seen / 86400)"
    c.exec_driver_sql(
        "INSERT INTO days (day, kind, open, opened, changed, resolved)"
        f" SELECT first_seen / 86400, kind, {opened if sqlite else f'CAST({opened} AS bigint)'}, count(*), 0, 0"
        " FROM findings GROUP BY 1, 2, first_seen / 86400"
    )


def _tokens(c, count, now):
    rows = [
        {
            "hash": tokens.digest(fleet.token_of(nth)), "kind": "device", "device": fleet.device_of(nth), "install_id": "i",
            "name": "", "role": "", "created_by": "bench", "created": now, "expires": now + 30 * DAY, "revoked": None,
            "used": now,
        }
        for nth in range(count)
    ]  # fmt: skip
    write(c, schema.TOKENS, rows)


def _audit(c, now):
    rows = [
        {
            "seq": nth + 1, "time": now - AUDIT + nth, "actor": f"person-{nth % 7}", "actor_kind": "session",
            "action": ("login", "export", "device-token.revoke", "policy.publish")[nth % 4], "target": f"t{nth}",
            "detail": "{}", "address": "192.0.2.7",
        }
        for nth in range(AUDIT)
    ]  # fmt: skip
    write(c, schema.AUDIT, rows)


class Named:
    """A table that is no part of the console's schema."""

    def __init__(self, name):
        self.name = name


def write(c, table, rows):
    """Write many rows."""
    if not rows:
        return
    names = list(rows[0])
    values = [tuple(row[name] for name in names) for row in rows]
    raw = c.connection.driver_connection
    if c.dialect.name == "sqlite":
        places = ", ".join("?" * len(names))
        raw.executemany(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({places})", values)
        return
    with raw.cursor() as cursor, cursor.copy(f"COPY {table.name} ({', '.join(names)}) FROM STDIN") as copy:
        for one in values:
            copy.write_row(one)
