# SPDX-License-Identifier: Apache-2.0
"""Every filter shows exactly what it says, in order, each row once, on both engines: held to a count by hand.

The bounds of a walk are small here, so that every way in which a list may be read is taken.
"""

import pytest
from sqlalchemy import select

from halod.console.problem import Problem
from halod.console.store import schema
from halod.console.store.read import coverage, devices, findings, overview, registry, transitions
from halod.console.store.read import walk as walking
from halod.policy.model import Entry, Package, Policy
from tests.console.support_bulk import NOW
from tests.console.support_reads import (
    CASES,
    DEVICE,
    DEVICE_CASES,
    DIMS,
    FINDING_CASES,
    GROUP_CASES,
    SILENT,
    TIMES,
    fleet,  # noqa: F401 - a fixture
    walk,
)

HOSTILE = (
    "\x00",
    "a\x00",
    "\ud800",
    "x" * 10_000,
    "%",
    "_",
    "'",
    '"; DROP TABLE devices; --',
    "\U0010ffff",
    "\\",
)


@pytest.fixture(params=["as-it-is", "small"])
def bounds(request, monkeypatch):
    if request.param == "small":
        monkeypatch.setattr(walking, "LOOKED_AT", 37)
        monkeypatch.setattr(walking, "FIRST_LOOK", 11)
        monkeypatch.setattr(walking, "FEW", 13)


class Tables:
    """Everything in a store, to count by hand."""

    def __init__(self, store):
        with store.read() as c:

            def rows(table):
                return [dict(row) for row in c.execute(select(table)).mappings()]

            self.devices = {row["device"]: row for row in rows(schema.DEVICES)}
            self.findings = rows(schema.FINDINGS)
            self.things = {row["id"]: row for row in rows(schema.THINGS)}
            self.units = {(row["unit"], row["device"]) for row in rows(schema.DEVICE_UNITS)}
            self.skipped = rows(schema.SKIPPED)
            self.transitions = rows(schema.TRANSITIONS)
            self.approved = rows(schema.APPROVED)
            for row in rows(schema.HEARTBEATS):
                self.devices[row["device"]]["last_report"] = row["last_report"]

    def device(self, row, where):
        silent = row["last_report"] < NOW - SILENT
        state = where.get("state", "")
        return (
            (not state or {"silent": silent, "reporting": not silent}.get(state, bool(row.get(state))))
            and row["ring"] == where.get("ring", row["ring"])
            and row["digest"] == where.get("digest", row["digest"])
            and row["hostname"].startswith(where.get("hostname", ""))
            and ("unit" not in where or (where["unit"], row["device"]) in self.units)
        )

    def finding(self, row, where):
        names = ("thing", "device", "server", "sha256", "harness", "ring", "kind")
        return all(row[name] == where[name] for name in names if name in where) and (
            "unit" not in where or (where["unit"], row["device"]) in self.units
        )


_tables = {}


@pytest.fixture
def tables(fleet):  # noqa: F811
    if id(fleet) not in _tables:
        _tables[id(fleet)] = Tables(fleet)
    return _tables[id(fleet)]


@pytest.mark.parametrize("name", DEVICE_CASES)
def test_devices(fleet, tables, bounds, name):  # noqa: F811
    where = DEVICE_CASES[name]
    rows, _ = walk(fleet, CASES[f"devices {name}"])
    wanted = [row for row in tables.devices.values() if tables.device(row, where)]
    if where.get("state") == "silent":
        wanted.sort(key=lambda row: (row["last_report"], row["device"]), reverse=True)
    else:
        wanted.sort(key=lambda row: (row["hostname"], row["device"]))
    assert [row.device for row in rows] == [row["device"] for row in wanted]
    assert all(row.silent == (row.last_report < NOW - SILENT) for row in rows)
    every, _ = walk(fleet, CASES[f"every device {name}"])
    assert [row.device for row in every] == sorted(row["device"] for row in wanted)


@pytest.mark.parametrize("name", FINDING_CASES)
def test_findings(fleet, tables, bounds, name):  # noqa: F811
    rows, _ = walk(fleet, CASES[f"findings {name}"])
    wanted = sorted(
        (row["id"] for row in tables.findings if tables.finding(row, FINDING_CASES[name])), reverse=True
    )
    assert [row.id for row in rows] == wanted
    assert all(row.hostname == tables.devices[row.device]["hostname"] for row in rows)


@pytest.mark.parametrize("order", ["devices", "last-seen"])
@pytest.mark.parametrize("name", GROUP_CASES)
def test_groups_count_what_the_filter_selects(fleet, tables, bounds, name, order):  # noqa: F811
    where = GROUP_CASES[name]
    found = {}
    narrow = {key: where[key] for key in ("harness", "ring", "unit") if key in where}
    for row in tables.findings:
        thing = tables.things[row["thing"]]
        if (
            tables.finding(row, narrow)
            and thing["kind"] == where.get("kind", thing["kind"])
            and thing["server"].startswith(where.get("server", ""))
            and thing["what"] == where.get("what", thing["what"])
        ):
            cell = found.setdefault(row["thing"], [0, set(), 0])
            cell[0] += 1
            cell[1].add(row["device"])
            cell[2] = max(cell[2], row["last_seen"])
    wanted = [(thing, count, len(names), last) for thing, (count, names, last) in found.items()]
    by = 2 if order == "devices" else 3
    wanted.sort(key=lambda row: (row[by], row[0]), reverse=True)
    rows, _ = walk(fleet, CASES[f"groups {order} {name}"])
    assert [(row.id, row.findings, row.devices, row.last_seen) for row in rows] == wanted


@pytest.mark.parametrize("dim", DIMS)
def test_prevalence_has_each_value_once_most_devices_first(fleet, dim):  # noqa: F811
    rows, _ = walk(fleet, CASES[f"prevalence {dim}"])
    keys = [(row.devices, row.value, row.kind) for row in rows]
    assert keys == sorted(set(keys), reverse=True)
    assert keys


def test_one_group_and_one_device(fleet, tables):  # noqa: F811
    with fleet.read() as c:
        group = findings.group(c, 1)
        assert group.findings == sum(row["thing"] == 1 for row in tables.findings)
        assert [findings.group(c, number) for number in (10**9, 10**30, 0, -1)] == [None] * 4
        assert findings.findings(c, findings.FindingFilter(thing=10**30)).rows == ()
        device = devices.device(c, DEVICE, **TIMES)
        assert device.findings == sum(row["device"] == DEVICE for row in tables.findings)
        assert devices.device(c, "nobody", **TIMES) is None
        approved = devices.approved(c, DEVICE)
        assert len(approved) == sum(row["device"] == DEVICE for row in tables.approved)


def test_transitions_forwards_and_backwards(fleet, tables):  # noqa: F811
    every = sorted(row["seq"] for row in tables.transitions)
    newest, _ = walk(fleet, CASES["newest"])
    assert [row.seq for row in newest] == every[::-1]
    after, seen = 0, []
    while True:
        with fleet.read() as c:
            page = transitions.since(c, after=after, limit=200)
        seen += [row.seq for row in page.rows]
        assert page.next == str(seen[-1])
        if not page.rows:
            break
        after = int(page.next)
    assert seen == every
    with fleet.read() as c:
        page = transitions.since(c, after=0, limit=200, device=DEVICE)
        assert [row.seq for row in page.rows] == sorted(
            row["seq"] for row in tables.transitions if row["device"] == DEVICE
        )
        assert transitions.since(c, after=10**18).next == str(10**18)


@pytest.mark.parametrize(
    "where", [{}, {"reason": "symlink"}, {"harness": "codex"}, {"reason": "symlink", "harness": "codex"}]
)
def test_gaps(fleet, tables, bounds, where):  # noqa: F811
    rows, _ = walk(fleet, lambda c, cursor: coverage.gaps(c, **where, cursor=cursor))
    wanted = sorted(
        (row["device"], row["reason"], row["harness"])
        for row in tables.skipped
        if all(row[key] == value for key, value in where.items())
    )
    assert sorted((row.device, row.reason, row.harness) for row in rows) == wanted
    assert [row.device for row in rows] == sorted(row.device for row in rows)


def test_the_overview_adds_up(fleet, tables):  # noqa: F811
    with fleet.read() as c:
        found = overview.overview(c, **TIMES)
        days = overview.trend(c, today=NOW // 86400)
    silent = sum(row["last_report"] < NOW - SILENT for row in tables.devices.values())
    assert (found.devices, found.silent, found.reporting) == (
        len(tables.devices),
        silent,
        len(tables.devices) - silent,
    )
    assert found.partly == sum(row["partly"] for row in tables.devices.values())
    assert found.findings == len(tables.findings) == sum(one.findings for one in found.by_kind)
    kinds = {one.value for one in found.by_kind}
    assert {(one.day, one.kind) for one in days} == {
        (day, kind) for day in range(NOW // 86400 - 29, NOW // 86400 + 1) for kind in kinds
    }


def test_a_quiet_day_repeats_what_was_open(store):
    with store.write() as c:
        rows = [(90, "denied", 4), (97, "denied", 6), (99, "unapproved", 1)]
        for day, kind, count in rows:
            c.execute(
                schema.DAYS.insert().values(
                    day=day, kind=kind, open=count, opened=count, changed=0, resolved=0
                )
            )
    with store.read() as c:
        days = overview.trend(c, today=100, days=5)
    assert [(one.day, one.open, one.opened) for one in days if one.kind == "denied"] == [
        (96, 4, 0),
        (97, 6, 6),
        (98, 6, 0),
        (99, 6, 0),
        (100, 6, 0),
    ]
    assert [one.open for one in days if one.kind == "unapproved"] == [0, 0, 0, 1, 1]


def test_registry_usage(fleet, tables):  # noqa: F811
    entry = Package(type="npm", identifier="@acme/tool", version="1.2.3")
    policy = Policy(entries=tuple(Entry(id=f"entry-{nth}", package=entry) for nth in range(148, 240)))
    rows, _ = walk(fleet, lambda c, cursor: registry.usage(c, policy, cursor=cursor, limit=20))
    used = {row["entry"] for row in tables.approved}
    assert [row.entry for row in rows] == sorted(used | {f"entry-{nth}" for nth in range(148, 240)})
    for row in rows:
        assert row.used == (row.entry in used)
        assert row.known == (148 <= int(row.entry.partition("-")[2]) < 240)
        assert row.devices == len(
            {one["device"] for one in tables.approved if one["entry"] == row.entry}
        ) or row.devices == sum(one["entry"] == row.entry for one in tables.approved)
    unused, _ = walk(fleet, lambda c, cursor: registry.usage(c, policy, unused=True, cursor=cursor, limit=20))
    assert [row.entry for row in unused] == [row.entry for row in rows if not row.used]
    assert unused[0].what == "npm @acme/tool 1.2.3"
    users, _ = walk(fleet, lambda c, cursor: registry.users(c, "entry-3", cursor=cursor, limit=3))
    assert [(row.device, row.harness) for row in users] == sorted(
        (row["device"], row["harness"]) for row in tables.approved if row["entry"] == "entry-3"
    )


def test_digests_of_rings(fleet, tables):  # noqa: F811
    with fleet.read() as c:
        rows = registry.digests(c)
        assert all(row.ring == "ring2" for row in registry.digests(c, "ring2"))
    assert sum(row.devices for row in rows) == len(tables.devices)


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_hostile_filters_find_nothing_or_are_refused(fleet, text):  # noqa: F811
    asked = [
        *(
            (devices.devices, devices.DeviceFilter(**{name: text}), TIMES)
            for name in ("ring", "unit", "hostname", "digest")
        ),
        *(
            (findings.groups, findings.GroupFilter(**{name: text}), {})
            for name in ("kind", "harness", "ring", "unit", "server", "what")
        ),
        *(
            (findings.findings, findings.FindingFilter(**{name: text}), {})
            for name in ("device", "server", "sha256", "harness", "unit", "ring", "kind")
        ),
    ]
    for ask, where, more in asked:
        with fleet.read() as c:
            try:
                assert ask(c, where, **more).rows == ()
            except Problem as problem:
                assert problem.status == 400  # noqa: PT017 - the other outcome is right as well
    for ask in (
        lambda c: devices.device(c, text, **TIMES),
        lambda c: transitions.newest(c, device=text),
        lambda c: coverage.gaps(c, reason=text),
        lambda c: registry.users(c, text),
        lambda c: devices.devices(c, devices.DeviceFilter(), cursor=text, **TIMES),
    ):
        with fleet.read() as c:
            try:
                found = ask(c)
                assert found is None or found.rows == ()
            except Problem as problem:
                assert problem.status == 400  # noqa: PT017 - the other outcome is right as well
