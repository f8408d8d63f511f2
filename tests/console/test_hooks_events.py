# SPDX-License-Identifier: Apache-2.0
"""What becomes a delivery, and how many of them a storm makes, on both engines."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from halod.console.hooks import events
from halod.console.settings import Hook
from halod.console.settings.kinds import EVENTS
from halod.console.store.news import NewFinding, News
from halod.console.store.schema import DELIVERIES, DEVICES, SKIPPED
from tests.console.support_ops import NOW

START = NOW // events.FOLD * events.FOLD
SHA = "ab" * 32


def hook(*wanted, name="chat"):
    return Hook(name=name, url="https://chat.acme.example/", secret_file="", events=wanted or EVENTS)


def finding(number=0, *, thing=1, sha256=SHA, **fields):
    return NewFinding(
        **{
            "thing": thing, "kind": "unapproved", "server": "notes", "transport": "http", "host": "mcp.example.com",
            "sha256": sha256, "fix": "remove it", "harness": "cursor", "device": f"d{number:04d}",
            "hostname": f"host-{number}", "username": "dev", **fields,
        }
    )  # fmt: skip


def tell(store, news, now=START, hooks=None):
    with store.change() as c:
        events.after_change(c, (hook(),) if hooks is None else hooks, news, now)


def rows(store):
    with store.read() as c:
        return c.execute(select(DELIVERIES).order_by(DELIVERIES.c.seq)).all()


def payloads(store, event=""):
    return [json.loads(row.payload) for row in rows(store) if event in {"", row.event}]


def sent(store, which=None):
    """As a sender that has taken everything, or one delivery."""
    with store.write() as c:
        statement = update(DELIVERIES).values(tries=1, state="done")
        c.execute(statement if which is None else statement.where(DELIVERIES.c.seq == which))


def test_a_new_finding_says_what_it_is_and_where(store):
    """The document, whole: it holds what a status may hold."""
    tell(store, News(new_findings=(finding(3),)))
    (row,) = rows(store)
    payload = json.loads(row.payload)
    assert (row.hook, row.event, row.state, row.tries, row.created, row.next_try) == (
        "chat", "finding.new", "due", 0, START, START,
    )  # fmt: skip
    assert payload.pop("id").startswith("msg_")
    assert payload == {
        "type": "finding.new",
        "timestamp": events.moment(START),
        "data": {
            "finding": {
                "group": 1, "kind": "unapproved", "server": "notes", "transport": "http", "harness": "cursor",
                "host": "mcp.example.com", "definitionSha256": SHA, "fix": "remove it",
            },
            "count": 1,
            "devices": [{"device": "d0003", "hostname": "host-3", "user": "dev"}],
        },
    }  # fmt: skip


def test_a_new_definition_names_the_finding_it_came_with(store):
    tell(store, News(new_findings=(finding(1), finding(2, sha256="cd" * 32)), new_definitions=(SHA,)))
    (payload,) = payloads(store, "definition.new")
    assert payload["data"]["definitionSha256"] == SHA
    assert payload["data"]["finding"]["server"] == "notes"
    assert payload["data"]["devices"] == [{"device": "d0001", "hostname": "host-1", "user": "dev"}]


def test_lost_coverage_says_why(store):
    """The reasons of a status, each once."""
    with store.write() as c:
        c.execute(
            DEVICES.insert().values(device="d1", hostname="h1", ring="ring0", first_seen=1, changed_at=1)
        )
        for nth, reason in enumerate(("symlink", "malformed", "symlink")):
            c.execute(SKIPPED.insert().values(device="d1", nth=nth, reason=reason))
    tell(store, News(coverage_lost=("d1", "unknown")))
    first, second = payloads(store)
    assert first["data"] == {
        "reasons": ["malformed", "symlink"],
        "count": 1,
        "devices": [{"device": "d1", "hostname": "h1", "ring": "ring0"}],
    }
    assert second["data"]["reasons"] == []


def test_devices_that_fall_silent_and_come_back(store):
    with store.change() as c:
        for event in ("device.silent", "device.back"):
            events.devices_changed(c, (hook(),), event, [("d1", "h1", "ring0", START - 4000)], START)
    assert [one["type"] for one in payloads(store)] == ["device.silent", "device.back"]
    assert payloads(store)[0]["data"]["devices"] == [
        {"device": "d1", "hostname": "h1", "ring": "ring0", "lastReport": events.moment(START - 4000)}
    ]


def test_every_hook_gets_what_it_asks_for(store):
    """Each with an id of its own."""
    hooks = (
        hook("finding.new"),
        hook("definition.new", name="siem"),
        hook(name="all"),
        hook("device.silent", name="x"),
    )
    tell(store, News(new_findings=(finding(),), new_definitions=(SHA,)), hooks=hooks)
    assert sorted((row.hook, row.event) for row in rows(store)) == [
        ("all", "definition.new"), ("all", "finding.new"), ("chat", "finding.new"), ("siem", "definition.new"),
    ]  # fmt: skip
    assert len({one["id"] for one in payloads(store)}) == 4


@pytest.mark.parametrize(("hooks", "news"), [((), News(new_findings=(finding(),))), ((hook(),), News())])
def test_nobody_asks_or_nothing_happened(store, hooks, news):
    tell(store, news, hooks=hooks)
    assert rows(store) == []


def test_what_is_rolled_back_is_not_queued(store):
    """An event is queued if and only if what caused it is committed."""
    with contextlib.suppress(RuntimeError), store.change() as c:
        events.after_change(c, (hook(),), News(new_findings=(finding(),)), START)
        assert len(c.execute(select(DELIVERIES)).all()) == 1
        raise RuntimeError("the batch fails")
    assert rows(store) == []


# --- storms -------------------------------------------------------------------------------------------------


def test_the_same_finding_on_a_thousand_devices_is_bounded_and_counted(store):
    """Within ten minutes at most eleven deliveries; the numbers add up, and each payload is small."""
    for minute in range(10):
        for batch in range(4):
            base = minute * 100 + batch * 25
            tell(
                store,
                News(new_findings=tuple(finding(base + i) for i in range(25))),
                START + minute * 60 + batch * 14,
            )
            if batch == 1:
                sent(store)  # a receiver that keeps up
    found = payloads(store)
    assert len(found) <= 11
    assert sum(one["data"]["count"] for one in found) == 1000
    assert all(len(one["data"]["devices"]) <= events.SHOWN for one in found)
    assert all(len(json.dumps(one)) < 20_000 for one in found)


def test_a_receiver_that_is_away_gets_one_delivery_a_span(store):
    for minute in range(5):
        for second in (0, 20, 40):
            tell(store, News(new_findings=(finding(minute * 60 + second),)), START + minute * 60 + second)
    assert [one["data"]["count"] for one in payloads(store)] == [3] * 5


def test_a_thousand_different_findings_are_a_few_deliveries_and_a_count_of_the_rest(store):
    """The first report of a whole fleet."""
    news = News(new_findings=tuple(finding(i, thing=i % 700 + 1) for i in range(1000)))
    tell(store, news)
    found = payloads(store)
    (folded,) = (one for one in found if one["type"] == events.FOLDED)
    assert len(found) == events.PER_FOLD + 1
    assert folded["data"]["event"] == "finding.new"
    assert folded["data"]["subjects"] == 700 - events.PER_FOLD
    assert len(folded["data"]["devices"]) == events.SHOWN
    assert sum(one["data"]["count"] for one in found) == 1000


def test_the_rest_goes_on_to_be_counted(store):
    """Further batches of the span add to the same delivery; once it is on its way, to one of the next span."""
    for batch in range(3):
        tell(
            store,
            News(new_findings=tuple(finding(i, thing=batch * 30 + i + 1) for i in range(30))),
            START + batch,
        )
    assert len(rows(store)) == events.PER_FOLD + 1
    sent(store)
    tell(store, News(new_findings=(finding(1, thing=999), finding(2, thing=1))), START + 5)
    later = rows(store)[events.PER_FOLD + 1 :]
    assert sorted(row.event for row in later) == [events.FOLDED, "finding.new"]
    assert {row.next_try for row in later} == {START + events.FOLD}
    folded = [one["data"] for one in payloads(store, events.FOLDED)]
    assert [(one["subjects"], one["count"]) for one in folded] == [(70, 70), (1, 1)]


def test_a_queue_that_nobody_empties_takes_counts_only(store, monkeypatch):
    """Beyond what may wait, there is one delivery an event and span."""
    monkeypatch.setattr(events, "WAITING", 30)
    for minute in range(10):
        tell(
            store,
            News(new_findings=tuple(finding(i, thing=minute * 50 + i + 1) for i in range(50))),
            START + minute * 60,
        )
    spans = [row.created // 60 for row in rows(store) if row.event == "finding.new"]
    assert len(set(spans)) == 2
    assert sum(one["data"]["count"] for one in payloads(store)) == 500
    assert len(rows(store)) <= 2 * (events.PER_FOLD + 1) + 8


def test_a_payload_on_its_way_is_never_written_to(store):
    """A second attempt has to send the same bytes."""
    tell(store, News(new_findings=(finding(1),)))
    before = rows(store)[0]
    with store.write() as c:
        c.execute(update(DELIVERIES).values(tries=1))
    tell(store, News(new_findings=(finding(2),)), START + 1)
    first, second = rows(store)
    assert first.payload == before.payload
    assert json.loads(second.payload)["data"]["devices"][0]["device"] == "d0002"
    assert second.next_try == START + events.FOLD


def test_replicas_whose_clocks_differ_still_queue(store):
    """However the spans of this and the next minutes are taken, what happens is counted somewhere, once."""
    for now in (START, START + 60, START + 120, START, START + 60, START):
        tell(store, News(new_findings=(finding(1),)), now)
        sent(store)
    assert sum(one["data"]["count"] for one in payloads(store)) == 6
    keys = [(row.hook, row.key) for row in rows(store)]
    assert len(keys) == len(set(keys))


def test_a_device_called_like_the_rest_is_a_device(store):
    with store.change() as c:
        events.devices_changed(c, (hook(),), "device.silent", [("*", "h", "", 1)], START)
    assert [row.event for row in rows(store)] == ["device.silent"]


@given(st.lists(st.tuples(st.integers(0, 200), st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5)), max_size=60), st.booleans()), max_size=8))  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_counts_always_add_up(sqlite_template_store, batches):
    """Whatever happens when, and whatever is sent meanwhile: every new finding is counted in exactly one delivery."""
    store = sqlite_template_store
    with store.write() as c:
        c.execute(DELIVERIES.delete())
    total = 0
    now = START
    for wait, happened, take in batches:
        now += wait
        tell(store, News(new_findings=tuple(finding(device, thing=thing) for thing, device in happened)), now)
        total += len(happened)
        if take:
            with store.write() as c:
                due = select(DELIVERIES.c.seq).where(DELIVERIES.c.next_try <= now)
                c.execute(update(DELIVERIES).where(DELIVERIES.c.seq.in_(due)).values(tries=1))
    with store.read() as c:
        count = c.scalar(select(func.count()).select_from(DELIVERIES))
    assert sum(one["data"]["count"] for one in payloads(store)) == total
    assert count <= (len(batches) + 1) * (events.PER_FOLD + 1)


@pytest.fixture(scope="module")
def sqlite_template_store(sqlite_template, tmp_path_factory):
    import shutil

    from halod.console.store.engine import Store

    path = tmp_path_factory.mktemp("events") / "console.db"
    shutil.copy(sqlite_template, path)
    store = Store.open(f"sqlite:///{path}")
    yield store
    store.close()
