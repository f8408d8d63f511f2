# SPDX-License-Identifier: Apache-2.0
"""What others at an address try keeps nobody out who has a valid credential: many stand behind one address."""

import io
import json

import pytest

from halod.console import app, logs
from halod.console.access import Role
from halod.console.security import tokens
from halod.console.security.ratelimit import CountedRefusals
from halod.console.settings import Limits
from tests.console import support_people as people
from tests.console.support_ingest import (
    ENROLL,
    NOW,
    REPORT,
    Clock,
    client_of,
    device_token,
    document,
    enroll_key,
    make_console,
    post,
)
from tests.support.state import finding

FEW = Limits(reports_per_minute=1000, requests_per_minute=1000, refused_per_minute=3)


def try_others(client):
    """What anybody can do from the same address, without knowing anything: up to the limit, and beyond."""
    answers = [post(client, f"hld_{n:043}", document()).status_code for n in range(5)]
    assert answers == [401, 401, 401, 429, 429]


@pytest.fixture
def client(store):
    with client_of(make_console(store, Clock(), limits=FEW)) as made:
        yield made


def test_a_device_that_has_reported_goes_on(client, store):
    token = device_token(store)
    assert post(client, token, document()).status_code == 204
    try_others(client)
    assert post(client, token, document(finding("a"))).status_code == 204
    with store.write() as c:
        tokens.revoke_device(c, document()["device"], NOW)
    assert [post(client, token, document()).status_code for _ in range(2)] == [401, 429]


def test_a_program_that_has_asked_goes_on(client, store):
    with store.write() as c:
        token = tokens.issue_api(c, name="p", role=Role.VIEWER, now=NOW, days=1, by="test")
    head = {"Authorization": f"Bearer {token}"}
    assert client.get("/api/v1/devices", headers=head).status_code == 200
    try_others(client)
    assert client.get("/api/v1/devices", headers=head).status_code == 200
    assert client.get("/api/v1/devices", headers={"Authorization": "Bearer hla_x"}).status_code == 429


def test_machines_go_on_enrolling(client, store):
    key = enroll_key(store)

    def enrol(number, key=key):
        asked = {"device": f"d{number}", "installId": "i", "hostname": "h", "os": "linux", "halod": "0.1.0"}
        return client.post(ENROLL, json=asked, headers={"Authorization": f"Bearer {key}"}).status_code

    assert enrol(1) == 201
    try_others(client)
    assert enrol(2) == 201
    assert enrol(3, key="hle_" + "A" * 43) == 429


def test_who_has_no_key_does_not_hold_anybody_up(client, store):
    """A request with a key that is none is answered while somebody else holds the lock of all changes."""
    head = {"Authorization": "Bearer hle_" + "A" * 43}
    asked = {"device": "d", "installId": "i", "hostname": "h", "os": "linux", "halod": "0.1.0"}
    with store.change():
        assert client.post(ENROLL, json=asked, headers=head).status_code == 401


def test_who_is_refused_is_in_the_log(client):
    """Reports that are taken are logged at level debug; those of nobody are for an administrator to see."""
    stream = io.StringIO()
    logs.configure("info", "json", stream=stream)
    try:
        assert post(client, "hld_" + "A" * 43, document()).status_code == 401
    finally:
        logs.configure()
    (line,) = [one for one in map(json.loads, stream.getvalue().splitlines()) if one["event"] == "request"]
    assert (line["route"], line["status"], line["address"]) == (REPORT, 401, "127.0.0.1")


def test_what_is_remembered_is_bounded():
    refusals = CountedRefusals(Clock(), 1, most=4)
    refusals.add("192.0.2.1")
    for number in range(100):
        refusals.good(f"{number}")
    refusals.check("192.0.2.1", "99")
    with pytest.raises(app.Problem):
        refusals.check("192.0.2.1", "0")
    with pytest.raises(app.Problem):
        refusals.check("192.0.2.1", "")


def test_no_address_holds_a_nul(store):
    """PostgreSQL takes no NUL: such an address is refused before anything is asked, on every route that has a name."""
    console = people.make_console(store)
    client = people.client(console)
    with store.write() as c:
        token = tokens.issue_api(c, name="p", role=Role.ADMIN, now=people.NOW, days=1, by="test")
    named = [route for route in app.table(console.settings) if "{" in route.path]
    assert len(named) > 10
    for route in named:
        path = "/".join("a%00b" if part.startswith("{") else part for part in route.path.split("/"))
        answer = client.request(route.method, path, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 400, route.path
