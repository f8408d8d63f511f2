# SPDX-License-Identifier: Apache-2.0
"""A large fleet written straight into the tables, counts included: for query plans and for measuring, not for what is right.

Deterministic. `python -m tests.console.support_bulk URL DEVICES` fills a database and prints how long it took.
"""

import hashlib
import itertools
import random
import sys
import time
from collections import Counter, defaultdict

from sqlalchemy import insert

from halod.console.store import schema
from halod.console.store.engine import Store
from halod.console.store.migrate import upgrade
from halod.console.store.places import places

NOW = 1_796_000_000
RINGS = ("ring0", "ring1-canary", "ring2", "ring3")
HARNESSES = ("claude-code", "cursor", "codex", "gemini-cli", "vscode", "opencode")
KINDS = ("unapproved", "version-drift", "denied")
REASONS = ("malformed", "symlink", "too-large", "unreadable")
POPULAR = 60


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def _thing(draw, number):
    """Give (kind, server, what, transport, host, sha256): half of a few that everybody has, half rare ones."""
    if draw.random() < 0.5:
        nth = min(int(draw.expovariate(0.1)), POPULAR - 1)
        server = f"popular-{nth:02}"
        if nth % 3 == 0:
            host = f"mcp-{nth}.example.com"
            return KINDS[nth % 2], server, host, "http", host, sha256(f"https://{host}/{nth}")
        digest = sha256(f"popular {nth}")
        return KINDS[nth % 3], server, digest, "stdio", "", digest
    nth = draw.randrange(max(number // 2, 1))
    digest = sha256(f"rare {nth}")
    return KINDS[nth % 2], f"rare-{nth % 997:03}-{nth}", digest, "stdio", "", digest


class _Fleet:
    """Rows by table; counts as they come."""

    def __init__(self, number, seed, transitions):
        self.number = number
        self.transitions = transitions
        self.draw = random.Random(seed)
        self.things = {}
        self.groups = defaultdict(lambda: [0, 0, "", 0])
        self.tallies = defaultdict(lambda: [0, 0, 0])
        self.opened = Counter()
        self.seq = self.finding = 0

    def device(self, nth):
        """Give the rows of a device, as (table, row)."""
        draw, device = self.draw, sha256(f"device {nth}")
        ring = RINGS[min(int(draw.expovariate(0.8)), 3)]
        units = sorted(
            {f"unit-{min(int(draw.expovariate(0.05)), 199)}" for _ in range(draw.choice((0, 1, 1, 1, 2)))}
        )
        digest = "sha256:" + sha256(f"policy {min(int(draw.expovariate(1.2)), 9)}")
        first = NOW - draw.randrange(300 * 86400)
        count = draw.choice((0, 3, 4, 5, 5, 6, 7, 10))
        skipped = draw.randrange(1, 4) if draw.random() < 0.03 else 0
        heard = NOW - (draw.randrange(900) if draw.random() < 0.95 else draw.randrange(80 * 86400))
        row = dict.fromkeys(
            ("username", "claimed_time", "install_id", "assigned_ring", "error_code", "last_error"), ""
        )
        yield schema.DEVICES, row | {
            "device": device, "hostname": f"mbp-{nth:06}", "os": "macos", "halod": "0.1.0", "ring": ring,
            "digest": digest, "mode": "allowlist", "units": str(units).replace("'", '"'), "assigned_units": "[]",
            "first_seen": first, "changed_at": heard, "content": sha256(f"c{nth}"), "findings": count, "drift_total": count,
            "skipped": skipped, "accounts": 1, "files": 7, "definitions": count + 4,
            "not_covered": '["cloud-connectors"]', "truncated": False, "partly": skipped > 0, "silent": False,
            "limited": nth % 5000 == 17,
        }  # fmt: skip
        yield schema.HEARTBEATS, {"device": device, "last_report": heard}
        self.tally("digest", digest, "", 1, first, rows=0)
        for unit in units:
            yield schema.DEVICE_UNITS, {"unit": unit, "device": device}
        yield from self.findings(device, ring, units, count, first)
        yield from self.gaps(device, skipped, first)
        for harness, entry in sorted(
            {(draw.choice(HARNESSES), f"entry-{draw.randrange(150)}") for _ in range(4)}
        ):
            yield (
                schema.APPROVED,
                {
                    "device": device,
                    "harness": harness,
                    "username": "dev",
                    "entry": entry,
                    "count": 1,
                },
            )
            self.tally("approved", entry, "", 1, first)

    def findings(self, device, ring, units, count, first):
        seen = defaultdict(set)
        for nth in range(count):
            kind, server, what, transport, host, digest = _thing(self.draw, self.number)
            thing = self.things.setdefault((kind, server, what), (len(self.things) + 1, transport, first))[0]
            harness = self.draw.choice(HARNESSES)
            at = min(first + self.draw.randrange(86400), NOW)
            self.finding += 1
            row = {
                "device": device, "username": "dev", "harness": harness, "file": f"~/.{harness}.json", "scope": "user",
                "server": server, "kind": kind, "transport": transport, "host": host, "sha256": digest, "secret": False,
            }  # fmt: skip
            yield schema.FINDINGS, row | {
                "id": self.finding, "thing": thing, "nth": nth, "detail": f"defined as {transport}; not approved",
                "fix": f"remove {server}", "ring": ring, "projects": 0, "enabled": True, "stale": False,
                "first_seen": at, "last_seen": at,
            }  # fmt: skip
            for each in range(self.transitions // 5):
                event = ("opened", "changed")[each > 0]
                self.seq += 1
                yield schema.TRANSITIONS, row | {
                    "seq": self.seq, "tid": f"{nth}-{each}", "received": at + each, "claimed_time": "", "event": event,
                    "was": digest if each else "",
                }  # fmt: skip
            for place in places(harness, ring, tuple(units)):
                cell = self.groups[place, thing]
                cell[0] += 1
                cell[1] += (place, thing) not in seen["groups"]
                cell[2], cell[3] = kind, max(cell[3], at)
                seen["groups"].add((place, thing))
            pairs = [
                ("harness", harness),
                ("ring", ring),
                ("definition", digest),
                ("server", server),
                ("kind", kind),
            ]
            for dim, value in [*pairs, *(("unit", unit) for unit in units)]:
                self.tally(dim, value, kind, (dim, value, kind) not in seen["tallies"], at)
                seen["tallies"].add((dim, value, kind))
            self.opened[at // 86400, kind] += 1

    def gaps(self, device, count, first):
        seen = set()
        for nth in range(count):
            reason = self.draw.choice(REASONS)
            yield schema.SKIPPED, {
                "device": device, "nth": nth, "username": "dev", "harness": self.draw.choice(HARNESSES),
                "file": "~/.config/x.json", "reason": reason, "server": "", "errno": "", "line": 0, "column_": 0,
            }  # fmt: skip
            self.tally("reason", reason, "", reason not in seen, first)
            seen.add(reason)

    def tally(self, dim, value, kind, new, at, rows=1):
        cell = self.tallies[dim, value, kind]
        cell[0] += rows
        cell[1] += new
        cell[2] = min(cell[2] or at, at)

    def counts(self):
        """Give what is counted, when every device has been."""
        for (kind, server, what), (thing, transport, first) in self.things.items():
            yield schema.THINGS, {
                "id": thing, "kind": kind, "server": server, "what": what, "transport": transport,
                "fix": f"remove {server}", "first_seen": first,
            }  # fmt: skip
        for (place, thing), (findings, devices, kind, last) in self.groups.items():
            yield schema.GROUP_COUNTS, {
                "place": place, "thing": thing, "kind": kind, "findings": findings, "devices": devices,
                "last_seen": last,
            }  # fmt: skip
        for (dim, value, kind), (findings, devices, first) in self.tallies.items():
            yield schema.TALLIES, {
                "dim": dim, "value": value, "kind": kind, "findings": findings, "devices": devices, "first_seen": first,
            }  # fmt: skip
        still = Counter()
        for (day, kind), opened in sorted(self.opened.items()):
            still[kind] += opened
            yield (
                schema.DAYS,
                {
                    "day": day,
                    "kind": kind,
                    "open": still[kind],
                    "opened": opened,
                    "changed": 0,
                    "resolved": 0,
                },
            )
        for nth in range(min(self.number, 20_000)):
            yield schema.AUDIT, {
                "time": NOW - self.number + nth, "actor": f"person-{nth % 7}", "actor_kind": "session", "target": "",
                "action": ("login", "export", "token.revoke")[nth % 3], "detail": "{}", "address": "127.0.0.1",
            }  # fmt: skip


def fill(store, devices, seed=7, transitions=50):
    """Write a fleet of so many devices: five findings each on average, and about so many transitions."""
    fleet = _Fleet(devices, seed, transitions)
    with store.write() as connection:
        if not store.sqlite:
            connection.exec_driver_sql(
                "SET LOCAL session_replication_role = replica"
            )  # foreign keys hold by themselves
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        else:
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        waiting = defaultdict(list)
        rows = itertools.chain(
            itertools.chain.from_iterable(fleet.device(n) for n in range(devices)), fleet.counts()
        )
        for table, row in rows:
            waiting[table].append(row)
            if len(waiting[table]) >= 5000:
                _write(connection, table, waiting.pop(table), sqlite=store.sqlite)
        for table, rows in waiting.items():
            _write(connection, table, rows, sqlite=store.sqlite)
        if not store.sqlite:
            for name, key in (("things", "id"), ("findings", "id"), ("transitions", "seq")):
                newest = f"(SELECT max({key}) FROM {name})"
                connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{name}', '{key}'), {newest})"
                )
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE" if store.sqlite else "VACUUM ANALYZE")


def _write(connection, table, rows, *, sqlite):
    if sqlite:
        connection.execute(insert(table), rows)
        return
    names = list(rows[0])
    with (
        connection.connection.driver_connection.cursor() as cursor,
        cursor.copy(f"COPY {table.name} ({', '.join(names)}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row([row[name] for name in names])


if __name__ == "__main__":
    begun = time.monotonic()
    opened = Store.open(sys.argv[1])
    upgrade(opened)
    fill(opened, int(sys.argv[2]))
    print(f"{time.monotonic() - begun:.0f} s")
