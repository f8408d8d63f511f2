# SPDX-License-Identifier: Apache-2.0
"""The fetching thread against a server in another process: answers, faults, waiting, the end (design 9)."""

import threading
import time

import pytest

from halod.agent import fetch
from halod.agent.fetch import Fetcher
from halod.agent.fetched import FetchedPolicy
from halod.agent.http import Client
from halod.agent.prepare import Prepared
from halod.agent.sources import Following, source_of
from halod.agent.state import State
from halod.agent.tls import tls_context
from halod.settings import Policy as PolicySettings
from halod.settings import Settings
from tests.support.guard import HANG, LONG, until
from tests.support.server import running
from tests.support.signing import KEY, NEW_KEY, OTHER, POLICY, STRANGER, envelope, expired, pinned, public

INTERVAL = 900.0


@pytest.fixture(scope="module")
def server():
    with running() as server:
        yield server


class Machine:
    """One agent's fetching, turn by turn; `start` is a restart."""

    def __init__(self, directory, server):
        self.server = server
        self.directory = directory
        self.said = []
        self.told = 0
        self.state = None
        self.total = LONG
        self.start()

    def start(self, *, keys=(KEY,), org=""):
        self.close()
        self.state = State(str(self.directory))
        url = self.server.policy_url
        self.policy = FetchedPolicy(url, public(*keys), org, self.state, self.state.signed_policy)
        self.client = Client(url, tls_context(), total=self.total)
        self.fetcher = Fetcher(
            url,
            self.client,
            self.policy,
            interval=INTERVAL,
            say=lambda event, **fields: self.said.append((event, fields)),
            told=self._told,
            draw=lambda: 0.5,
        )

    def _told(self):
        self.told += 1

    def turn(self):
        """Ask once; give the wait, and what counts then."""
        wait = self.fetcher.turn()
        return wait, self.policy.refresh()

    def close(self):
        if self.state is not None:
            self.client.close()
            self.state.close()


@pytest.fixture
def machine(tmp_path, server):
    server.serve(envelope())
    made = Machine(tmp_path / "state", server)
    yield made
    made.close()
    assert "CANARY" not in repr(made.said)


def test_a_policy_is_fetched_and_then_only_asked_for(machine):
    """The second time with its entity tag: 304, the same object, no news."""
    before = len(machine.server.asked())
    wait, current = machine.turn()
    assert (wait, current.code, current.policy.org) == (INTERVAL, "", "acme")
    assert machine.fetcher.news()
    assert not machine.fetcher.news()
    assert machine.turn() == (INTERVAL, current)
    assert not machine.fetcher.news()
    first, second = machine.server.asked()[before:]
    assert (first["status"], second["status"]) == (200, 304)
    assert "if-none-match" not in first["headers"]
    assert second["headers"]["if-none-match"].startswith('"')
    assert not {"authorization", "cookie"} & (first["headers"].keys() | second["headers"].keys())
    assert machine.told == 1
    assert machine.said[0] == ("policy-fetched", {"version": 7, "status": 200})


def test_the_entity_tag_outlives_a_restart(machine):
    """Nothing is downloaded again, and the policy counts before the first answer."""
    digest = machine.turn()[1].policy.digest
    machine.start()
    assert machine.policy.refresh().policy.digest == digest
    assert machine.turn()[1].policy.digest == digest
    assert machine.server.asked()[-1]["status"] == 304


def test_a_newer_one_is_news(machine):
    """It replaces the one in force."""
    machine.turn()
    machine.fetcher.news()
    machine.server.serve(envelope(version=8, policy=OTHER))
    assert machine.turn()[1].policy.mode == "warn"
    assert machine.fetcher.news()


REFUSED = {
    "policy-unsigned": lambda: envelope(STRANGER, version=8),
    "policy-older": lambda: envelope(version=6),
    "policy-expired": lambda: expired(version=8),
    "policy-foreign": lambda: envelope(version=8, org="other", policy=POLICY.replace("acme", "other")),
    "policy-malformed": lambda: b"<html>CANARY</html>",
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_refused_leaves_the_last_good_one(machine, code):
    """Also after a restart; the server is asked again after the interval, and believed when it is mended."""
    held = machine.turn()[1].policy.digest
    machine.server.serve(REFUSED[code]())
    wait, current = machine.turn()
    assert (wait, current.code, current.policy.digest) == (INTERVAL, code, held)
    assert "CANARY" not in current.error
    assert machine.turn()[1].code == code
    assert machine.server.asked()[-1]["status"] == 304
    machine.start()
    assert machine.policy.refresh().policy.digest == held
    assert machine.turn()[1].code == code
    machine.server.serve(envelope(version=9))
    assert machine.turn()[1].code == ""


def test_a_rollback_after_a_restart_without_a_cache_is_refused(machine):
    """An older policy, well signed and not expired, does not come back."""
    machine.turn()
    (machine.directory / "policy.json").unlink()
    machine.server.serve(envelope(version=6))
    machine.start()
    assert machine.turn()[1].code == "policy-older"
    assert machine.policy.refresh().policy is None


def test_keys_are_changed_while_the_service_runs_on(machine):
    """One machine knows the old key, one the new: both take an envelope with two signatures."""
    machine.server.serve(envelope(KEY, NEW_KEY))
    assert machine.turn()[1].code == ""
    machine.start(keys=[NEW_KEY])
    assert machine.turn()[1].code == ""
    machine.server.serve(envelope(NEW_KEY, version=8))
    assert machine.turn()[1].code == ""
    machine.start(keys=[KEY])
    assert machine.turn()[1].code == "policy-unsigned"


@pytest.mark.parametrize(
    ("word", "wait", "words"),
    [
        ("404", INTERVAL, "HTTP status 404"),
        ("401", INTERVAL, "HTTP status 401"),
        ("204", INTERVAL, "HTTP status 204"),
        ("304", INTERVAL, "HTTP status 304"),
        ("302 Location: /CANARY", INTERVAL, "redirects elsewhere"),
        ("500", 2.5, "HTTP status 500"),
        ("503 Retry-After: 40", 42.0, "HTTP status 503"),
        ("429 Retry-After: 9999999", 3630.0, "HTTP status 429"),
        ("close", 2.5, "closed before"),
        ("truncate-body", 2.5, "closed before"),
        ("garbage", 2.5, "no HTTP answer"),
        ("flood-head", 2.5, "too long"),
        ("two-lengths", 2.5, "no HTTP answer"),
    ],
)
def test_an_outage_leaves_the_last_good_one(machine, word, wait, words):
    """It is no problem yet; the words are closed; a failure that may pass is tried again sooner."""
    without = machine.policy.etag
    machine.server.serve(envelope(), word)
    got, current = machine.turn()
    assert (got, current.code, without) == (wait, "policy-unreachable", "")
    assert words in current.error
    assert "CANARY" not in current.error
    machine.server.serve(envelope(), "ok")
    held = machine.turn()[1].policy
    if word == "304":
        return  # with an entity tag it is an answer
    machine.server.serve(envelope(), word)
    got, current = machine.turn()
    assert (got, current.code, current.policy) == (wait, "", held)
    assert words in machine.policy.followed().trouble
    assert machine.said[-1][0] == "policy-fetch-failed"
    machine.server.serve(envelope(), "ok")
    assert machine.turn()[0] == INTERVAL
    assert machine.policy.followed().trouble == ""


def test_waits_double_up_to_a_quarter_of_an_hour(machine):
    """And begin anew after an answer. What failed the same way is said once."""
    machine.server.serve(envelope(), "500")
    waits = [machine.turn()[0] for _ in range(10)]
    assert waits[:4] == [2.5, 5.0, 10.0, 20.0]
    assert waits[-1] == 450.0
    assert [event for event, _ in machine.said] == ["policy-fetch-failed"]
    machine.server.serve(envelope(), "ok", "500")
    machine.turn()
    assert machine.turn()[0] == 2.5


@pytest.mark.parametrize(
    ("word", "code", "words"),
    [("flood-body", "policy-malformed", "larger than 1 MiB"), ("flood-chunks", "", "too long")],
)
def test_what_is_huge_is_cut_and_refused(machine, word, code, words):
    """A mebibyte is read and no more; of framing a little more, which is an outage."""
    held = machine.turn()[1].policy
    machine.server.serve(envelope(), word)
    _, current = machine.turn()
    assert (current.policy, current.code) == (held, code)
    assert words in machine.policy.followed().trouble


def test_one_byte_more_than_a_mebibyte_is_refused(machine):
    """The cap is that of `halo sign`."""
    machine.server.serve(envelope() + b" " * 1024 * 1024)
    _, current = machine.turn()
    assert (current.policy, current.code) == (None, "policy-malformed")
    assert "larger than 1 MiB" in current.error


def test_a_policy_of_nearly_a_mebibyte_is_taken(machine):
    """What `halo sign` makes arrives."""
    big = envelope(policy=POLICY + "# " + "x" * 760_000 + "\n")
    assert 1_000_000 < len(big) <= 1024 * 1024
    machine.server.serve(big)
    assert machine.turn()[1].code == ""
    machine.start()
    assert machine.policy.refresh().code == ""


@pytest.mark.parametrize("word", ["hang", "drip-body", "drip-head"])
def test_a_server_that_hangs_costs_its_time_and_no_more(machine, word):
    """The request ends by itself."""
    held = machine.turn()[1].policy
    machine.total = 0.5
    machine.start()
    machine.server.serve(envelope(), word)
    began = time.monotonic()
    _, current = machine.turn()
    assert time.monotonic() - began < HANG
    assert current.policy.digest == held.digest
    assert "in time" in machine.policy.followed().trouble


def test_the_thread_ends_out_of_a_request(machine, monkeypatch):
    """And nobody who asks for the policy waits meanwhile."""
    monkeypatch.setattr(fetch, "_JOIN", LONG)
    machine.turn()
    machine.server.serve(envelope(), "hang")
    asked = len(machine.server.asked())
    machine.fetcher.start()
    until(lambda: len(machine.server.asked()) > asked)
    began = time.monotonic()
    assert machine.policy.refresh().policy.org == "acme"
    assert machine.policy.followed().version == 7
    machine.fetcher.stop()
    assert time.monotonic() - began < HANG
    assert not [thread for thread in threading.enumerate() if thread.name == "policy"]


def test_a_fault_of_ours_costs_one_try(machine):
    """Its text may hold anything and is not shown."""
    machine.turn()

    def broken(document, etag):
        raise RuntimeError("CANARY")

    machine.policy.take = broken
    machine.server.serve(envelope(version=8))
    wait, current = machine.turn()
    assert (wait, current.policy.org) == (2.5, "acme")
    assert ("policy-fault", {"exception": "RuntimeError"}) in machine.said


def test_a_proxy_that_cannot_be_used_is_said_and_stops_nothing(machine, monkeypatch):
    """There is no thread then; scans go on with what is kept."""
    monkeypatch.setenv("HTTPS_PROXY", "socks5://CANARY.example:1080")
    policy = PolicySettings(url="https://halos.acme.example/p", public_keys=tuple(pinned(KEY)))
    prepared = Prepared(settings=Settings(policy=policy), tls=tls_context())
    source = source_of(policy, None, machine.state)
    following = Following(prepared, source, lambda: None)
    following.start()
    assert (following.waits, following.news()) == (False, False)
    current = source.refresh()
    assert (current.code, "the proxy of the environment cannot be used" in current.error) == (
        "policy-unreachable",
        True,
    )
    assert following.followed().version == 0
    following.stop()


def test_without_a_url_nothing_is_followed(machine):
    """A policy that is a file, or none, has no thread."""
    prepared = Prepared(settings=Settings())
    following = Following(prepared, source_of(PolicySettings(), None, machine.state), lambda: None)
    following.start()
    assert (following.waits, following.news(), following.followed()) == (False, False, None)
    following.stop()
