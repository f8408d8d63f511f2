# SPDX-License-Identifier: Apache-2.0
"""The real agent's delivery against a real process of this console, on both engines; and that process killed.

The same that tests/integration/test_delivery_*.py try against tests/server/reference.py.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time

import pytest

from halod.agent.backoff import Backoff
from halod.agent.delivery import Courier, Setup
from halod.agent.enrol import About, Enrolment
from halod.agent.http import Client
from halod.agent.outbox import Limits
from halod.agent.state import State
from halod.agent.tls import tls_context
from halod.console.clock import SystemClock
from halod.console.ingest import enroll
from halod.console.security import tokens
from halod.console.store import counts
from halod.console.store.engine import Store
from halod.console.store.schema import DEVICES, ENROLLMENTS, FINDINGS, TRANSITIONS
from tests.console.support_ingest import ROOT, check_counts, consoles, one, rows
from tests.support.state import all_seen, finding, status

DEVICE = "d" * 64
ABOUT = About(DEVICE, "mbp-417", "linux", "0.1.0")
WAIT = 60.0
CLOCK = SystemClock()


class Hasty(Backoff):
    """Waits a moment where a person would have to come first, too, and where a server asks for a minute."""

    def slow(self, retry_after=0.0):
        return 0.05


class Agent:
    """A state and a courier's thread, with waits that suit a test."""

    def __init__(self, directory, url, *, token="", key="", limits=None):
        self.state = State(str(directory))
        self.said = []
        self.ahead = 0.0
        self.wake = threading.Event()
        self.courier = Courier(
            self.state,
            Client(url, tls_context(""), total=20.0),
            Setup(
                url=url,
                token=token,
                enrolment=Enrolment(url, key, ABOUT) if key else None,
                limits=limits or Limits(),
            ),
            say=lambda event, **fields: self.said.append((event, fields)),
            backoff=Hasty(random.Random(1).random, base=0.01, cap=0.1),
            wake=self.wake,
            clock=lambda: time.monotonic() + self.ahead,
        )
        self.thread = threading.Thread(target=self.courier.run)
        self.thread.start()

    def commit(self, *servers, **fields):
        made = status(*[finding(name) for name in servers], **fields)
        done = self.state.commit_cycle(made, all_seen())
        self.wake.set()
        return [one.id for one in done.transitions]

    def heard(self):
        return [event for event, _ in self.said]

    def stop(self):
        self.courier.stop()
        self.thread.join(WAIT)
        self.state.close()


def until(test, what):
    deadline = time.monotonic() + WAIT
    while not test():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.fixture(scope="module")
def process():
    with consoles() as running:
        yield running


@pytest.fixture
def console(process, store_url):
    process.serve(store_url)
    yield process
    process.end()


@pytest.fixture
def start(tmp_path):
    agents = []

    def begin(url, name="state", **options):
        agents.append(Agent(tmp_path / name, url, **options))
        return agents[-1]

    yield begin
    for agent in agents:
        agent.stop()


def device_token(store, device=DEVICE):
    with store.write() as c:
        return tokens.issue_device(c, device=device, install_id="i", now=CLOCK.now(), days=30, by="test")


def enroll_key(store):
    with store.write() as c:
        return tokens.new_enroll_key(c, name="fleet", now=CLOCK.now(), days=30, by="test")


def arrived(store, ids):
    return lambda: set(ids) <= {row["tid"] for row in rows(store, TRANSITIONS)}


def test_an_agent_enrols_reports_and_renews(console, store, start):
    """Its key brings a token; the token ends and a new one comes; the operator's words reach the agent."""
    agent = start(console.url, key=enroll_key(store))
    ids = agent.commit("notes", "wiki")
    until(arrived(store, ids), "delivered")
    until(lambda: agent.state.summary().waiting == 0, "noted")
    assert sorted(row["server"] for row in rows(store, FINDINGS)) == ["notes", "wiki"]
    with store.write() as c:  # by age
        c.execute(tokens.TOKENS.update().values(expires=CLOCK.now() - 1))
    agent.ahead += 3600.0  # it renews twice an hour at most
    ids = agent.commit("notes")
    until(arrived(store, ids), "delivered with a new token")
    assert len(rows(store, tokens.TOKENS)) == 2
    with store.write() as c:
        tokens.revoke_device(c, DEVICE, CLOCK.now())
    agent.ahead += 3600.0
    ids = agent.commit("other")
    until(lambda: rows(store, ENROLLMENTS), "it waits for an operator")
    assert not arrived(store, ids)()
    with store.write() as c:
        assert enroll.accept(c, DEVICE, by="olga", now=CLOCK.now())
    agent.ahead += 3600.0
    until(arrived(store, ids), "accepted")
    assert [row["event"] for row in rows(store, TRANSITIONS)] == ["opened"] * 2 + ["resolved"] * 2 + [
        "opened"
    ]
    check_counts(store)


def test_many_transitions_come_in_order(console, store, start):
    """More than fit into a report, and reports that are cut: everything arrives, once, in order."""
    agent = start(console.url, token=device_token(store))
    ids = agent.commit(*(f"s{n:03}" for n in range(300)))
    until(arrived(store, ids), "delivered")
    assert [row["tid"] for row in rows(store, TRANSITIONS)] == ids
    device = one(store, DEVICES)
    assert (device["truncated"], device["drift_total"]) == (True, 300)
    agent.commit("s000")
    until(lambda: [row["server"] for row in rows(store, FINDINGS)] == ["s000"], "the whole picture")
    check_counts(store)


def test_an_agent_that_is_refused(console, store, start):
    """Another's token and none at all are told as such; nothing is kept."""
    agent = start(console.url, token=device_token(store, "e" * 64))
    agent.commit("notes")
    until(lambda: agent.state.summary().delivery, "told")
    assert agent.state.summary().delivery.outcome == "unauthorised"
    assert rows(store, FINDINGS) == []


def test_an_orderly_end_loses_nothing(console, store, start):
    """SIGTERM while reports come: exit code 0, and the next process goes on."""
    agent = start(console.url, token=device_token(store))
    ids = []
    for n in range(4):
        for k in range(5):
            ids += agent.commit(f"a{n}", f"b{n * k}")
        assert console.stop() == 0
    until(arrived(store, ids), "delivered")
    assert [row["tid"] for row in rows(store, TRANSITIONS)] == ids
    check_counts(store)


@pytest.mark.timeout(280)
def test_both_ends_are_killed(console, store, tmp_path):
    """The agent and the console are killed again and again: no transition is lost, doubled or out of order."""
    environment = {**os.environ, "VICTIM_TOKEN": device_token(store)}
    with open(tmp_path / "stderr", "wb") as errors:
        victim = subprocess.Popen(
            [sys.executable, "-m", "tests.support.victim", console.url, str(tmp_path), "40", "417"],
            cwd=ROOT, env=environment, stdout=errors, stderr=errors,
        )  # fmt: skip
        drawn, kills, before = random.Random(7), 0, 0
        try:
            while victim.poll() is None:
                time.sleep(drawn.uniform(0.02, 0.3))
                accepted = lines(tmp_path / "accepted.txt")
                if accepted > before and kills < 25:  # each has accepted something before it is killed
                    console.kill()
                    kills, before = kills + 1, accepted
        finally:
            victim.kill()
            victim.wait()
    assert (victim.returncode, (tmp_path / "stderr").read_text()) == (0, "")
    assert kills > 3
    committed = (tmp_path / "committed.txt").read_text().split()
    found = rows(store, TRANSITIONS)
    numbers = [int(row["tid"].rpartition("-")[2]) for row in found]
    assert numbers == list(range(1, len(numbers) + 1))
    assert set(committed) <= {row["tid"] for row in found}
    assert replay(found) == {row["server"]: row["sha256"] for row in rows(store, FINDINGS)}
    check_counts(store)


def lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def replay(found):
    """Follow what happened, from nothing: each step must fit what was before."""
    known = {}
    for row in found:
        if row["event"] == "opened":
            assert row["server"] not in known
            known[row["server"]] = row["sha256"]
        elif row["event"] == "changed":
            assert known[row["server"]] == row["was"]
            known[row["server"]] = row["sha256"]
        else:
            del known[row["server"]]
    return known


# --- two processes on one PostgreSQL -----------------------------------------------------------------------

WRITER = """
import json, random, sys
from halod.console.ingest import group, wire
from halod.console.security import tokens
from halod.console.store.engine import Store
from tests.console.support_ingest import document, happened
from tests.support.state import finding

url, seed, rounds, given = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
store, drawn = Store.open(url), random.Random(seed)
sent = {}
for at in range(rounds):
    items = []
    names = drawn.sample(sorted(given), drawn.randrange(1, len(given)))
    for name in names:
        rows = [finding(f"s{drawn.randrange(6)}", sha=drawn.choice("01")) for _ in range(drawn.randrange(4))]
        happenings = [happened(f"{seed}-{at}-{n}") for n in range(drawn.randrange(3))]
        body = json.dumps(document(*rows, device=name, ring=drawn.choice(["r1", "r2"]), transitions=happenings)).encode()
        items.append(group.Item(token=tokens.digest(given[name]), size=len(body), document=wire.read(body)))
        sent.setdefault(name, []).extend(one.id for one in happenings)
    with store.write() as c:
        assert group.take(store, c, items, 1_796_000_000 + at) == [204] * len(items)
store.close()
print(json.dumps(sent))
"""


def test_two_writers_on_one_database(postgres_url):
    """Two processes change the same devices, in any order, at the same time: no deadlock, no lost count."""
    store = Store.open(postgres_url)
    given = {f"d{n}": device_token(store, f"d{n}") for n in range(12)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, postgres_url, str(seed), "40", json.dumps(given)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in (1, 2, 3)
    ]
    answers = [process.communicate(timeout=200) for process in processes]
    assert [errors for _, errors in answers] == ["", "", ""]
    expected = {(name, tid) for sent, _ in answers for name, ids in json.loads(sent).items() for tid in ids}
    assert {(row["device"], row["tid"]) for row in rows(store, TRANSITIONS)} == expected
    with store.read() as c:
        assert counts.kept(c) == counts.recount(c)
    check_counts(store)
    store.close()
