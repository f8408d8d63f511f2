# SPDX-License-Identifier: Apache-2.0
"""How reports change what is known, and counts: random histories against a count made anew."""

from collections import Counter

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halod.console.store import counts, delta, known
from halod.console.store.apply import apply, forget, heard
from halod.console.store.delta import NOTHING, Known, State, changes, difference, groups_of, step, tallies_of
from halod.console.store.places import EVERYWHERE, place
from halod.console.store.report import Approved, Finding, Report, Skipped, Transition

NAMES = st.sampled_from(["a", "b", "c"])


def row(server="a", sha="0", **fields):
    base = {
        "username": "dev", "harness": "cursor", "file": "~/f", "scope": "user", "server": server, "kind": "unapproved",
        "transport": "stdio", "host": "", "sha256": sha * 64, "detail": "d", "fix": "f", "projects": 0, "enabled": True,
        "secret": False, "stale": False,
    }  # fmt: skip
    return Finding(**{**base, **fields})


def report(*findings, device="d1", **fields):
    base = {
        "device": device, "hostname": "h", "os": "linux", "halod": "1", "username": "dev", "ring": "r1", "units": (),
        "digest": "x", "mode": "allowlist", "claimed_time": "", "content": str(hash((findings, *fields))),
        "findings": findings, "approved": (), "skipped": (), "transitions": (), "accounts": 1, "files": 1,
        "definitions": 1, "not_covered": (), "drift_total": len(findings), "truncated": False, "last_error": "",
        "error_code": "", "looked": True,
    }  # fmt: skip
    return Report(**{**base, **fields})


FINDINGS = st.builds(
    row,
    server=NAMES,
    sha=st.sampled_from("01"),
    kind=st.sampled_from(["unapproved", "denied", "new-kind"]),
    harness=st.sampled_from(["cursor", "codex", ""]),
    transport=st.sampled_from(["stdio", "http"]),
    host=st.sampled_from(["", "mcp.acme.example"]),
    fix=st.sampled_from(["f", "g"]),
    stale=st.booleans(),
)
REPORTS = st.builds(
    lambda findings, **fields: report(*findings, **fields),
    findings=st.lists(FINDINGS, max_size=5),
    device=st.sampled_from(["d1", "d2", "d3"]),
    ring=st.sampled_from(["", "r1", "r2"]),
    units=st.sampled_from([(), ("u1",), ("u1", "u2")]),
    digest=st.sampled_from(["", "x", "y"]),
    truncated=st.booleans(),
    skipped=st.lists(
        st.builds(
            lambda reason: Skipped(
                username="dev",
                harness="cursor",
                file="~/f",
                reason=reason,
                server="",
                errno="",
                line=0,
                column=0,
            ),
            st.sampled_from(["symlink", "changed"]),
        ),
        max_size=2,
    ).map(tuple),
    approved=st.dictionaries(st.sampled_from(["e1", "e2"]), st.integers(1, 3), max_size=2).map(
        lambda counts: tuple(
            Approved(harness="codex", username="dev", entry=entry, count=count)
            for entry, count in counts.items()
        )
    ),
    transitions=st.lists(
        st.builds(
            lambda tid: Transition(tid=tid, claimed_time="", event="opened", was="", finding=row()),
            st.sampled_from(["t1", "t2", "t3"]),
        ),
        max_size=2,
    ).map(tuple),
)


def numbered(state, at=[0]):  # noqa: B006 - a counter
    """Give every row of a state a number, as the database does."""
    rows = []
    for one in state.findings:
        at[0] += 1
        rows.append(one if one.id else msgspec.structs.replace(one, id=at[0]))
    return msgspec.structs.replace(state, findings=tuple(rows))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(REPORTS, min_size=1, max_size=3), max_size=6))
def test_counts_equal_a_recount(history):
    """Whatever is reported in whatever order and groups: adding differences is counting anew."""
    states, tallies, groups = {}, {}, {}
    for batch in history:
        before = {one.device: states.get(one.device, NOTHING) for one in batch}
        for one in batch:
            states[one.device] = step(states.get(one.device, NOTHING), one, 1)
        made = difference((before[device], states[device]) for device in before)
        for total, part in ((tallies, made.tallies), (groups, made.groups)):
            for key, (rows, devices) in part.items():
                had = total.get(key, (0, 0))
                total[key] = (had[0] + rows, had[1] + devices)
        states = {device: numbered(state) for device, state in states.items()}
    assert {key: value for key, value in tallies.items() if value != (0, 0)} == summed(tallies_of, states)
    assert {key: value for key, value in groups.items() if value != (0, 0)} == summed(groups_of, states)


def summed(of, states):
    total = {}
    for state in states.values():
        for key, rows in of(state).items():
            had = total.get(key, (0, 0))
            total[key] = (had[0] + rows, had[1] + 1)
    return total


@settings(max_examples=80, deadline=None)
@given(st.lists(REPORTS.map(lambda one: msgspec.structs.replace(one, device="d1")), max_size=6))
def test_what_is_known_is_what_was_said(history):
    """After a whole report exactly its findings; after a shortened one at least those. Identities are never twice."""
    state = NOTHING
    for one in history:
        before = state
        state = numbered(step(state, one, 1))
        said = sorted(map(repr, one.findings))
        known = [repr(known.finding) for known in state.findings]
        if not one.truncated:
            assert sorted(known) == said
        else:
            assert not set(said) - set(known)
            assert len(known) >= len(before.findings)
            names = {known.finding.name for known in before.findings}
            assert names <= {known.finding.name for known in state.findings}
        keys = [(*known.finding.name, known.nth) for known in state.findings]
        assert len(keys) == len(set(keys))


@settings(max_examples=60, deadline=None)
@given(REPORTS, REPORTS)
def test_a_repeated_report_changes_nothing(first, second):
    """The second time a report comes it renews no row."""
    second = msgspec.structs.replace(second, device=first.device)
    once = numbered(step(numbered(step(NOTHING, first, 1)), second, 2))
    twice = step(once, second, 3)
    assert changes(once, twice) == delta.Changes()
    assert difference([(once, twice)]) == delta.Difference(tallies={}, groups={}, seen={})


def known_of(*findings):
    return numbered(step(NOTHING, report(*findings), 1))


def test_findings_of_one_name_are_told_apart_by_their_hash():
    """When the first of two goes, the second keeps its row and its age."""
    state = known_of(row(sha="0"), row(sha="1"))
    after = step(state, report(row(sha="1")), 2)
    (left,) = after.findings
    assert (left.id, left.nth, left.first_seen) == (state.findings[1].id, 1, 1)
    assert [gone.finding.sha256[0] for gone in changes(state, after).removed] == ["0"]


def test_findings_of_one_name_and_hash_keep_their_rows():
    """Said again, in whatever order, they renew nothing: a stale one beside the one that took its place."""
    stale = msgspec.structs.replace(row(sha="0"), stale=True)
    once = numbered(step(known_of(row(sha="1"), stale), report(stale, row(sha="0")), 2))
    for again in (report(stale, row(sha="0")), report(row(sha="0"), stale)):
        assert changes(once, step(once, again, 3)) == delta.Changes()


def test_many_findings_of_one_name_in_another_order():
    """Each is known again, whatever the order: nothing is renewed."""
    rows = [row(sha=digit, detail=f"{digit}{n}") for digit in "0123456789abcdef" for n in range(20)]
    state = known_of(*rows)
    assert changes(state, step(state, report(*rows[::-1]), 2)) == delta.Changes()


def test_a_changed_definition_is_the_same_finding():
    """It keeps its row and its age, and is told as replaced; other words about it are not."""
    state = known_of(row(sha="0"))
    after = step(state, report(row(sha="1")), 2)
    said = changes(state, after)
    assert [(one.id, one.first_seen, one.last_seen) for one in said.replaced] == [
        (state.findings[0].id, 1, 2)
    ]
    assert said.inserted == said.removed == ()
    words = changes(state, step(state, report(row(sha="0", detail="other")), 2))
    assert len(words.updated) == 1
    assert words.replaced == ()


def test_another_ring_changes_every_row():
    """The ring is copied into the rows, for their index, those included that a shortened report leaves out."""
    state = known_of(row("a"), row("b"))
    for said in (report(row("a"), row("b"), ring="r2"), report(row("a"), ring="r2", truncated=True)):
        updated = changes(state, step(state, said, 2)).updated
        assert [one.last_seen for one in updated] == [1, 1]


def test_when_a_group_was_last_said():
    """With a unit that is new, a group's time is that of its findings, not none and not now."""
    state = known_of(row("a"))
    made = difference([(state, step(state, report(row("a"), units=("u1",)), 2))])
    assert made.groups[place(unit="u1"), row("a").thing] == (1, 1)
    assert made.seen[place(unit="u1"), row("a").thing] == 1
    assert (EVERYWHERE, row("a").thing) not in made.groups


def test_what_shortened_reports_add_up_to_has_an_end():
    """A device whose reports are always shortened keeps what was said last."""
    state = NOTHING
    for at in range(20):
        rows = [row(f"s{at}-{n}") for n in range(256)]
        state = numbered(step(state, report(*rows, truncated=True), at))
    assert len(state.findings) == delta.MOST_KNOWN
    assert {known.finding.server for known in state.findings} >= {f"s19-{n}" for n in range(256)}
    assert min(known.last_seen for known in state.findings) == 20 - delta.MOST_KNOWN // 256


def test_keys_of_counts():
    """A finding counts once under each of its words; a device once under each key."""
    state = State(
        ring="r1",
        units=("u1", "u2"),
        digest="x",
        findings=tuple(
            Known(id=n, nth=n, first_seen=1, last_seen=1, finding=row(transport="http", host="h.example"))
            for n in (0, 1)
        ),
    )
    assert tallies_of(state) == {
        ("kind", "unapproved", "unapproved"): 2,
        ("harness", "cursor", "unapproved"): 2,
        ("server", "a", "unapproved"): 2,
        ("definition", "0" * 64, "unapproved"): 2,
        ("ring", "r1", "unapproved"): 2,
        ("unit", "u1", "unapproved"): 2,
        ("unit", "u2", "unapproved"): 2,
        ("digest", "x", ""): 0,
    }
    thing = ("unapproved", "a", "h.example")
    assert groups_of(state)[EVERYWHERE, thing] == 2
    assert len(groups_of(state)) == 12  # with and without harness, ring, and one of two units or none


# --- in a database -----------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.one_of(st.lists(REPORTS, min_size=1, max_size=4), st.sampled_from(["d1", "d2"])), max_size=5)
)
def test_histories_in_a_database(recycled, history):
    """The same, written and read: counts, the trend and the devices' own numbers agree with the rows."""
    store = recycled()
    for at, one in enumerate(history):
        with store.change() as c:
            if isinstance(one, str):
                forget(c, [one], 86_400 + at)
            else:
                devices = [report.device for report in one]
                heard(c, devices, 86_400 + at)
                apply(c, one, known.load(c, devices), 86_400 + at)
    with store.read() as c:
        assert counts.kept(c) == counts.recount(c)
        check_rows(c)


def check_rows(c):
    from sqlalchemy import func, select

    from halod.console.store.schema import (
        DAYS,
        DEVICE_UNITS,
        DEVICES,
        FINDINGS,
        GROUP_COUNTS,
        HEARTBEATS,
        THINGS,
    )

    kinds = Counter[str]()
    for kind, count in c.execute(select(FINDINGS.c.kind, func.count()).group_by(FINDINGS.c.kind)):
        kinds[counts.day_kind(kind)] += count
    for day in c.execute(select(DAYS)):
        assert day.open == kinds[day.kind]
    devices = {one.device: one for one in c.execute(select(DEVICES))}
    for name, one in devices.items():
        rows = c.execute(select(FINDINGS).where(FINDINGS.c.device == name)).all()
        assert one.findings == len(rows)
        assert {found.ring for found in rows} <= {one.ring}
        units = c.execute(select(DEVICE_UNITS.c.unit).where(DEVICE_UNITS.c.device == name)).scalars().all()
        assert msgspec.json.decode(one.units) == sorted(units)
    for found in c.execute(
        select(FINDINGS, THINGS.c.server.label("of"), THINGS.c.kind.label("kind_of")).join(THINGS)
    ):
        assert (found.server, found.kind) == (found.of, found.kind_of)
        assert found.device in devices
    assert {one.device for one in c.execute(select(HEARTBEATS))} == set(devices)
    for one in c.execute(select(GROUP_COUNTS)):
        assert one.last_seen > 0
        assert one.findings >= one.devices > 0
