# SPDX-License-Identifier: Apache-2.0
"""Group commit: what is answered is committed, what is accepted is answered, and nothing waits for ever."""

import asyncio
import contextlib
import threading
from concurrent import futures

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DataError, OperationalError

from halod.console.ingest import group, wire, writer
from halod.console.ingest.group import Item
from halod.console.ingest.writer import Full, Writer
from halod.console.metrics import Metrics
from halod.console.security import tokens
from halod.console.store import apply, known
from halod.console.store.engine import Store
from halod.console.store.schema import DEVICES
from halod.status import encode
from tests.console.support_ingest import (
    DEVICE,
    NOW,
    Clock,
    check_counts,
    client_of,
    device_token,
    document,
    happened,
    make_console,
    one,
    post,
    rows,
    servers,
    transition_ids,
)
from tests.support.state import finding, status


def item(token, *findings, device=DEVICE, transitions=(), **fields):
    import json

    body = json.dumps(document(*findings, device=device, transitions=transitions, **fields)).encode()
    return Item(token=tokens.digest(token), size=len(body), document=wire.read(body))


@contextlib.contextmanager
def running(store, **options):
    made = Writer(store, Clock(), Metrics(), **options)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def submit(made, *items):
    """Queue all of them in one go and give their statuses."""

    async def all_of_them():
        return await asyncio.gather(*[made.submit(one) for one in items])

    return asyncio.run(all_of_them())


@contextlib.contextmanager
def held(store):
    """Nobody else may change anything while the block runs."""
    with store.change() as c:
        yield c


def test_those_that_wait_are_committed_together(store):
    """While one group waits for the database the next one gathers."""
    with store.write() as c:
        given = [
            tokens.issue_device(c, device=f"d{n}", install_id="i", now=NOW, days=1, by="test")
            for n in range(30)
        ]
    metrics = Metrics()
    made = Writer(store, Clock(), metrics)
    asked = [item(token, finding("a"), device=f"d{n}") for n, token in enumerate(given)]
    made.start()
    try:
        assert submit(made, *asked) == [204] * 30
    finally:
        made.stop()
    assert metrics.value("halo_batch_reports") < 30
    assert len(rows(store, DEVICES)) == 30
    check_counts(store)


def test_one_device_twice_in_a_group(store):
    """Reports of one device are taken one after the other, in their order, however they are grouped."""
    token = device_token(store)
    asked = [
        item(token, finding("a"), finding("b"), transitions=[happened("t1"), happened("t2")]),
        item(token, finding("b"), transitions=[happened("t2"), happened("t3")]),
        item(token, finding("c"), truncated=True),
    ]
    with store.write() as c:
        assert group.take(store, c, asked, NOW) == [204] * 3
    assert servers(store) == ["b", "c"]
    assert transition_ids(store) == ["t1", "t2", "t3"]
    check_counts(store)


def test_a_device_that_changes_before_the_lock(postgres_url, monkeypatch):
    """Another replica takes a report between reading and lock: what was read is read again, counts and rows agree."""
    store = Store.open(postgres_url)
    token = device_token(store)
    told = []
    lock = Store.lock

    def late(self, c):
        if not told:
            told.append(1)
            with store.write() as other:
                asked = [item(token, finding("b"), finding("d"), transitions=[happened("t1")])]
                assert group.take(store, other, asked, NOW) == [204]
        lock(self, c)

    with store.write() as c:
        assert group.take(store, c, [item(token, finding("a"), finding("b"))], NOW) == [204]
    assert servers(store) == ["a", "b"]
    monkeypatch.setattr(Store, "lock", late)
    with store.write() as c:
        assert group.take(store, c, [item(token, finding("b"), finding("c"))], NOW) == [204]
    assert told == [1]
    assert servers(store) == ["b", "c"]
    check_counts(store)
    store.close()


def test_what_is_known_is_read_once(store):
    """A device whose row has the same revision is not read again; one that has changed since is."""
    token, other = device_token(store, "a"), device_token(store, "b")

    def report(token, device, *findings):
        with store.write() as c:
            assert group.take(store, c, [item(token, *findings, device=device)], NOW) == [204]

    report(token, "a", finding("x"))
    report(other, "b", finding("y"))
    with store.read() as c:
        first = known.load(c, ["a", "b", "nobody"])
    report(other, "b", finding("z"))
    with store.read() as c:
        again = known.load(c, ["a", "b", "nobody"], first.values())
    assert again.keys() == {"a", "b"}
    assert again["a"].state is first["a"].state
    assert [row.finding.server for row in again["b"].state.findings] == ["z"]
    with store.change() as c:
        apply.forget(c, ["a"], NOW)
    report(device_token(store, "a"), "a", finding("new"))
    with store.read() as c:
        assert [row.finding.server for row in known.load(c, ["a"], first.values())["a"].state.findings] == [
            "new"
        ]


def test_a_device_that_is_forgotten_and_comes_back(store):
    """Its row has another revision, also before it has reported: what was read before is not taken for it."""
    seen = set()
    for _ in range(3):
        with store.change() as c:
            known.create(c, "a", NOW)
            seen.add(known.load(c, ["a"])["a"].row["revision"])
            apply.forget(c, ["a"], NOW)
    assert len(seen) == 3


def test_a_group_with_everything(store):
    """Each gets its own answer; the wrong ones do not cost the right ones."""
    first, second = device_token(store, "a"), device_token(store, "b")
    nobody = Item(token="0" * 64, size=1, refusal=400)
    asked = [
        item(first, finding("x"), device="a"),
        item(first, finding("x"), device="b"),
        nobody,
        Item(token=tokens.digest(second), size=1, refusal=422),
        item(second, finding("y"), device="b"),
    ]
    with store.write() as c:
        assert group.take(store, c, asked, NOW) == [204, 403, 401, 422, 204]
    assert (servers(store, "a"), servers(store, "b")) == (["x"], ["y"])


def test_a_full_queue(store, monkeypatch):
    """503 with when to come again; what is in the queue is answered when the database is free."""
    monkeypatch.setattr(writer, "QUEUE", 3)
    taken = threading.Event()
    commit = Writer._commit

    def telling(made, group):
        taken.set()
        return commit(made, group)

    monkeypatch.setattr(Writer, "_commit", telling)
    token = device_token(store)
    with client_of(make_console(store)) as client, contextlib.ExitStack() as stack:

        def send(*numbers):
            return {
                asyncio.run_coroutine_threadsafe(
                    client._client.post(
                        "/api/v1/fleet/report",
                        json=document(finding(f"s{n}")),
                        headers={"Authorization": f"Bearer {token}"},
                    ),
                    client.loop,
                )
                for n in numbers
            }

        lock = stack.enter_context(held(store))
        sent = send(0)
        assert taken.wait(60)  # the writer has the first; of seven more, three find room behind it
        sent |= send(*range(1, 8))
        refused = set()
        while len(refused) < 4:
            done, _ = futures.wait(sent - refused, 60, futures.FIRST_COMPLETED)
            assert done
            refused |= done
        assert {(one.result().status_code, one.result().headers["retry-after"]) for one in refused} == {
            (503, "5")
        }
        assert lock.execute(text("SELECT 1")).scalar() == 1
        stack.close()
        assert [one.result(60).status_code for one in sent - refused] == [204] * 4
    check_counts(store)


def test_a_queue_that_is_full_of_bytes(store, monkeypatch):
    """Memory is bounded, too."""
    monkeypatch.setattr(writer, "QUEUE_BYTES", 1000)
    token = device_token(store)
    made = Writer(store, Clock(), Metrics())
    made._open = True  # nothing takes from the queue yet

    async def fill():
        first = made.submit(Item(token=tokens.digest(token), size=900, refusal=422))
        with pytest.raises(Full):
            made.submit(Item(token=tokens.digest(token), size=101, refusal=422))
        second = made.submit(Item(token=tokens.digest(token), size=100, refusal=422))
        made.start()
        assert await asyncio.gather(first, second) == [422, 422]
        await made.submit(Item(token=tokens.digest(token), size=1000, refusal=422))

    asyncio.run(fill())
    made.stop()


def test_stopping_finishes_what_was_accepted(store):
    """Everything in the queue is committed and answered; what comes after is refused."""
    with store.write() as c:
        given = [
            tokens.issue_device(c, device=f"d{n}", install_id="i", now=NOW, days=1, by="test")
            for n in range(20)
        ]
    made = Writer(store, Clock(), Metrics())
    made.start()

    async def work():
        with held(store):
            futures = [
                made.submit(item(token, finding("a"), device=f"d{n}")) for n, token in enumerate(given)
            ]
            stopping = threading.Thread(target=made.stop)
            stopping.start()
            while made._open:  # noqa: ASYNC110 - it is the thread's flag
                await asyncio.sleep(0.005)
            with pytest.raises(Full):
                made.submit(item(given[0]))
        assert await asyncio.gather(*futures) == [204] * 20
        stopping.join()

    asyncio.run(work())
    assert len(rows(store, DEVICES)) == 20


def test_an_idle_writer_stops(store):
    with running(store):
        pass


def test_a_client_that_has_gone(store):
    """Its report is taken all the same; the writer goes on."""
    token = device_token(store)
    with running(store) as made:

        async def leave():
            made.submit(item(token, finding("a"))).cancel()

        asyncio.run(leave())
        assert submit(made, item(token, finding("a"), finding("b"))) == [204]
    assert servers(store) == ["a", "b"]


def poison(monkeypatch, name, error):
    """Make every group with a finding of this name fail."""
    real = apply.apply

    def fails(c, reports, devices, now, **options):
        if any(row.server == name for report in reports for row in report.findings):
            raise error()
        return real(c, reports, devices, now, **options)

    monkeypatch.setattr(apply, "apply", fails)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (lambda: DataError("x", {}, ValueError()), 422),
        (ZeroDivisionError, 500),
        (lambda: OperationalError("x", {}, ValueError()), 503),
    ],
)
def test_a_report_that_cannot_be_written(store, monkeypatch, error, status):
    """It costs no other; a database that does not answer costs the whole group a repetition."""
    with store.write() as c:
        given = [
            tokens.issue_device(c, device=f"d{n}", install_id="i", now=NOW, days=1, by="test")
            for n in range(5)
        ]
    poison(monkeypatch, "poison", error)
    asked = [
        item(token, finding("poison" if n == 2 else "a"), device=f"d{n}") for n, token in enumerate(given)
    ]
    with running(store) as made:
        statuses = made._commit(asked)
        assert submit(made, asked[0]) == [204]
    assert statuses == ([503] * 5 if status == 503 else [204, 204, status, 204, 204])
    check_counts(store)


def test_a_deadlock_is_tried_again(store, monkeypatch):
    """What a database undoes for the sake of another transaction is done again."""
    token = device_token(store)
    real, failed = apply.apply, []

    class Deadlock(Exception):
        sqlstate = "40P01"

    def fails_twice(*arguments, **options):
        if len(failed) < 2:
            failed.append(1)
            raise OperationalError("x", {}, Deadlock())
        return real(*arguments, **options)

    monkeypatch.setattr(apply, "apply", fails_twice)
    with running(store) as made:
        assert submit(made, item(token, finding("a"))) == [204]
    assert len(failed) == 2


def test_news_are_told_inside_the_transaction(store):
    """New findings, definitions that nobody has had, coverage that was lost; nothing when nothing is new."""
    token, other = device_token(store), device_token(store, "e" * 64)
    told = []

    def tell(c, news, now):
        told.append((news, now, c.in_transaction()))

    with running(store, tell=tell) as made:
        asked = item(token, finding("a", sha="1"), finding("b", stale=True))
        submit(made, asked)
        submit(made, asked)
        submit(made, item(other, finding("a", sha="1"), device="e" * 64))
        submit(made, item(token, finding("a", sha="2"), error_code="policy"))
        submit(made, item(token, finding("a", sha="1"), error_code="policy"))
        submit(made, item(token, error_code="policy"))
        submit(made, item(token, finding("a", sha="1"), error_code="policy"))
    first, second, third, fourth, fifth = [news for news, *_ in told]
    assert {(now, inside) for _, now, inside in told} == {(NOW, True)}
    assert [(one.server, one.device) for one in first.new_findings] == [("a", DEVICE)]
    assert set(first.new_definitions) == {"1" * 64, "0" * 64}
    assert [(one.device, one.sha256) for one in second.new_findings] == [("e" * 64, "1" * 64)]
    assert second.new_definitions == ()
    assert (third.new_definitions, third.coverage_lost) == (("2" * 64,), (DEVICE,))
    assert [one.sha256 for one in third.new_findings] == ["2" * 64]
    assert (fourth.new_definitions, fourth.coverage_lost) == ((), ())
    assert len(fifth.new_findings) == 1  # a finding that came back
    assert fifth.new_definitions == ()  # of a definition that was there before


def test_a_failing_teller_undoes_the_report(store):
    """Webhooks are queued with what they tell of, or neither is there."""
    token = device_token(store)

    def tell(c, news, now):
        raise ZeroDivisionError

    with running(store, tell=tell) as made:
        assert submit(made, item(token, finding("a"))) == [500]
    assert rows(store, DEVICES) == []


def test_take_for_demonstrations(store):
    """`ingest.apply.take` needs no token; it refuses what is no status."""
    from halod.console.ingest.apply import take

    made = [encode(status(finding("a"), device=f"d{n}")) for n in range(70)]
    news = take(store, made, now=NOW)
    assert len(news) == 2
    assert len(rows(store, DEVICES)) == 70
    assert take(store, [document(finding("a"), device="d0")], now=NOW)
    with pytest.raises(wire.NotAStatus):
        take(store, [document(device="")], now=NOW)
    with pytest.raises(wire.Malformed):
        take(store, [b"{"], now=NOW)
    check_counts(store)


def test_forgotten_devices(store):
    """Everything about them goes but their transitions; counts follow; a later report begins anew."""
    from halod.console.store.schema import FINDINGS, HEARTBEATS, SEEN_NAMES, TRANSITIONS

    token = device_token(store)
    with client_of(make_console(store)) as client:
        sent = document(finding("a"), transitions=[happened("t1")], units=("u",))
        post(client, token, sent)
        with store.change() as c:
            apply.forget(c, [DEVICE, "never-there"], NOW)
        assert (
            rows(store, DEVICES)
            == rows(store, FINDINGS)
            == rows(store, HEARTBEATS)
            == rows(store, SEEN_NAMES)
            == []
        )
        assert len(rows(store, TRANSITIONS)) == 1
        check_counts(store)
        assert post(client, token, sent).status_code == 204
    assert one(store)["first_seen"] == NOW
    assert transition_ids(store) == ["t1"]
    check_counts(store)
