# SPDX-License-Identifier: Apache-2.0
"""One token must not be enough to keep everybody else from changing anything, or to fill the disk."""

import pytest

from halod.console.ingest import budget
from halod.console.store import delta
from tests.console.support_ingest import (
    Clock,
    client_of,
    device_token,
    document,
    happened,
    make_console,
    post,
    transition_ids,
)
from tests.support.state import finding

OTHER = "e" * 64
UNITS = [f"unit{n}" for n in range(8)]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def client(store, clock):
    with client_of(make_console(store, clock)) as made:
        yield made


def many(count, host="h"):
    """Findings that are about different things, short enough for a report."""
    return [
        {"harness": f"t{n}", "file": "f", "server": "s", "transport": "http", "host": f"{host}{n}.example"}
        for n in range(count)
    ]


def test_what_an_agent_sends_is_never_refused(store, client):
    """Many findings, each counted under every key, changed over and over; room is for three times as many."""
    assert budget.ROWS_BURST >= 3 * 2 * 256 * 37
    token = device_token(store)
    for turn in range(4):
        rows = [finding(f"s{n}", sha=f"{n:063x}{turn}") for n in range(128)]
        answer = post(client, token, document(*rows, units=UNITS, ring=f"ring{turn}"))
        assert answer.status_code == 204


def test_a_device_that_turns_everything_over_is_stopped(store, client, clock, monkeypatch):
    """A small report may cause much work: 300 bytes with another ring count every finding anew, under 36 keys."""
    monkeypatch.setattr(delta, "MOST_KNOWN", 200)
    token, other = device_token(store), device_token(store, OTHER)
    answer = post(client, token, {**document(units=UNITS), "mcpDrift": many(200), "truncated": True})
    assert answer.status_code == 204
    answers = [
        post(client, token, document(units=UNITS, ring=f"ring{turn}", truncated=True)) for turn in range(12)
    ]
    taken = [answer.status_code for answer in answers].count(204)
    # Each writes 2 * 200 * 37 rows: four of them are the burst.
    assert 3 <= taken <= 5
    refused = answers[-1]
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert "one device may" in refused.json()["detail"]
    # The others go on, and so does what changes nothing.
    assert post(client, other, document(finding("a"), device=OTHER)).status_code == 204
    last = document(units=UNITS, ring=f"ring{taken - 1}", truncated=True)
    assert post(client, token, last).status_code == 204
    clock.go(120)
    assert post(client, token, document(units=UNITS, ring="back", truncated=True)).status_code == 204


def test_a_device_cannot_fill_the_disk(store, clock, monkeypatch):
    """Transitions stay for months: their number has a limit, too."""
    monkeypatch.setattr(budget, "KEPT_BURST", 200)
    token = device_token(store)
    with client_of(make_console(store, clock)) as client:
        statuses = []
        for turn in range(8):
            sent = [happened(f"{turn}-{n}") for n in range(64)]
            statuses.append(post(client, token, document(transitions=sent)).status_code)
        assert statuses == [204] * 4 + [429] * 4
        assert len(transition_ids(store)) == 4 * 64
        clock.go(60 * 60)
        assert post(client, token, document(transitions=[happened("late")])).status_code == 204


def test_the_same_server_under_ever_new_hashes_is_stopped(store, clock, monkeypatch):
    """The limit of distinct server names does not see these; each is a group and a definition that is kept."""
    monkeypatch.setattr(budget, "KEPT_BURST", 200)
    token = device_token(store)
    with client_of(make_console(store, clock)) as client:
        statuses = [
            post(client, token, document(*(finding("s", sha=f"{turn:032x}{n:032x}") for n in range(64))))
            for turn in range(8)
        ]
    assert [status.status_code for status in statuses] == [204] * 4 + [429] * 4
