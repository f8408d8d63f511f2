# SPDX-License-Identifier: Apache-2.0
"""State, courier and the reference server together: outages, every kind of answer, enrolment, and the end."""

import json
import random
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
from tests.server.faults import FAULTS
from tests.support.certificates import Authority
from tests.support.guard import HANG, LONG, until
from tests.support.server import ENROL_KEY, TOKEN, running
from tests.support.state import all_seen, finding, status

ABOUT = About("d" * 64, "mbp-417", "linux", "0.1.0")


class Agent:
    """A state and a courier's thread, with waits that suit a test."""

    def __init__(self, directory, url, *, token=TOKEN, enrol=False, ca_file="", total=HANG, limits=None):
        self.state = State(str(directory))
        self.said = []
        self.ahead = 0.0
        self.wake = threading.Event()
        self.courier = Courier(
            self.state,
            Client(url, tls_context(ca_file), total=total),
            Setup(
                url=url,
                token="" if enrol else token,
                enrolment=Enrolment(url, ENROL_KEY, ABOUT) if enrol else None,
                limits=limits or Limits(),
            ),
            say=lambda event, **fields: self.said.append((event, fields)),
            backoff=Hasty(random.Random(1).random, base=0.01, cap=0.05),
            wake=self.wake,
            clock=lambda: time.monotonic() + self.ahead,
        )
        self.thread = threading.Thread(target=self.courier.run)
        self.thread.start()

    def commit(self, *servers):
        done = self.state.commit_cycle(status(*[finding(name) for name in servers]), all_seen())
        self.wake.set()
        return [one.id for one in done.transitions]

    def stop(self):
        self.courier.stop()
        self.thread.join(HANG)
        assert not self.thread.is_alive()
        self.state.close()


class Hasty(Backoff):
    """Waits a moment where people would have to come first, too."""

    def slow(self, retry_after=0.0):
        return 0.05


@pytest.fixture(scope="module")
def shared():
    with running() as started:
        yield started


@pytest.fixture
def server(shared):
    shared.plan("ok")
    return shared


@pytest.fixture
def start(tmp_path):
    agents = []

    def begin(url, name="state", **options):
        agents.append(Agent(tmp_path / name, url, **options))
        return agents[-1]

    yield begin
    for agent in agents:
        agent.stop()


def arrived(server, ids):
    return lambda: set(ids) <= {one["id"] for one in server.transitions()}


def test_a_finding_arrives(server, start):
    """From the commit to the server's picture, and the server's answers are those of the contract."""
    agent = start(server.url)
    ids = agent.commit("notes", "wiki")
    until(arrived(server, ids), "delivered")
    until(lambda: agent.state.summary().waiting == 0, "noted")
    assert [row["server"] for row in server.ask(newest=True)["d" * 64]["mcpDrift"]] == ["notes", "wiki"]


@pytest.mark.parametrize("word", sorted(FAULTS))
def test_every_fault_passes(server, start, word):
    """Whatever the server does wrong, the next good answer brings everything, in order, and once."""
    before = len(server.log())
    server.plan(word, word, "ok")
    agent = start(server.url, total=0.3)
    ids = agent.commit("notes", "wiki")
    until(lambda: len(server.log()) > before, "asked")
    ids += agent.commit("notes")
    # A 2xx whose body is too long or packed is an acceptance: this server has not kept the report.
    if word not in {"flood-body", "gzip-bomb"}:
        until(arrived(server, ids), "delivered")
        assert [one["id"] for one in server.transitions()][-3:] == ids
    until(lambda: agent.state.summary().waiting == 0, "noted")


@pytest.mark.parametrize(
    "word",
    ["302 Location: /elsewhere", "307 Location: http://127.0.0.1:1/", "304", "404", "408", "410", "425"],
)
def test_every_status_passes(server, start, word):
    """A status that is no acceptance costs no transition, with Retry-After or without."""
    server.plan(word, f"{word[:3]} Retry-After: 0", "ok")
    agent = start(server.url)
    until(arrived(server, agent.commit("notes")), "delivered")


@pytest.mark.parametrize("code", [401, 403, 429, 500, 502, 503, 504, 400, 413, 422])
def test_every_error_passes(server, start, code):
    """So do those that name a refusal or an error, also when they come once only."""
    server.plan(f"{code}", f"{code} Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", "ok")
    agent = start(server.url)
    ids = [*agent.commit("notes", "wiki"), *agent.commit("notes")]
    until(arrived(server, ids), "delivered")
    assert agent.state.summary().counters.dropped == 0


def test_a_server_that_comes_back(start):
    """An outage delivers the newest status and every transition in order."""
    agent = start("http://127.0.0.1:9/api/v1/fleet/report")
    ids = []
    for count in range(20):
        ids += agent.commit(*[f"s{n:02}" for n in range(count)])
    until(lambda: agent.state.summary().delivery is not None, "tried")
    assert agent.state.summary().delivery.outcome == "connection-refused"
    agent.stop()
    with running() as server:
        again = start(server.url)
        again.wake.set()
        until(arrived(server, ids), "delivered")
        assert [one["id"] for one in server.transitions()] == ids
        assert len(server.ask(newest=True)["d" * 64]["mcpDrift"]) == 19


@pytest.mark.parametrize("word", ["hang", "drip-head", "drip-body", "lost-hang", "flood-informational"])
def test_it_ends_at_once(server, start, word):
    """In the middle of a request, without its end; what was under way is sent after the next start."""
    server.plan(word)
    before = len(server.log())
    agent = start(server.url, total=LONG)
    ids = agent.commit("notes")
    until(lambda: len(server.log()) > before, "asked")
    agent.stop()  # the request would hang for LONG
    server.plan("ok")
    again = start(server.url)
    until(arrived(server, ids), "delivered")
    assert [one["id"] for one in server.transitions()].count(ids[0]) == 1
    again.stop()


def test_scanning_goes_on_while_a_request_hangs(server, start):
    """A commit waits for the disk alone."""
    server.plan("hang")
    before = len(server.log())
    agent = start(server.url, total=LONG)
    agent.commit("notes")
    until(lambda: len(server.log()) > before, "asked")
    started = time.monotonic()
    for count in range(10):
        agent.commit(*[f"s{n}" for n in range(count)])
    assert time.monotonic() - started < HANG  # the request hangs for LONG
    assert agent.state.summary().counters.cycles == 11


def test_the_server_drops_what_it_has(server, start):
    """An answer that is lost on the way brings the report again: its ids are known."""
    server.plan("lost", "lost", "ok")
    agent = start(server.url)
    ids = agent.commit("notes", "wiki")
    until(lambda: agent.state.summary().waiting == 0, "noted")
    log = [json.loads(entry["body"])["transitions"] for entry in server.log()[-3:]]
    assert log[0] == log[1] == log[2]
    assert [one["id"] for one in server.transitions()][-2:] == ids


def test_a_halos_server(server, start):
    """Without transitions the document has none, as a server that does not know them expects."""
    agent = start(server.url, limits=Limits(with_transitions=False))
    before = len(server.log())
    agent.commit(*[f"server-{at}" for at in range(500)])
    until(lambda: len(server.log()) > before and server.log()[-1]["status"] == 204, "accepted")
    document = json.loads(server.log()[-1]["body"])
    assert "transitions" not in document
    assert {"time", "hostname", "user", "ring", "digest", "mcpDrift", "lastError", "errorCode"} <= set(
        document
    )
    assert 48 * 1024 < len(server.log()[-1]["body"]) <= 64 * 1024
    assert document["mcpDriftTotal"] == 500


def test_a_test_finding_comes_and_goes(server, start):
    """It is in one report, marked, and in the next it is resolved; the state knows nothing of it."""
    agent = start(server.url)
    until(arrived(server, agent.commit("notes")), "delivered")
    until(lambda: agent.state.summary().waiting == 0, "noted")
    before, known = len(server.log()), agent.state.summary()
    said = try_it(agent)
    assert (said.outcome, said.http, said.words) == ("delivered", 204, "it was taken back")
    there, gone = [json.loads(entry["body"]) for entry in server.log()[before:]]
    assert [row["server"] for row in there["mcpDrift"]] == ["halod-canary", "notes"]
    assert [row["server"] for row in gone["mcpDrift"]] == ["notes"]
    row = there["mcpDrift"][0]
    assert (row["harness"], row["kind"], row["user"]) == ("halod", "unapproved", "")
    assert row["detail"] == "test finding of halod check --canary"
    assert there["mcpDriftTotal"] == 2
    (opened,), (resolved,) = there["transitions"], gone["transitions"]
    assert (opened["event"], resolved["event"]) == ("opened", "resolved")
    assert opened["finding"] == resolved["finding"] == row
    now = agent.state.summary()
    assert (now.counters, now.delivery, now.waiting) == (known.counters, known.delivery, 0)
    assert [one.finding.server for one in agent.state.findings()] == ["notes"]


def test_a_test_finding_fits_beside_many(server, start):
    """A full report is cut further, so that the test finding is in it."""
    agent = start(server.url)
    until(arrived(server, agent.commit(*[f"server-{at}" for at in range(400)])[:64]), "delivered")
    until(lambda: agent.state.summary().waiting == 0, "noted")
    before = len(server.log())
    assert try_it(agent).outcome == "delivered"
    there = json.loads(server.log()[before]["body"])
    assert "halod-canary" in [row["server"] for row in there["mcpDrift"]]
    assert (there["truncated"], there["mcpDriftTotal"]) == (True, 401)
    assert len(there["mcpDrift"]) <= 256
    assert len(server.log()[before]["body"]) <= 60 * 1024


def test_a_test_finding_without_transitions(server, start):
    """For a server that knows statuses only: there in one, gone in the next."""
    agent = start(server.url, limits=Limits(with_transitions=False))
    agent.commit("notes")
    before = len(server.log())
    assert try_it(agent).outcome == "delivered"
    bodies = [json.loads(entry["body"]) for entry in server.log()[before:]]
    assert not any("transitions" in body for body in bodies)
    assert [len(body["mcpDrift"]) for body in bodies][-2:] == [2, 1]


@pytest.mark.parametrize(
    ("word", "http", "words"),
    [
        ("422", 422, "refuses the report"),
        ("503", 503, "a fault of its own"),
        ("garbage", 0, "no HTTP answer"),
    ],
)
def test_a_test_finding_that_is_not_taken(server, start, word, http, words):
    """The answer is told in words; nothing is left to be taken back."""
    agent = start(server.url)
    until(arrived(server, agent.commit("notes")), "delivered")
    until(lambda: agent.state.summary().waiting == 0, "noted")
    server.plan(word, "ok")
    said = try_it(agent)
    assert (said.outcome, said.http) == ("refused", http)
    assert words in said.words
    assert not agent.courier.trial.owed


def test_a_test_finding_that_is_not_taken_back_at_once(server, start):
    """It is tried again when the next cycle wakes delivery, and another test does as well."""
    agent = start(server.url)
    until(arrived(server, agent.commit("notes")), "delivered")
    until(lambda: agent.state.summary().waiting == 0, "noted")
    server.plan("ok", "503", "ok")
    said = try_it(agent)
    assert said.outcome == "delivered"
    assert said.words.startswith("it was not taken back yet")
    assert agent.courier.trial.owed
    agent.commit("notes")
    until(lambda: not agent.courier.trial.owed, "taken back")
    assert "halod-canary" not in [row["server"] for row in json.loads(server.log()[-1]["body"])["mcpDrift"]]


def test_a_test_before_the_first_scan_or_without_a_token(server, start):
    """Nothing is sent, and why is said; a question about another test is answered too."""
    agent = start(server.url)
    assert (try_it(agent).outcome, try_it(agent).words) == ("unavailable", "the first scan is not over yet")
    assert agent.courier.trial.ask(99).outcome == "unavailable"
    poor = start(server.url, "two", token="")
    poor.commit("notes")
    assert try_it(poor).words.startswith("there is no token")


def try_it(agent):
    """Ask for a test, twice at once, and wait for its end."""
    trial = agent.courier.trial
    number = trial.ask(0).number
    agent.wake.set()
    until(lambda: trial.ask(number).outcome != "waiting", "tested")
    return trial.ask(number)


def test_tls_all_the_way(start, tmp_path):
    """With an own CA; and with another one nothing is sent, and the reason is a word."""
    authority, other = Authority(tmp_path), Authority(tmp_path, "other-ca")
    with running(cert=authority.issue("console", address="127.0.0.1")) as server:
        agent = start(server.url, "one", ca_file=str(authority.file))
        until(arrived(server, agent.commit("notes")), "delivered")
        before = len(server.log())
        stranger = start(server.url, "two", ca_file=str(other.file))
        stranger.commit("notes")
        until(lambda: stranger.state.summary().delivery is not None, "tried")
        assert stranger.state.summary().delivery.outcome == "tls-unknown-ca"
        assert len(server.log()) == before


# Enrolment


def test_enrolment(start, tmp_path):
    """A device gets its token, keeps it, and renews it when it has expired."""
    with running() as server:
        agent = start(server.url, enrol=True)
        until(arrived(server, agent.commit("notes")), "delivered")
        first = agent.state.device.token
        server.ask(expire=first)
        agent.ahead = 3600.0
        until(arrived(server, agent.commit("notes", "wiki")), "delivered with a new token")
        assert agent.state.device.token not in {"", first}
        assert [entry["path"] for entry in server.log()].count("/api/v1/enroll") == 2


def test_a_known_device_without_its_token(start):
    """Anyone can name a device: until an operator accepts it, it waits."""
    with running() as server:
        agent = start(server.url, enrol=True)
        until(arrived(server, agent.commit("notes")), "delivered")
        reinstalled = start(server.url, "reinstalled", enrol=True)
        ids = reinstalled.commit("wiki")
        until(lambda: reinstalled.state.device.enrolment == "pending", "pending")
        assert reinstalled.state.summary().delivery.outcome == "enrolment-pending"
        assert not arrived(server, ids)()
        server.ask(accept=ABOUT.device)
        until(arrived(server, ids), "delivered")
        assert reinstalled.state.device.enrolment == "enrolled"


def test_a_device_that_an_operator_refuses(start):
    """It is told so, and shows it."""
    with running() as server:
        server.ask(reject=ABOUT.device)
        agent = start(server.url, enrol=True)
        agent.commit("notes")
        until(lambda: agent.state.device.enrolment == "refused", "refused")
        until(lambda: agent.state.summary().delivery.http == 409, "shown")


def test_a_token_is_bound_to_its_device(start):
    """Another device's token is refused, whatever the report says."""
    with running() as server:
        agent = start(server.url, enrol=True)
        until(arrived(server, agent.commit("notes")), "delivered")
        thief = start(server.url, "thief", token=agent.state.device.token)
        thief.state.commit_cycle(status(finding(), device="e" * 64), all_seen())
        thief.wake.set()
        until(lambda: thief.state.summary().delivery is not None, "tried")
        assert (thief.state.summary().delivery.outcome, thief.state.summary().delivery.http) == (
            "unauthorised",
            403,
        )


def test_secrets_stay_where_they_belong(server, start, tmp_path):
    """Tokens are in their header, and in device.json alone; the log holds words and numbers."""
    server.plan("401", "garbage", "302 Location: http://CANARYhost/", "cookie", "ok")
    agent = start(server.url, enrol=True)
    until(arrived(server, agent.commit("notes")), "delivered")
    token = agent.state.device.token
    agent.stop()
    for entry in server.log():
        assert "CANARY" not in entry["body"] + entry["path"]
        assert token not in entry["body"] + entry["path"]
    said = repr(agent.said)
    assert "CANARY" not in said
    assert token not in said
    assert "127.0.0.1" not in said
    for file in (tmp_path / "state").iterdir():
        content = file.read_bytes()
        assert b"CANARY" not in content
        assert (token.encode() in content) == (file.name == "device.json")
