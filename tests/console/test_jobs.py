# SPDX-License-Identifier: Apache-2.0
"""Jobs and leases: what is due runs in one replica, and a job that fails costs itself alone; on both engines."""

import io
import json
import threading
import time

import pytest
from sqlalchemy import select

from halod.console import jobs
from halod.console.jobs import Job, Scheduler, take
from halod.console.store.engine import Store
from halod.console.store.schema import LEASES
from tests.console.support_ops import NOW, Clock, console_of, in_threads, logged


class Done(list):
    """Remembers when a job ran, and where."""

    def job(self, name="sweep", every=60, answer=False, **fields):
        def run(console, now):
            self.append((console.settings.policy_org, now - NOW))
            return answer(now) if callable(answer) else answer

        return Job(name=name, every=every, run=run, **fields)


@pytest.fixture
def clock():
    return Clock(NOW)


def replica(store, clock, done, name="one"):
    return Scheduler(console_of(store, clock, policy_org=name), [done.job()], holder=name)


def lease(store):
    with store.read() as c:
        return c.execute(select(LEASES)).one()


def test_a_job_runs_when_it_is_due(store, clock):
    """At once, and then after its interval; `turn` says how long that is."""
    done = Done()
    scheduler = replica(store, clock, done)
    assert scheduler.turn() == 60
    clock.go(59)
    assert scheduler.turn() == 1
    clock.go(1)
    assert scheduler.turn() == 60
    assert done == [("one", 0), ("one", 60)]


def test_a_job_that_has_left_something_runs_again_at_once(store, clock):
    done = Done()
    job = done.job(answer=lambda _: len(done) < 3)
    scheduler = Scheduler(console_of(store, clock), [job])
    assert [scheduler.turn() for _ in range(3)] == [0, 0, 60]


def test_one_replica_does_a_job(store_url, clock):
    """The one with the lease, however often both look."""
    stores = [Store.open(store_url) for _ in range(2)]
    done = Done()
    replicas = [replica(store, clock, done, name) for store, name in zip(stores, "ab", strict=True)]
    for _ in range(4):
        in_threads(*(one.turn for one in replicas))
        clock.go(60)
    assert len(done) == 4
    assert len({name for name, _ in done}) == 1
    for store in stores:
        store.close()


def test_another_takes_over_when_the_holder_dies(store, clock):
    """After the lease has run out; the first one does not get it back by coming late."""
    done = Done()
    first, second = replica(store, clock, done, "a"), replica(store, clock, done, "b")
    first.turn()
    held = lease(store)
    assert (held.holder, held.until - NOW) == ("a", 150)
    for _ in range(3):
        clock.go(50)
        second.turn()
    assert done[1:] == [("b", 150)]
    first.turn()
    assert len(done) == 2


def test_an_orderly_end_gives_leases_back(store, clock):
    done = Done()
    first, second = replica(store, clock, done, "a"), replica(store, clock, done, "b")
    first.turn()
    first.stop()
    second.turn()
    assert done == [("a", 0), ("b", 0)]


def test_a_lease_is_not_written_at_each_run(store, clock):
    """A job that is looked at every two seconds renews its lease when half of it is over."""
    done = Done()
    scheduler = Scheduler(console_of(store, clock), [done.job(every=2)], holder="a")
    written = set()
    for _ in range(30):
        scheduler.turn()
        written.add(lease(store).until)
        clock.go(2)
    assert len(done) == 30
    assert len(written) <= 4


def test_of_many_that_want_a_lease_one_gets_it(store_url):
    stores = [Store.open(store_url) for _ in range(3)]
    got = []

    def taker(store, holder, number):
        return lambda: got.append((number, take(store, f"job-{number}", holder, NOW, 60)))

    for number in range(10):
        in_threads(*(taker(store, holder, number) for store, holder in zip(stores, "abc", strict=True)))
    assert sorted(got) == [(number, won) for number in range(10) for won in (False, False, True)]
    for store in stores:
        store.close()


def test_a_job_that_fails_ends_nothing_else(store, clock):
    """It is counted, logged without its text, and tried again; the others run."""
    done = Done()

    def fail(_console, _now):
        raise RuntimeError("CANARY")

    console = console_of(store, clock)
    scheduler = Scheduler(console, [Job(name="bad", every=60, run=fail), done.job("good")])
    stream = io.StringIO()
    with logged(stream):
        scheduler.turn()
        clock.go(60)
        scheduler.turn()
    assert len(done) == 2
    assert console.metrics.value("halo_job_runs_total", job="bad", outcome="failed") == 2
    assert console.metrics.value("halo_job_runs_total", job="good", outcome="ok") == 2
    assert console.metrics.value("halo_job_success_timestamp_seconds", job="good") == NOW + 60
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(one["job"], one["error"]) for one in said] == [("bad", "RuntimeError")] * 2
    assert "CANARY" not in stream.getvalue()


def test_a_database_that_is_away_costs_runs_and_no_thread(sqlite_url, clock, monkeypatch):
    store = Store.open(sqlite_url)
    console = console_of(store, clock)
    done = Done()
    scheduler = Scheduler(console, [done.job()])

    def away(*_):
        raise OSError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "take", away)
        scheduler.turn()
    clock.go(60)
    scheduler.turn()
    assert len(done) == 1
    assert console.metrics.value("halo_job_runs_total", job="sweep", outcome="failed") == 1
    store.close()


def test_the_thread_runs_and_ends(sqlite_url):
    """With the machine's own clock; a job that waits is told to end, and readiness knows the thread."""
    store = Store.open(sqlite_url)
    started, told = threading.Event(), threading.Event()

    class Real(Clock):
        def monotonic(self):
            return time.monotonic()

    console = console_of(store, Real())

    def wait(_console, _now):
        started.set()
        assert told.wait(30)
        return False

    scheduler = Scheduler(console, [Job(name="waiting", every=1, run=wait, stop=told.set)], name="threads")
    scheduler.start()
    assert started.wait(30)
    assert console.metrics.dead() == ()
    scheduler.stop()
    assert console.metrics.dead() == ("threads",)
    assert lease(store).until == 0
    store.close()
