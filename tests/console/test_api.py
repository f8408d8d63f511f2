# SPDX-License-Identifier: Apache-2.0
"""The API's answers: documents, errors that repeat nothing, and what an operator does through it."""

import json
import re
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from halod.console import api
from halod.console.access import Role
from halod.console.api import openapi, wire
from halod.console.ingest.apply import take
from halod.console.security import tokens
from halod.console.store.schema import ENROLLMENTS
from tests.console import support_people as people
from tests.console.support_api import ODD, Program, finding, hostile_console, status

DOCUMENT = openapi.document(api.DESCRIBED, api.OPERATIONS)
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
LISTS = sorted(
    path.removeprefix("/api/v1")
    for path, one in DOCUMENT["paths"].items()
    if "get" in one
    and any(parameter["name"] == "cursor" for parameter in one["get"].get("parameters", ()))
    and "webhooks" not in path
)


@pytest.fixture
def program(store):
    return Program(hostile_console(store))


def at(path):
    """Put something into the places of a path."""
    return path.replace("{device}", "0" * 64).replace("{dim}", "server").replace("{entry}", "entry-0")


def validator(path):
    described = DOCUMENT["paths"][f"/api/v1{path}"]["get"]["responses"]["200"]["content"]["application/json"]
    return Draft202012Validator({**described["schema"], "components": DOCUMENT["components"]})


@pytest.mark.parametrize("path", LISTS)
def test_a_list_in_pages_is_the_list_at_once(program, path):
    whole = program.every(at(path), limit=200)
    paged = program.every(at(path), limit=2)
    assert paged == whole
    answer = program.get(at(path), limit=3)
    assert not list(validator(path).iter_errors(answer.json()))
    assert answer.headers["cache-control"] == "no-store"


def test_a_device_and_what_is_known_of_it(program):
    answer = program.get(f"/devices/{'0' * 64}").json()
    assert answer["device"]["device"] == "0" * 64
    assert answer["device"]["hostname"].startswith("=HYPERLINK(")
    assert answer["device"]["user"] == answer["device"]["hostname"]
    assert MOMENT.fullmatch(answer["device"]["lastReport"])
    assert answer["device"]["partly"]
    assert [row["reason"] for row in answer["skipped"]] == ["malformed"]
    assert [row["entry"] for row in answer["approved"]] == ["entry-0"]
    assert program.get("/devices/nobody").status_code == 404


def test_findings_by_everything(program):
    every = program.every("/findings")
    assert len(every) == 2 * len(ODD)
    group = program.get("/findings/groups", what="mcp.example.com:8443").json()["rows"][0]
    assert group["server"] == "web"
    assert program.get(f"/findings/groups/{group['id']}").json() == group
    for query, name in (
        ({"group": group["id"]}, "group"),
        ({"device": "0" * 64}, "device"),
        ({"server": "web"}, "server"),
        ({"definition": every[0]["definitionSha256"]}, "definitionSha256"),
        ({"harness": "cursor"}, "harness"),
        ({"kind": "denied"}, "kind"),
    ):
        rows = program.every("/findings", **query)
        assert rows == [row for row in every if row[name] == next(iter(query.values()))]
        assert rows
    units = program.every("/findings", unit="payments")
    assert units == every
    assert program.get("/findings/groups/999999").status_code == 404


def test_transitions_are_read_on_from_a_number(store):
    console = people.make_console(store)
    program = Program(console)
    seen, after = [], 0
    for round_ in range(3):
        rows = [finding(f"server-{nth}") for nth in range(round_ + 1)]
        changes = [
            {"id": f"{round_}-{nth}", "time": "", "event": "opened", "finding": row}
            for nth, row in enumerate(rows)
        ]
        take(store, [status("d1", rows, transitions=changes)], now=people.NOW + round_)
        while True:
            answer = program.get("/transitions", after=after, limit=2).json()
            seen += answer["rows"]
            after = answer["next"]
            if not answer["rows"]:
                break
    assert [row["event"] for row in seen] == ["opened"] * 6
    assert [row["seq"] for row in seen] == sorted({row["seq"] for row in seen})
    newest = program.every("/devices/d1/transitions", limit=4)
    assert newest == seen[::-1]


def test_a_reader_beside_writers_misses_nothing_and_sees_nothing_twice(store):
    """Numbers grow in the order of commits, so what was not there when a page was read comes behind it."""
    console = people.make_console(store)
    program = Program(console)
    done = threading.Event()

    def report(device):
        for nth in range(15):
            row = finding(f"server-{nth}")
            changes = [{"id": f"{device}-{nth}", "time": "", "event": "opened", "finding": row}]
            take(store, [status(device, [row], transitions=changes)], now=people.NOW + nth)

    writers = [threading.Thread(target=report, args=(f"d{nth}",)) for nth in range(3)]

    def wait():
        for writer in writers:
            writer.join()
        done.set()

    for thread in (*writers, threading.Thread(target=wait)):
        thread.start()
    seen, after = [], 0
    while True:
        last = done.is_set()
        answer = program.get("/transitions", after=after, limit=4).json()
        seen += [(row["device"], row["server"]) for row in answer["rows"]]
        after = answer["next"]
        if last and not answer["rows"]:
            break
    assert len(seen) == len(set(seen)) == 45
    for device in ("d0", "d1", "d2"):
        assert [server for name, server in seen if name == device] == [f"server-{nth}" for nth in range(15)]


def test_the_overview(program):
    answer = program.get("/overview").json()
    assert answer["overview"]["devices"] == len(ODD)
    assert answer["overview"]["findings"] == 2 * len(ODD)
    assert len({day["day"] for day in answer["trend"]}) == 30
    assert not list(validator("/overview").iter_errors(answer))


def test_registry_use(program):
    rows = {row["entry"]: row for row in program.every("/registry/usage")}
    assert set(rows) == {"entry-0", "entry-1", "entry-2"}
    assert not rows["entry-0"]["known"]
    assert len(program.every("/registry/entries/entry-0/devices")) == rows["entry-0"]["devices"]
    assert program.every("/registry/usage", unused="true") == []
    digests = program.get("/registry/digests").json()["rows"]
    assert sum(row["devices"] for row in digests) == len(ODD)


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/devices", {"color": "CANARY"}),
        ("/devices", {"state": "CANARY"}),
        ("/devices", {"cursor": "CANARY"}),
        ("/devices", {"limit": "CANARY"}),
        ("/devices", {"ring": ["CANARY", "b"]}),
        ("/devices", {"device": "CANARY"}),
        ("/findings", {"group": "CANARY"}),
        ("/findings", {"group": "0"}),
        ("/findings", {"server": "CANARY" + "x" * 1024}),
        ("/findings/groups", {"order": "CANARY"}),
        ("/findings/groups/CANARY", {}),
        ("/prevalence/CANARY", {}),
        ("/transitions", {"after": "-1"}),
        ("/transitions", {"after": "9" * 30}),
        ("/tokens/CANARY/revoke", {}),
    ],
)
def test_what_cannot_be_asked_is_told_and_not_repeated(program, path, query):
    ask = program.post if path.endswith("revoke") else program.get
    answer = ask(path, **query)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.json()) == {"type", "title", "status", "detail"}
    assert "CANARY" not in answer.text


ANY = st.text(st.characters(exclude_categories=()), max_size=30) | st.sampled_from(
    ["\x00", "a\x00b", "x" * 10_000, "%00", "\udcff", "' OR 1=1 --", "\U0010ffff"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    st.sampled_from(LISTS), st.sampled_from(["cursor", "ring", "server", "limit", "what", "x", "device"]), ANY
)
def test_any_text_anywhere_is_an_answer_below_500(program, path, name, text):
    sent = {name: text.encode("utf-8", "surrogatepass")}
    answer = program.get(at(path), **sent)
    assert answer.status_code in {200, 400}


# --- what is done ------------------------------------------------------------------------------------------


def waiting(store, device="d1", install="i-new"):
    row = {
        "device": device, "install_id": install, "hostname": "claims-to-be", "os": "linux", "halod": "0.1.0",
        "address": "192.0.2.9", "key_id": 1, "first_asked": 1, "last_asked": 2, "asked": 3, "state": "waiting",
    }  # fmt: skip
    with store.write() as c:
        c.execute(ENROLLMENTS.insert().values(**row))


@pytest.mark.parametrize(("verb", "state"), [("accept", "accepted"), ("refuse", "refused")])
def test_a_device_that_waits_is_accepted_or_refused(store, verb, state):
    console = people.make_console(store)
    take(store, [status("d1", [], hostname="known-as")], now=people.NOW)
    waiting(store)
    viewer, operator = Program(console, Role.VIEWER), Program(console, Role.OPERATOR)
    [row] = viewer.every("/enrollments")
    assert (row["hostname"], row["knownHostname"], row["asked"]) == ("claims-to-be", "known-as", 3)
    assert viewer.post(f"/enrollments/d1/{verb}").status_code == 403
    assert operator.post(f"/enrollments/d1/{verb}", install="another").status_code == 404
    assert operator.post(f"/enrollments/d1/{verb}", install="i-new").status_code == 204
    assert viewer.every("/enrollments") == []
    assert operator.post(f"/enrollments/d2/{verb}").status_code == 404
    with store.read() as c:
        assert c.scalar(ENROLLMENTS.select().with_only_columns(ENROLLMENTS.c.state)) == state
    [line] = Program(console).every("/audit", action=f"device.{verb}")
    assert (line["target"], line["actor"], line["actorKind"]) == ("d1", "a program", "api-token")


def test_tokens_are_listed_without_what_they_are_and_revoked(store):
    console = people.make_console(store)
    with store.write() as c:
        secret = tokens.issue_device(c, device="d1", install_id="i1", now=people.NOW, days=9, by="t")
    operator, admin = Program(console, Role.OPERATOR), Program(console)
    answer = operator.get("/tokens", kind="device")
    assert secret not in answer.text
    assert tokens.digest(secret) not in answer.text
    [row] = answer.json()["rows"]
    assert (row["device"], row["kind"], row["revoked"]) == ("d1", "device", None)
    number = {one["role"]: one["id"] for one in operator.every("/tokens", kind="api")}["admin"]
    assert operator.post(f"/tokens/{number}/revoke").status_code == 403
    assert operator.post(f"/tokens/{row['id']}/revoke").status_code == 204
    assert operator.post(f"/tokens/{row['id']}/revoke").status_code == 409
    assert operator.post("/tokens/123456/revoke").status_code == 404
    assert MOMENT.fullmatch(operator.get("/tokens", device="d1").json()["rows"][0]["revoked"])
    [line] = admin.every("/audit", action="token.revoke")
    assert (line["target"], json.loads(line["detail"])) == ("d1", {"token": row["id"], "kind": "device"})
    assert admin.post(f"/tokens/{number}/revoke").status_code == 204
    assert admin.get("/devices").status_code == 401


def test_times_stay_in_the_calendar():
    assert wire.moment(0) == "1970-01-01T00:00:00Z"
    assert wire.moment(2**53) == "9999-12-31T23:59:59Z"
    assert wire.moment(-5) == "1970-01-01T00:00:00Z"
    assert wire.day(20_000) == "2024-10-04"
