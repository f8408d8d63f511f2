# SPDX-License-Identifier: Apache-2.0
"""The floor: the rows that a report writes, written without a console, by pgbench and by a bare loop over sqlite3.

A group of reports is one transaction here as it is there, with the same durability, and its statements are set-wise. The
floor reads no document, checks no token, compares nothing and decides nothing: what it writes was laid out before.
"""

import json
import os
import re
import sqlite3
import subprocess
import tempfile
import time

from halod.console.store.places import places
from tests.bench.console import fleet
from tests.bench.console.seed import Named, write

GROUP = 64
_TABLES = """
CREATE TABLE bench_devices (n integer PRIMARY KEY, device text NOT NULL, finding bigint NOT NULL);
CREATE TABLE bench_groups (n integer, place bigint, thing bigint, kind text, PRIMARY KEY (n, place, thing));
CREATE TABLE bench_tallies (n integer, dim text, value text, kind text, PRIMARY KEY (n, dim, value, kind));
"""
_UNCHANGED = """
INSERT INTO heartbeats (device, last_report) SELECT device, {now} FROM bench_devices WHERE n BETWEEN {n} AND {n} + {more}
  ORDER BY device ON CONFLICT (device) DO UPDATE SET last_report = excluded.last_report;
"""
_CHANGED = (
    """
UPDATE findings SET sha256 = '{sha}', last_seen = {now} WHERE id IN
  (SELECT finding FROM bench_devices WHERE n BETWEEN {n} AND {n} + {more});
UPDATE devices SET content = '{sha}', changed_at = {now} WHERE device IN
  (SELECT device FROM bench_devices WHERE n BETWEEN {n} AND {n} + {more});
INSERT INTO transitions (device, tid, received, claimed_time, event, username, harness, file, scope, server, kind,
  transport, host, sha256, was, secret)
  SELECT b.device, '{tid}-' || b.n, {now}, '2026-11-30T09:15:02Z', 'changed', f.username, f.harness, f.file, f.scope,
  f.server, f.kind, f.transport, f.host, '{sha}', f.sha256, f.secret
  FROM bench_devices b JOIN findings f ON f.id = b.finding WHERE b.n BETWEEN {n} AND {n} + {more};
"""
    + 2
    * """
INSERT INTO tallies (dim, value, kind, findings, devices, first_seen)
  SELECT dim, value, kind, count(*), count(*), {now} FROM bench_tallies WHERE n BETWEEN {n} AND {n} + {more}
  GROUP BY dim, value, kind ORDER BY dim, value, kind ON CONFLICT (dim, value, kind) DO UPDATE
  SET findings = tallies.findings + excluded.findings, devices = tallies.devices + excluded.devices;
INSERT INTO group_counts (place, thing, kind, findings, devices, last_seen)
  SELECT place, thing, kind, count(*), count(*), {now} FROM bench_groups WHERE n BETWEEN {n} AND {n} + {more}
  GROUP BY place, thing, kind ORDER BY place, thing ON CONFLICT (place, thing) DO UPDATE
  SET findings = group_counts.findings + excluded.findings, devices = group_counts.devices + excluded.devices;
"""
    + _UNCHANGED
)
_STATEMENTS = {"unchanged": _UNCHANGED, "changed": _CHANGED}


def lay_out(store, count):
    """Write down, for each device that reports, one finding and the counts in which it takes part."""
    with store.write() as c:
        for statement in filter(str.strip, _TABLES.split(";")):
            c.exec_driver_sql(statement)
        numbers = {fleet.device_of(nth): nth for nth in range(count)}
        devices, groups, tallies = [], [], []
        found = c.exec_driver_sql(
            "SELECT f.device, min(f.id) FROM findings f JOIN tokens t ON t.device = f.device GROUP BY f.device"
        ).all()
        for device, finding in found:
            nth = numbers[device]
            devices.append({"n": nth, "device": device, "finding": finding})
            row = c.exec_driver_sql(
                "SELECT f.thing, f.kind, f.harness, f.ring, f.server, f.sha256, d.units FROM findings f"
                f" JOIN devices d ON d.device = f.device WHERE f.id = {int(finding)}"
            ).one()
            units = tuple(json.loads(row.units))
            groups += [
                {"n": nth, "place": place, "thing": row.thing, "kind": row.kind}
                for place in places(row.harness, row.ring, units)
            ]
            counted = (
                *(("harness", row.harness), ("ring", row.ring), ("server", row.server)),
                *(("definition", row.sha256), ("kind", row.kind), *(("unit", unit) for unit in units)),
            )
            tallies += [{"n": nth, "dim": a, "value": b, "kind": row.kind} for a, b in counted]
        for name, rows in (("bench_devices", devices), ("bench_groups", groups), ("bench_tallies", tallies)):
            write(c, Named(name), rows)


def pgbench(programs, directory, database, mode, count, seconds, clients, *, group=GROUP):
    """Give reports a second that pgbench's transactions stand for."""
    text = _STATEMENTS[mode].format(
        n="CAST(:n AS int)", more=group - 1, now="CAST(:now AS bigint)", sha="f" * 64, tid=":tid"
    )
    text = text.replace("':tid-'", "CAST(:tid AS text) || '-'")
    statements = [" ".join(one.split()) + ";" for one in text.split(";") if one.strip()]
    lines = [f"\\set n random(0, {max(count - group, 0)})", "\\set now 1796000000 + random(1, 1000000)"]
    lines += ["\\set tid random(1, 9000000000000000)", "BEGIN;", *statements, "COMMIT;"]
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write("\n".join(lines) + "\n")
        script.flush()
        done = subprocess.run(
            [
                os.path.join(programs, "pgbench"), "-n", "-f", script.name, "-M", "prepared", "-c", str(clients), "-j", "1",
                "-T", str(seconds), "-h", directory, "-U", "postgres", database,
            ],
            capture_output=True, text=True, check=False, timeout=seconds + 120,
        )  # fmt: skip
    rate = re.search(r"tps = ([0-9.]+)", done.stdout)
    if done.returncode or rate is None:
        raise RuntimeError(f"pgbench: {done.stderr[-500:]}")
    return float(rate[1]) * group


def sqlite_loop(path, mode, count, seconds, *, group=GROUP):
    """Give reports a second that a bare loop over the file writes, with the console's own pragmas."""
    raw = sqlite3.connect(path, isolation_level=None)
    try:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-32768", "mmap_size=268435456"):
            raw.execute(f"PRAGMA {pragma}")
        end, done = time.perf_counter() + seconds, 0
        begun = time.perf_counter()
        while time.perf_counter() < end:
            n = done % max(count - group, 1)
            given = {
                "n": n,
                "more": group - 1,
                "now": 1_796_000_000 + done,
                "sha": f"{done:064x}",
                "tid": f"floor-{done}",
            }
            raw.execute("BEGIN IMMEDIATE")
            for statement in filter(str.strip, _STATEMENTS[mode].format(**given).split(";")):
                raw.execute(statement)
            raw.execute("COMMIT")
            done += group
        return done / (time.perf_counter() - begun)
    finally:
        raw.close()
