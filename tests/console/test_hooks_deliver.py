# SPDX-License-Identifier: Apache-2.0
"""Deliveries against a receiver in another process that takes them, refuses, hangs, floods and redirects."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from sqlalchemy import select, update

from halod.console.hooks import deliver, events, letters
from halod.console.hooks.deliver import CLAIM, DELAYS, MOST_TRIES, Deliverer
from halod.console.hooks.letters import By
from halod.console.jobs import Job, Scheduler
from halod.console.metrics import Metrics
from halod.console.store.engine import Store
from halod.console.store.schema import AUDIT, DELIVERIES
from tests.console.support_ops import NOW, ROOT, Clock, console_of, hook, in_threads, receiving
from tests.support.certificates import Authority

BY = By(actor="ada", actor_kind="session", address="192.0.2.7")


@pytest.fixture(scope="module")
def shared_receiver():
    with receiving() as running:
        yield running


@pytest.fixture
def receiver(shared_receiver):
    """A receiver that takes everything and has seen nothing."""
    shared_receiver.ask(plan=["ok"], forget=True)
    return shared_receiver


@pytest.fixture
def lite(sqlite_url):
    """A store on SQLite alone, where the engine does not matter."""
    opened = Store.open(sqlite_url)
    yield opened
    opened.close()


class Bench:
    """A store, its clock, and a deliverer."""

    def __init__(self, store, hooks, *, total=5.0, draw=0.5):
        self.store = store
        self.clock = Clock(NOW)
        self.metrics = Metrics()
        self.hooks = tuple(hooks)
        self.deliverer = Deliverer(
            store, self.hooks, self.metrics, clock=self.clock.now, draw=lambda: draw, total=total
        )

    def happen(self, *devices, hooks=None):
        with self.store.change() as c:
            rows = [(device, f"host-{device}", "ring0", NOW) for device in devices]
            events.devices_changed(c, hooks or self.hooks, "device.silent", rows, self.clock.now())

    def turn(self, seconds=0):
        self.clock.go(seconds)
        self.deliverer.turn(self.clock.now())

    def rows(self):
        with self.store.read() as c:
            return c.execute(select(DELIVERIES).order_by(DELIVERIES.c.seq)).all()

    def row(self):
        (row,) = self.rows()
        return row

    def states(self):
        return [(row.state, row.tries, row.last_error) for row in self.rows()]

    def identity(self):
        return json.loads(self.row().payload)["id"]


@pytest.fixture
def bench(store, receiver, tmp_path):
    return Bench(store, [hook(tmp_path, receiver.url)])


@pytest.fixture
def small(lite, receiver, tmp_path):
    return Bench(lite, [hook(tmp_path, receiver.url)])


def test_a_delivery_arrives_signed(bench, receiver):
    """The request, whole."""
    bench.happen("d1")
    bench.turn()
    (one,) = receiver.log()
    row = bench.row()
    assert one["valid"]
    assert one["line"] == "POST /hooks/halo HTTP/1.1"
    assert one["body"] == row.payload
    assert one["headers"].pop("user-agent").startswith("halo-server/")
    assert one["headers"].pop("webhook-signature").startswith("v1,")
    assert one["headers"] == {
        "host": f"127.0.0.1:{receiver.port}",
        "accept": "*/*",
        "accept-encoding": "identity",
        "connection": "close",
        "content-type": "application/json",
        "content-length": str(len(one["body"])),
        "webhook-id": json.loads(row.payload)["id"],
        "webhook-timestamp": str(NOW),
    }
    assert bench.states() == [("done", 1, "")]
    assert bench.metrics.value("halo_webhook_attempts_total", hook="chat", outcome="ok") == 1
    bench.turn(10)
    assert len(receiver.log()) == 1


def test_a_failure_is_tried_again_with_the_same_id_and_a_new_timestamp(bench, receiver):
    receiver.plan("500", "ok")
    bench.happen("d1")
    bench.turn()
    assert bench.states() == [("due", 1, "status-500")]
    assert bench.row().next_try == NOW + DELAYS[0]
    bench.turn(DELAYS[0])
    first, second = receiver.log()
    assert bench.states() == [("done", 2, "")]
    assert first["body"] == second["body"]
    assert first["headers"]["webhook-id"] == second["headers"]["webhook-id"]
    assert first["headers"]["webhook-timestamp"] != second["headers"]["webhook-timestamp"]
    assert second["valid"]


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("400", "status-400"), ("redirect", "redirect"), ("garbled", "garbled"), ("cut", "garbled"),
        ("flood-head", "garbled"), ("hang", "timed-out"), ("drip", "timed-out"),
    ],
)  # fmt: skip
def test_every_fault_is_a_failure_in_a_word(lite, receiver, tmp_path, word, why):
    """And ends within the time that a receiver has."""
    bench = Bench(lite, [hook(tmp_path, receiver.url)], total=1.0)
    receiver.plan(word)
    bench.happen("d1")
    began = time.monotonic()
    bench.turn()
    assert time.monotonic() - began < 20
    assert bench.states() == [("due", 1, why)]
    assert [one["line"] for one in receiver.log()] == ["POST /hooks/halo HTTP/1.1"]


@pytest.mark.parametrize("word", ["flood-body", "cookie", "early"])
def test_what_follows_a_2xx_does_not_matter(small, receiver, word):
    """The body is not read, however long it is."""
    receiver.plan(word)
    small.happen("d1")
    small.turn()
    small.happen("d2")
    small.turn(1)
    assert [state for state, *_ in small.states()] == ["done", "done"]
    assert "cookie" not in receiver.log()[1]["headers"]


def test_nobody_listens(lite, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        bench = Bench(lite, [hook(tmp_path, f"http://127.0.0.1:{free.getsockname()[1]}/")])
        bench.happen("d1")
        bench.turn()
    assert bench.states() == [("due", 1, "refused")]


def test_a_name_that_is_none(lite, tmp_path):
    bench = Bench(lite, [hook(tmp_path, "https://no-such-host.invalid/")])
    bench.happen("d1")
    bench.turn()
    assert bench.states()[0][2] in {"no-such-host", "timed-out", "unreachable"}


def test_the_receiver_says_when(small, receiver):
    """Retry-After counts when it is later than the schedule."""
    receiver.plan("503", "ok")
    small.happen("d1")
    small.turn()
    assert small.row().next_try == NOW + 900
    small.turn(899)
    assert len(receiver.log()) == 1
    small.turn(1)
    assert small.states() == [("done", 2, "")]


def test_after_three_days_a_delivery_is_dead(bench, receiver):
    """Attempts are as far apart as the specification proposes; nothing is sent afterwards."""
    receiver.plan("500")
    bench.happen("d1")
    bench.turn()
    for delay in DELAYS:
        assert bench.row().next_try == bench.clock.now() + delay
        bench.turn(delay + 300)
    assert bench.states() == [("dead", MOST_TRIES, "status-500")]
    assert len(receiver.log()) == MOST_TRIES
    assert 2 * 86_400 < bench.clock.now() - NOW < 5 * 86_400
    bench.turn(10 * 86_400)
    assert len(receiver.log()) == MOST_TRIES
    assert bench.metrics.value("halo_webhook_attempts_total", hook="chat", outcome="dead") == 1


@pytest.mark.parametrize(("draw", "wait"), [(0.0, 4), (1.0, 6)])
def test_waits_are_spread(lite, receiver, tmp_path, draw, wait):
    bench = Bench(lite, [hook(tmp_path, receiver.url)], draw=draw)
    receiver.plan("500")
    bench.happen("d1")
    bench.turn()
    assert bench.row().next_try == NOW + wait


def test_a_receiver_that_is_gone_is_asked_once(bench, receiver):
    """410: what waits for it is dead without a request, until somebody retries, or its address changes."""
    receiver.plan("410", "ok")
    bench.happen("d1", "d2", "d3")
    bench.turn()
    bench.turn(600)
    bench.happen("d4")
    bench.turn(600)
    assert bench.states() == [("dead", 1, "gone")] + 3 * [("dead", 0, "gone")]
    assert len(receiver.log()) == 1
    with bench.store.write() as c:
        assert letters.retry(c, by=BY, now=bench.clock.now(), hook="chat") == 4
    bench.turn(600)
    assert [state for state, *_ in bench.states()] == 4 * ["done"]
    assert all(one["valid"] for one in receiver.log())


def test_a_new_address_of_a_hook_is_tried(lite, receiver, tmp_path):
    """What the old one's receiver said does not count for it."""
    receiver.plan("410", "ok")
    old = Bench(lite, [hook(tmp_path, receiver.url)])
    old.happen("d1")
    old.turn()
    new = Bench(lite, [hook(tmp_path, receiver.url + "/v2")])
    new.happen("d2")
    new.turn()
    assert [state for state, *_ in new.states()] == ["dead", "done"]


def test_a_failure_ends_the_round_and_the_hook_is_left_alone(small, receiver):
    """A receiver that is away is not asked for each of a thousand deliveries."""
    receiver.plan("500", "500", "500", "ok")
    small.happen(*(f"d{i}" for i in range(8)))
    small.turn()
    small.turn(1)
    assert len(receiver.log()) == 1
    small.turn(4)
    small.turn(10)
    assert len(receiver.log()) == 2
    small.turn(5)
    small.turn(60)
    assert [state for state, *_ in small.states()] == 8 * ["done"]


def test_one_that_hangs_costs_the_others_nothing(lite, receiver, tmp_path):
    """Both rounds run at the same time; the good one ends well before the other times out."""
    with receiving() as slow:
        slow.plan("hang")
        bench = Bench(lite, [hook(tmp_path, slow.url, name="slow"), hook(tmp_path, receiver.url)], total=3.0)
        bench.happen("d1", "d2")
        worker = threading.Thread(target=bench.turn)
        worker.start()
        deadline = time.monotonic() + 30
        while len(receiver.log()) < 2:
            assert time.monotonic() < deadline
        worker.join(60)
        assert len(slow.log()) == 1
    assert sorted((row.hook, row.state) for row in bench.rows()) == [
        ("chat", "done"), ("chat", "done"), ("slow", "due"), ("slow", "due"),
    ]  # fmt: skip


def test_stopping_ends_a_request(lite, receiver, tmp_path):
    """At once; what was on its way is sent again once its claim is over."""
    receiver.plan("hang", "ok")
    bench = Bench(lite, [hook(tmp_path, receiver.url)], total=60.0)
    bench.happen("d1")
    worker = threading.Thread(target=bench.turn)
    worker.start()
    deadline = time.monotonic() + 30
    while not receiver.log():
        assert time.monotonic() < deadline
    bench.deliverer.stop()
    worker.join(20)
    assert not worker.is_alive()
    assert bench.row().next_try == NOW + CLAIM
    again = Bench(lite, bench.hooks)
    again.turn(CLAIM)
    assert again.states() == [("done", 2, "")]
    assert len({one["headers"]["webhook-id"] for one in receiver.log()}) == 1


def test_the_secret_is_read_anew_for_each_round(small, receiver, caplog):
    """A file that is gone costs attempts, no deliveries; a file that is back is used."""
    path = small.hooks[0].secret_file
    secret = pathlib.Path(path).read_text()
    os.unlink(path)
    small.happen("d1")
    small.turn()
    assert small.states() == [("due", 1, "settings")]
    with open(path, "w") as file:
        file.write("whsec_" + "QUJDREVG" * 5 + "\n" + secret)
    os.chmod(path, 0o600)
    small.turn(600)
    assert small.states() == [("done", 2, "")]
    (one,) = receiver.log()
    assert one["valid"]
    assert len(one["headers"]["webhook-signature"].split(" ")) == 2


def test_a_hook_that_is_no_more_is_dead_after_an_hour(bench, receiver, tmp_path):
    """Not at once: another replica may have newer settings than this one."""
    bench.happen("d1", hooks=[hook(tmp_path, receiver.url, name="newer")])
    bench.turn(3600)
    assert bench.states() == [("due", 0, "")]
    bench.turn(1)
    assert bench.states() == [("dead", 0, "no-such-webhook")]


def test_what_is_folded_waits_for_its_span(small, receiver):
    small.happen("d1")
    small.turn()
    small.happen("d1")
    due = small.rows()[1].next_try
    small.turn(due - NOW - 1)
    assert len(receiver.log()) == 1
    small.turn(1)
    assert len(receiver.log()) == 2


# --- TLS ----------------------------------------------------------------------------------------------------


def test_https_with_an_authority_of_ones_own(lite, tmp_path):
    """A certificate counts when `ca_file` signed it, and for the right name."""
    authority = Authority(tmp_path)
    certificate = authority.issue("receiver", address="127.0.0.1")
    with receiving(cert=certificate) as running:
        good = Bench(lite, [hook(tmp_path, running.url, ca_file=str(authority.file))])
        good.happen("d1")
        good.turn()
        unknown = Bench(lite, [hook(tmp_path, running.url, name="unknown")])
        unknown.happen("d2")
        unknown.turn()
        assert len(running.log()) == 1
    assert good.states() == [("done", 1, ""), ("due", 1, "tls")]
    other = authority.issue("other", address="127.0.0.2")
    with receiving(cert=other) as running:
        wrong = Bench(lite, [hook(tmp_path, running.url, name="wrong", ca_file=str(authority.file))])
        wrong.happen("d3")
        wrong.turn()
        assert running.log() == []
    assert wrong.states()[2] == ("due", 1, "tls")


def test_proxies_of_the_environment_are_not_asked_for_loopback(small, receiver, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://192.0.2.1:1")
    small.happen("d1")
    small.turn()
    assert small.states() == [("done", 1, "")]


# --- replicas -----------------------------------------------------------------------------------------------


def test_two_schedulers_deliver_each_once(store_url, receiver, tmp_path):
    """Two replicas on one database, a lease between them: all arrive, none twice."""
    hooks = [hook(tmp_path, receiver.url)]
    stores = [Store.open(store_url) for _ in range(2)]
    clock = Clock(NOW)
    first = Bench(stores[0], hooks)
    first.happen(*(f"d{i}" for i in range(20)))
    schedulers = []
    for number, store in enumerate(stores):
        console = console_of(store, clock, webhooks=tuple(hooks))
        deliverer = Deliverer(store, hooks, console.metrics, clock=clock.now)
        job = Job(name="webhooks", every=2, run=lambda _, now, d=deliverer: d.turn(now), stop=deliverer.stop)
        schedulers.append(Scheduler(console, [job], holder=f"replica-{number}"))
    in_threads(*(one.turn for one in schedulers))
    clock.go(2)
    in_threads(*(one.turn for one in schedulers))
    assert [state for state, *_ in first.states()] == 20 * ["done"]
    identities = [one["headers"]["webhook-id"] for one in receiver.log()]
    assert len(identities) == len(set(identities)) == 20
    for store in stores:
        store.close()


def test_without_a_lease_a_claim_still_keeps_them_apart(store_url, receiver, tmp_path):
    """Leases go by clocks; what keeps a delivery from being sent twice at the same time is its claim."""
    hooks = [hook(tmp_path, receiver.url)]
    stores = [Store.open(store_url) for _ in range(3)]
    benches = [Bench(store, hooks) for store in stores]
    benches[0].happen(*(f"d{i}" for i in range(20)))
    for _ in range(5):
        in_threads(*(bench.turn for bench in benches))
    assert [state for state, *_ in benches[0].states()] == 20 * ["done"]
    identities = [one["headers"]["webhook-id"] for one in receiver.log()]
    assert len(identities) == len(set(identities)) == 20
    for store in stores:
        store.close()


CHILD = """
import os, sys
from halod.console.hooks import deliver
from halod.console.hooks.deliver import Deliverer
from halod.console.metrics import Metrics
from halod.console.settings import Hook
from halod.console.store.engine import Store

url, hook_url, secret, now = sys.argv[1:]
Deliverer._settle = lambda *_: os.kill(os.getpid(), 9)  # taken by the receiver, and never written down
store = Store.open(url)
hooks = [Hook(name="chat", url=hook_url, secret_file=secret)]
Deliverer(store, hooks, Metrics(), clock=lambda: int(now)).turn(int(now))
"""


def test_a_process_that_dies_between_sending_and_writing_costs_a_repetition(store_url, receiver, tmp_path):
    """The receiver sees the same id again: that is what ids are for."""
    hooks = [hook(tmp_path, receiver.url)]
    store = Store.open(store_url)
    bench = Bench(store, hooks)
    bench.happen("d1")
    command = [sys.executable, "-c", CHILD, store_url, receiver.url, hooks[0].secret_file, str(NOW)]
    done = subprocess.run(command, check=False, cwd=ROOT, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert bench.states() == [("due", 1, "")]
    bench.turn(CLAIM - 1)
    assert len(receiver.log()) == 1
    bench.turn(1)
    first, second = receiver.log()
    assert first["headers"]["webhook-id"] == second["headers"]["webhook-id"]
    assert first["body"] == second["body"]
    assert bench.states() == [("done", 2, "")]
    store.close()


def test_an_outcome_that_comes_too_late_changes_nothing(bench):
    """A claim that somebody else has taken over fences the first one's outcome."""
    bench.happen("d1")
    old = bench.deliverer._claim("chat", NOW)
    newer = bench.deliverer._claim("chat", NOW + CLAIM)
    bench.deliverer._settle(bench.hooks[0], old, deliver.Outcome(error="timed-out"), NOW + CLAIM)
    assert bench.states() == [("due", 2, "")]
    bench.deliverer._settle(bench.hooks[0], newer, deliver.Outcome(), NOW + CLAIM)
    assert bench.states() == [("done", 2, "")]


# --- the dead-letter list -----------------------------------------------------------------------------------


def test_dead_deliveries_are_listed_retried_and_discarded(bench, receiver):
    """One by one or all of a hook; each is in the audit log with who did it."""
    bench.happen("d1", "d2", "d3")
    with bench.store.write() as c:
        c.execute(update(DELIVERIES).values(state="dead", tries=MOST_TRIES, last_error="refused"))
    with bench.store.read() as c:
        page = letters.deliveries(c, state="dead", hook="chat", limit=2)
        rest = letters.deliveries(c, state="dead", hook="chat", limit=2, cursor=page.next)
        assert letters.deliveries(c, state="done").rows == letters.deliveries(c, hook="x").rows == ()
    assert [len(page.rows), len(rest.rows), rest.next] == [2, 1, ""]
    newest = page.rows[0]
    assert (newest.tries, newest.last_error, newest.event) == (MOST_TRIES, "refused", "device.silent")
    with bench.store.write() as c:
        assert letters.discard(c, by=BY, now=NOW, seq=newest.seq) == 1
        assert letters.discard(c, by=BY, now=NOW, seq=newest.seq) == 0
        assert letters.retry(c, by=BY, now=NOW, seq=rest.rows[0].seq) == 1
        assert letters.retry(c, by=BY, now=NOW, seq=rest.rows[0].seq) == 0
    bench.turn()
    assert [state for state, *_ in bench.states()] == ["done", "dead"]
    with bench.store.write() as c:
        assert letters.discard(c, by=BY, now=NOW, hook="chat") == 1
        assert letters.discard(c, by=BY, now=NOW, hook="chat") == 0
        assert letters.counts(c) == {("chat", "done"): 1}
        with pytest.raises(ValueError):
            letters.retry(c, by=BY, now=NOW)
    with bench.store.read() as c:
        lines = c.execute(select(AUDIT).order_by(AUDIT.c.seq)).all()
    assert [(line.action, line.actor, line.address) for line in lines] == [
        ("webhook.discard", "ada", "192.0.2.7"),
        ("webhook.retry", "ada", "192.0.2.7"),
        ("webhook.discard", "ada", "192.0.2.7"),
    ]
