# SPDX-License-Identifier: Apache-2.0
"""Who has fallen silent, what is past its time, and that counts stay right; on both engines."""

import json

import pytest
from sqlalchemy import func, insert, select, update

from halod.console import chores
from halod.console.cli import main
from halod.console.hooks import events
from halod.console.ingest.apply import take
from halod.console.security import login
from halod.console.settings import DAY, Hook, Retention
from halod.console.settings.kinds import EVENTS
from halod.console.store import apply, counts, retention
from halod.console.store import schema as tables
from halod.console.store.schema import DELIVERIES, DEVICES, FINDINGS, HEARTBEATS, THINGS, TRANSITIONS
from tests.console.support_ops import NOW, Clock, console_of
from tests.console.support_people import session
from tests.console.support_replicas import document, finding, transition

HOOK = Hook(name="chat", url="https://chat.acme.example/", secret_file="", events=EVENTS)
HOUR = 3600


@pytest.fixture
def console(store):
    return console_of(store, Clock(NOW), webhooks=(HOOK,), silent_after=HOUR)


def rows(store, table):
    with store.read() as c:
        return c.execute(select(table)).all()


def heard(console, *devices, at):
    with console.store.write() as c:
        apply.heard(c, devices, at)


def fleet(console, *devices, server="notes", now=None):
    """Devices that have reported a finding each."""
    when = console.clock.now() if now is None else now
    take(
        console.store,
        [
            document(device, [finding(server, 1)], [transition(f"t-{device}", "opened", finding(server, 1))])
            for device in devices
        ],
        now=when,
    )


def silent(console):
    return sorted(row.device for row in rows(console.store, DEVICES) if row.silent)


def told(console):
    return [
        (row.event, json.loads(row.payload)["data"]["devices"][0]["device"])
        for row in rows(console.store, DELIVERIES)
    ]


def run(console, minutes=1):
    """Let the job run every minute for a while."""
    for _ in range(minutes):
        console.clock.go(60)
        chores.silent(console, console.clock.now())


def test_a_device_falls_silent_and_comes_back(console):
    """It is marked and told once each way."""
    fleet(console, "d1", "d2")
    run(console, 59)
    heard(console, "d2", at=console.clock.now())
    run(console, 1)
    assert silent(console) == []
    run(console, 5)
    assert silent(console) == ["d1"]
    assert told(console) == [("device.silent", "d1")]
    heard(console, "d1", at=console.clock.now())
    run(console, 2)
    assert silent(console) == []
    assert told(console) == [("device.silent", "d1"), ("device.back", "d1")]


def test_an_outage_of_the_console_makes_nobody_silent(console):
    """After a night without a console every device would be: it waits for as long as they have."""
    fleet(console, "d1", "d2")
    run(console, 2)
    console.clock.go(10 * HOUR)
    run(console, 30)
    heard(console, "d2", at=console.clock.now())
    run(console, 29)
    assert silent(console) == []
    run(console, 3)
    assert silent(console) == ["d1"]


def test_many_are_marked_in_batches_and_told_in_a_few_deliveries(console, monkeypatch):
    monkeypatch.setattr(chores, "BATCH", 20)
    fleet(console, *(f"d{number:03d}" for number in range(70)))
    run(console, 60)
    console.clock.go(60)
    again = [chores.silent(console, console.clock.now()) for _ in range(5)]
    assert again == [True, True, True, False, False]
    assert len(silent(console)) == 70
    deliveries = [json.loads(row.payload) for row in rows(console.store, DELIVERIES)]
    assert len(deliveries) <= events.PER_FOLD + 1
    assert sum(one["data"]["count"] for one in deliveries) == 70


def test_a_report_keeps_the_mark_so_that_coming_back_is_told(console):
    """A changed status of a silent device does not hide that it was silent."""
    fleet(console, "d1")
    run(console, 62)
    fleet(console, "d1", server="other")
    assert silent(console) == ["d1"]
    run(console)
    assert (silent(console), told(console)[-1]) == ([], ("device.back", "d1"))


# --- sessions and sign-ins ----------------------------------------------------------------------------------


def test_ended_sign_ins_are_dropped(console):
    """Links that were not used and sessions that ended; the others stay."""
    session(console, name="idle")
    console.clock.go(8 * HOUR - 60)
    session(console, name="fresh")
    with console.store.write() as c:
        login.make_link(c, now=console.clock.now() - HOUR)
        login.make_link(c, now=console.clock.now())
    console.clock.go(60)
    chores.sign_ins(console, console.clock.now())
    assert [row.name for row in rows(console.store, tables.SESSIONS)] == ["fresh"]
    assert len(rows(console.store, tables.LOGINS)) == 1


# --- retention ----------------------------------------------------------------------------------------------


def right(store):
    """Look whether every count is what counting anew gives."""
    with store.read() as c:
        kept, anew = counts.kept(c), counts.recount(c)
    zero = {key: value for key, value in kept.tallies.items() if value != (0, 0)}
    assert (zero, kept.groups) == (anew.tallies, anew.groups)


def forget(console, **days):
    """Every step until nothing is left; what was forgotten."""
    total = dict.fromkeys(retention.KINDS, 0)
    more = True
    while more:
        done = retention.step(console.store, Retention(**days), console.clock.now())
        total = {kind: total[kind] + done[kind] for kind in total}
        more = retention.more(done)
    return {kind: count for kind, count in total.items() if count}


def test_a_device_that_is_gone_leaves_with_its_findings_and_counts(console):
    """The others stay; what happened stays, until its own time."""
    fleet(console, "old1", "old2")
    console.clock.go(80 * DAY)
    fleet(console, "new1")
    heard(console, "old2", at=console.clock.now())
    console.clock.go(11 * DAY)
    assert forget(console)["devices"] == 1
    assert sorted(row.device for row in rows(console.store, DEVICES)) == ["new1", "old2"]
    assert sorted(row.device for row in rows(console.store, FINDINGS)) == ["new1", "old2"]
    assert sorted(row.device for row in rows(console.store, HEARTBEATS)) == ["new1", "old2"]
    assert len(rows(console.store, TRANSITIONS)) == 3
    right(console.store)


def test_a_fleet_is_forgotten_in_batches(console, monkeypatch):
    """Each a transaction of its own, and the counts right after each."""
    monkeypatch.setattr(retention, "DEVICES_BATCH", 4)
    fleet(console, *(f"d{number}" for number in range(10)))
    console.clock.go(91 * DAY)
    left = []
    for _ in range(4):
        retention.step(console.store, Retention(), console.clock.now())
        right(console.store)
        left.append(len(rows(console.store, DEVICES)))
    assert left == [6, 2, 0, 0]
    assert rows(console.store, tables.GROUP_COUNTS) == []


def test_a_forgotten_device_that_reports_again_is_new(console):
    fleet(console, "d1")
    console.clock.go(91 * DAY)
    forget(console)
    fleet(console, "d1")
    assert [row.first_seen for row in rows(console.store, DEVICES)] == [console.clock.now()]
    right(console.store)


def test_zero_days_keep_for_ever(console):
    fleet(console, "d1")
    console.clock.go(4000 * DAY)
    assert forget(console, transitions=0, audit=0, devices=0, deliveries=0) == {"names": 1}
    assert len(rows(console.store, DEVICES)) == len(rows(console.store, TRANSITIONS)) == 1


def test_what_is_past_ends(console):
    """A row of each kind on both sides of its period."""
    store = console.store
    for days in (401, 399, 1):
        at = NOW - days * DAY
        with store.write() as c:
            c.execute(insert(TRANSITIONS).values(device="d", tid=str(days), received=at))
            c.execute(insert(tables.AUDIT).values(time=at, action=f"a{days}", actor="x"))
            c.execute(insert(tables.DAYS).values(day=at // DAY, kind="denied"))
    for days in (31, 29):
        for state in ("due", "done", "dead"):
            with store.write() as c:
                c.execute(
                    insert(DELIVERIES).values(
                        hook="h", key=f"{state}{days}", state=state, created=NOW - days * DAY, next_try=0
                    )
                )
            with store.write() as c:
                c.execute(
                    insert(tables.SEEN_NAMES).values(device=state, name=str(days), last_seen=NOW - days * DAY)
                )
    assert forget(console) == {"transitions": 1, "audit": 1, "days": 1, "deliveries": 2, "names": 3}
    assert sorted(row.key for row in rows(store, DELIVERIES)) == ["dead29", "done29", "due29", "due31"]
    assert sorted(row.action for row in rows(store, tables.AUDIT)) == ["a1", "a399"]
    assert forget(console) == {}


def test_enrolments_and_tokens_end(console):
    """What waits in vain, what was decided long ago, tokens that open nothing and prove nothing."""
    store = console.store
    fleet(console, "known")
    with store.write() as c:
        for device, state, days in (
            ("waits", "waiting", 29), ("gave-up", "waiting", 31), ("refused", "refused", 91), ("accepted", "accepted", 89),
        ):  # fmt: skip
            at = NOW - days * DAY
            c.execute(
                insert(tables.ENROLLMENTS).values(device=device, state=state, first_asked=at, last_asked=at)
            )
        for name, kind, device, expires, revoked in (
            ("good", "device", "known", 10, None), ("known-expired", "device", "known", -200, None),
            ("unknown-expired", "device", "unknown", -91, None), ("unknown-lately", "device", "unknown", -89, None),
            ("revoked", "device", "known", 10, -91), ("revoked-lately", "device", "known", 10, -89),
            ("api", "api", "", -91, None), ("api-good", "api", "", 1, None),
        ):  # fmt: skip
            c.execute(
                insert(tables.TOKENS).values(
                    hash=name, kind=kind, device=device, created=0, expires=NOW + expires * DAY,
                    revoked=None if revoked is None else NOW + revoked * DAY,
                )
            )  # fmt: skip
    assert forget(console) == {"enrolments": 2, "tokens": 3}
    assert sorted(row.hash for row in rows(store, tables.TOKENS)) == [
        "api-good", "good", "known-expired", "revoked-lately", "unknown-lately",
    ]  # fmt: skip
    assert sorted(row.device for row in rows(store, tables.ENROLLMENTS)) == ["accepted", "waits"]


def test_groups_and_definitions_that_nobody_has_end(console):
    """A thing that is still found stays, however old."""
    store = console.store
    fleet(console, "d1")
    take(store, [document("d2", [finding("gone", 2)])], now=NOW)
    take(store, [document("d2", [])], now=NOW)
    assert sorted(row.server for row in rows(store, THINGS)) == ["gone", "notes"]
    console.clock.go(401 * DAY)
    heard(console, "d1", "d2", at=console.clock.now())
    done = forget(console)
    assert (done["groups"], done["definitions"]) == (1, 1)
    assert [row.server for row in rows(store, THINGS)] == ["notes"]
    right(store)


def test_the_job_and_the_command_do_the_same(console, store_url, capsys):
    fleet(console, "d1")
    with console.store.write() as c:
        c.execute(update(HEARTBEATS).values(last_report=1))
    args = ["prune", "--database-url", store_url]
    assert main(args) == 0
    assert "1 devices" in capsys.readouterr().out
    assert main(args) == 0
    assert capsys.readouterr().out == "nothing is past its time\n"
    fleet(console, "d2")
    with console.store.write() as c:
        c.execute(update(HEARTBEATS).values(last_report=1))
    assert chores.prune(console, console.clock.now()) is False
    with console.store.read() as c:
        assert c.scalar(select(func.count()).select_from(DEVICES)) == 0


def test_the_jobs_have_names_and_intervals():
    assert {job.name: job.every for job in chores.JOBS} == {
        "silent": 60,
        "sign-ins": 600,
        "prune": 3600,
        "statistics": 86400,
    }


def test_sqlite_knows_what_its_tables_hold(console):
    """PostgreSQL looks by itself (autovacuum); SQLite has to be told."""
    fleet(console, "a", "b")
    assert not chores.statistics(console, NOW)
    if console.store.sqlite:
        with console.store.read() as c:
            known = set(c.exec_driver_sql("SELECT tbl FROM sqlite_stat1").scalars())
        assert {"devices", "findings", "group_counts"} <= known
