# SPDX-License-Identifier: Apache-2.0
"""POST /api/v1/fleet/report as docs/report-api.md says, on both engines, through the whole application."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from halod.console.store.schema import DEVICES, FINDINGS, SKIPPED, TRANSITIONS
from halod.status import Approved, Coverage, Skipped
from tests.console.support_ingest import (
    DEVICE,
    ENROLL,
    NOW,
    REPORT,
    ROOMY,
    ROOT,
    Clock,
    check_counts,
    client_of,
    device_token,
    document,
    enroll_key,
    happened,
    heard_at,
    make_console,
    one,
    post,
    rows,
    servers,
    token_rows,
    transition_ids,
)  # fmt: skip
from tests.support.state import finding

CANARY = "CANARY-from-a-request"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def client(store, clock):
    with client_of(make_console(store, clock)) as made:
        yield made


@pytest.fixture
def token(store):
    return device_token(store)


def test_a_report_is_taken(client, store, token):
    """204 without a body; device, findings, counts and the heartbeat are there."""
    answer = post(
        client, token, document(finding("notes"), finding("wiki", kind="denied"), units=("payments",))
    )
    assert (answer.status_code, answer.content) == (204, b"")
    assert servers(store) == ["notes", "wiki"]
    device = one(store)
    assert (device["hostname"], device["findings"], device["units"]) == ("mbp-417", 2, '["payments"]')
    assert heard_at(store) == NOW
    assert token_rows(store)[0]["used"] == NOW
    check_counts(store)


def test_the_next_one_replaces_it(client, store, token, clock):
    """What is not said any more is gone; what stays keeps when it was first seen."""
    post(client, token, document(finding("notes"), finding("wiki")))
    clock.go(60)
    assert post(client, token, document(finding("wiki"), finding("new"))).status_code == 204
    assert {row["server"]: row["first_seen"] for row in rows(store)} == {"wiki": NOW, "new": NOW + 60}
    check_counts(store)


def test_a_report_that_changes_nothing_writes_the_heartbeat(client, store, token, clock):
    """Another time and duration are no change; the device's row stays as it was."""
    post(client, token, document(finding("notes")))
    before = one(store)
    clock.go(900)
    later = document(
        finding("notes"),
        time="2026-11-30T09:30:02Z",
        coverage=Coverage(accounts=1, files=1, definitions=1, duration_ms=7),
    )
    assert post(client, token, later).status_code == 204
    assert one(store) == before
    assert heard_at(store) == NOW + 900


def test_a_repeated_report_adds_its_transitions_once(client, store, token):
    """The answer was lost: the same again changes nothing."""
    sent = document(finding("notes"), transitions=[happened("a-1"), happened("a-2", "changed", was="1" * 64)])
    for _ in range(3):
        assert post(client, token, sent).status_code == 204
    assert transition_ids(store) == ["a-1", "a-2"]
    assert [row["was"] for row in rows(store, TRANSITIONS)] == ["", "1" * 64]
    more = document(finding("notes"), transitions=[happened("a-2"), happened("a-3", "resolved")])
    assert post(client, token, more).status_code == 204
    assert transition_ids(store) == ["a-1", "a-2", "a-3"]
    check_counts(store)


def test_ids_of_transitions_are_a_devices_own(client, store, token):
    """Another device may use the same id."""
    other = device_token(store, "e" * 64)
    post(client, token, document(transitions=[happened("a-1")]))
    post(client, other, document(device="e" * 64, transitions=[happened("a-1")]))
    assert [row["device"] for row in rows(store, TRANSITIONS)] == [DEVICE, "e" * 64]


def test_odd_ids_stay_apart(client, store, token):
    """Ids are compared as text: cleaning must not make two of them one."""
    ids = ["a 1", "a  1", "a\u200b1", "a1", "x" * 1000, "x" * 999, "\u0000", "sha256:a"]
    assert post(client, token, document(transitions=[happened(tid) for tid in ids])).status_code == 204
    assert len(set(transition_ids(store))) == len(ids)


def test_a_shortened_report_takes_nothing_away(client, store, token):
    """What is missing from it stays known: findings, skipped rows, approved entries."""
    skipped = Skipped(user="dev", harness="cursor", file="~/.cursor/mcp.json", reason="symlink")
    whole = document(
        finding("notes"),
        finding("wiki"),
        skipped=(skipped,),
        mcp_approved=(Approved(harness="codex", id="wiki", user="dev", count=1),),
    )
    post(client, token, whole)
    cut = document(finding("new"), truncated=True, mcp_drift_total=300)
    assert post(client, token, cut).status_code == 204
    assert servers(store) == ["new", "notes", "wiki"]
    assert len(rows(store, SKIPPED)) == 1
    device = one(store)
    assert (device["truncated"], device["drift_total"], device["findings"], device["partly"]) == (
        True,
        300,
        3,
        True,
    )
    check_counts(store)
    post(client, token, document(finding("new")))
    assert servers(store) == ["new"]
    assert rows(store, SKIPPED) == []
    check_counts(store)


def test_a_stale_finding_stays(client, store, token, clock):
    """It is listed with its mark, and is as old as it was."""
    post(client, token, document(finding("notes")))
    clock.go(60)
    post(client, token, document(finding("notes", stale=True)))
    (row,) = rows(store)
    assert (row["stale"], row["first_seen"]) == (True, NOW)


@pytest.mark.parametrize(
    ("fields", "partly"),
    [
        ({}, False),
        ({"skipped": (Skipped(user="dev", reason="no-account"),)}, True),
        ({"error_code": "policy"}, True),
        ({"coverage": Coverage(accounts=0, files=0, definitions=0, duration_ms=0)}, True),
    ],
)
def test_nothing_found_is_not_clean(client, store, token, fields, partly):
    """What was not read, what went wrong and that nobody was looked at are told."""
    post(client, token, document(**fields))
    assert one(store)["partly"] is partly


# --- answers -----------------------------------------------------------------------------------------------


def without(name):
    made = document(finding("notes"))
    del made[name]
    return made


REFUSED = [
    (b"{", 400),
    (b"", 400),
    (b"[]", 400),
    (b"7", 400),
    (b"\xff\xfe", 400),
    (b"[" * 60_000, 400),
    (b'{"later": ' + b"[" * 60_000, 400),
    (b'{"device": "\\ud800"}', 400),
    *((without(name), 422) for name in ("time", "hostname", "user", "ring", "digest", "mcpDrift")),
    *(
        ({**document(), **change}, 422)
        for change in (
            {"schemaVersion": 2},
            {"schemaVersion": "1"},
            {"device": 1},
            {"device": "a/b"},
            {"device": ".."},
            {"device": "x" * 129},
            {"device": "a\u202eb"},
            {"units": "payments"},
            {"mcpDrift": [{}]},
            {"mcpDrift": None},
            {"mcpDriftTotal": True},
            {"mcpDriftTotal": -1},
            {"mcpDriftTotal": 10**30},
            {"transitions": [{}]},
            {"transitions": [{"id": "", "time": "", "event": "opened", "finding": {}}]},
            {
                "transitions": [
                    {"id": "a", "event": "opened", "finding": document(finding("n"))["mcpDrift"][0]}
                ]
                * 65
            },
            {"coverage": None},
            {"hostname": "x" * 1025},
        )
    ),
]


@pytest.mark.parametrize(("sent", "status"), REFUSED)
def test_what_is_no_status_is_refused(client, store, token, sent, status):
    """400 or 422 as a problem document that says nothing of what was sent, and nothing is kept."""
    answer = post(client, token, sent)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert rows(store, DEVICES) == rows(store, FINDINGS) == []


def test_bodies_of_other_kinds(client, token):
    """Only application/json, only as it is."""
    good = document()
    for headers in (
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json-patch+json"},
        {"Content-Encoding": "gzip"},
        {"Content-Encoding": "br, gzip"},
    ):
        assert post(client, token, good, **headers).status_code == 415
    for headers in ({"Content-Type": "Application/JSON; charset=utf-8"}, {"Content-Encoding": "identity"}):
        assert post(client, token, good, **headers).status_code == 204


def test_size(client, token):
    """64 KiB are taken, a byte more is not, announced or not."""
    good = json.dumps(document()).encode()
    assert post(client, token, good + b" " * (65_536 - len(good))).status_code == 204
    assert post(client, token, good + b" " * (65_537 - len(good))).status_code == 413

    async def pieces():
        for _ in range(70):
            yield b" " * 1000

    head = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    assert client.post(REPORT, content=pieces(), headers=head).status_code == 413


@pytest.mark.parametrize(
    "given", ["", "hld_" + "A" * 43, "hla_" + "A" * 43, "short", "hld_" + "A" * 4000, "hld_" + "\u00e9" * 43]
)
def test_without_a_token(client, store, given):
    """401 with the challenge of RFC 6750, whatever the body is."""
    for body in (document(), b"{", {"schemaVersion": 2}):
        answer = client.post(
            REPORT,
            content=body if isinstance(body, bytes) else json.dumps(body),
            headers={"Content-Type": "application/json"}
            | ({"Authorization": f"Bearer {given}".encode()} if given else {}),
        )
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == ("Bearer" + (' error="invalid_token"' if given else ""))
        assert answer.content == b""
    assert rows(store, DEVICES) == []


def test_a_token_that_has_ended(client, store, clock):
    """Expired, superseded, revoked: none of them reports."""
    from halod.console.security import tokens

    old = device_token(store)
    new = device_token(store, days=1)
    assert post(client, old, document()).status_code == 401
    assert post(client, new, document()).status_code == 204
    clock.go(86_400)
    assert post(client, new, document()).status_code == 401
    third = device_token(store, now=clock.now())
    with store.write() as c:
        assert tokens.revoke_device(c, DEVICE, clock.now()) == 3
    assert post(client, third, document()).status_code == 401


def test_a_token_is_bound_to_its_device(client, store, token):
    """403 for another device's status, and nothing of it is kept."""
    answer = post(client, token, document(finding("notes"), device="e" * 64))
    assert answer.status_code == 403
    assert rows(store, DEVICES) == []


def test_an_enrolment_key_does_not_report(client, store):
    assert post(client, enroll_key(store), document()).status_code == 401


def test_other_methods(client):
    """405 with what is allowed."""
    answer = client.get(REPORT)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_nothing_is_said_back(client, store, token):
    """No answer holds a piece of what was sent."""
    hostile = {**document(), "hostname": CANARY * 100, "schemaVersion": CANARY, CANARY: CANARY}
    for sent in (hostile, b'{"' + CANARY.encode() + b'": ', {**document(), "device": CANARY}):
        answer = post(client, token, sent, **{"X-Other": CANARY})
        assert answer.status_code in (400, 403, 422)
        assert CANARY not in answer.text
        assert CANARY not in str(answer.headers)


def test_reports_of_one_token_are_limited(store, clock):
    """A burst, then 429 with when to come again; another device is not concerned."""
    from halod.console.settings import Limits

    limits = Limits(reports_per_minute=3, refused_per_minute=1000, requests_per_minute=1000)
    first, second = device_token(store), device_token(store, "e" * 64)
    with client_of(make_console(store, clock, limits=limits)) as client:
        assert [post(client, first, document()).status_code for _ in range(4)] == [204, 204, 204, 429]
        answer = post(client, first, document())
        assert 1 <= int(answer.headers["retry-after"]) <= 20
        assert post(client, second, document(device="e" * 64)).status_code == 204
        clock.go(20)
        assert [post(client, first, document()).status_code for _ in range(2)] == [204, 429]


def test_tokens_are_not_guessed_fast(store, clock):
    """After some that are not valid the address is refused unseen, a valid one that is new here included, until it has waited."""
    from halod.console.settings import Limits

    limits = Limits(reports_per_minute=100, refused_per_minute=3, requests_per_minute=1000)
    token = device_token(store)
    with client_of(make_console(store, clock, limits=limits)) as client:
        answers = [post(client, f"hld_{n:043}", document()).status_code for n in range(5)]
        assert answers == [401, 401, 401, 429, 429]
        assert post(client, token, document()).status_code == 429
        clock.go(21)
        assert post(client, token, document()).status_code == 204


def test_distinct_servers_are_limited(store, clock):
    """More than the limit in 30 days: 429 with the longest wait that an agent believes, and the device shows it."""
    limits = ROOMY.__class__(
        reports_per_minute=10**6, requests_per_minute=10**6, refused_per_minute=10**6, servers_in_30_days=10
    )
    token = device_token(store)
    with client_of(make_console(store, clock, limits=limits)) as client:

        def say(*names):
            return post(client, token, document(*(finding(name) for name in names)))

        assert say(*(f"a{n}" for n in range(6))).status_code == 204
        assert say(*(f"b{n}" for n in range(4))).status_code == 204
        answer = say("b0", "c0")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "3600")
        assert one(store)["limited"] is True
        assert servers(store) == ["b0", "b1", "b2", "b3"]
        # What it has had is no new server.
        assert say("b0", "a0").status_code == 204
        assert one(store)["limited"] is False
        assert say("c0").status_code == 429
        assert say("b0", "a0").status_code == 204  # the content of the last one that was taken
        assert one(store)["limited"] is False
        clock.go(31 * 86_400)
        assert say("c0", "c1").status_code == 204
        # Those that were known until now were seen until now.
        assert say(*(f"d{n}" for n in range(6))).status_code == 204
        assert say(*(f"e{n}" for n in range(2))).status_code == 429
    check_counts(store)


def test_too_many_servers_at_once(store, clock):
    """A device that is not known yet is shown as limited, too."""
    limits = ROOMY.__class__(
        reports_per_minute=10**6, requests_per_minute=10**6, refused_per_minute=10**6, servers_in_30_days=3
    )
    token = device_token(store)
    with client_of(make_console(store, clock, limits=limits)) as client:
        answer = post(client, token, document(*(finding(f"s{n}") for n in range(4))))
        assert answer.status_code == 429
        device = one(store)
        assert (device["limited"], device["findings"], device["hostname"]) == (True, 0, "mbp-417")
        # What transitions name counts as well.
        sent = [happened(f"t{n}", row=finding(f"t{n}")) for n in range(4)]
        assert post(client, token, document(transitions=sent)).status_code == 429
        assert transition_ids(store) == []


# --- earlier and later agents ------------------------------------------------------------------------------


def test_an_old_halos_report(client, store, token):
    """Without device it is the device of its token; what it does not say has its default."""
    old = {
        "time": "2026-11-30T09:15:02Z",
        "hostname": "mbp-417",
        "user": "dev",
        "ring": "ring1",
        "digest": "sha256:" + "a" * 64,
        "mcpDrift": [
            {"harness": "cursor", "file": "~/.cursor/mcp.json", "server": "notes", "kind": "unapproved",
             "detail": "d", "fix": "f"},
        ],
        "lastError": "",
        "errorCode": "",
    }  # fmt: skip
    assert post(client, token, old).status_code == 204
    device = one(store)
    assert (device["device"], device["findings"], device["drift_total"], device["partly"]) == (
        DEVICE,
        1,
        1,
        False,
    )
    assert servers(store) == ["notes"]
    check_counts(store)


def test_a_later_agent(client, store, token):
    """Fields that are not known are dropped, words that are not known are kept as text."""
    later = document(finding("notes"), transitions=[happened("a-1")])
    later["later"] = later["mcpDrift"][0]["later"] = {"a": [1, {"b": None}]}
    later["mode"] = "enforce"
    later["coverage"]["notCovered"].append("browser-extensions")
    later["mcpDrift"][0] |= {
        "kind": "quarantined",
        "transport": "pipe",
        "scope": "workspace",
        "harness": "new-tool",
    }
    later["transitions"][0]["event"] = "muted"
    later["skipped"] = [{"user": "dev", "reason": "encrypted"}]
    assert post(client, token, later).status_code == 204
    (row,) = rows(store)
    assert (row["kind"], row["transport"], row["scope"], row["harness"]) == (
        "quarantined", "pipe", "workspace", "new-tool",
    )  # fmt: skip
    assert "browser-extensions" in one(store)["not_covered"]
    assert [row["event"] for row in rows(store, TRANSITIONS)] == ["muted"]
    assert [row["reason"] for row in rows(store, SKIPPED)] == ["encrypted"]
    check_counts(store)


def test_hostile_strings_are_made_harmless(client, store, token):
    """Control, bidi and format characters are gone, names are short, hosts and hashes are ones; secrets are hashed."""
    nasty = "a\u202e\u0000\x1b[31mb\u200b\n" * 30
    row = document(finding("notes"))["mcpDrift"][0]
    sent = document()
    sent["mcpDrift"] = [
        {**row, "server": nasty, "file": nasty, "user": nasty, "detail": nasty, "fix": nasty, "host": nasty,
         "definitionSha256": "CANARY"},
        {**row, "server": "ghp_0123456789abcdefghijABCDEFGHIJ012345"},
        {**row, "server": "https://user:CANARY@host/"},
    ]  # fmt: skip
    sent |= {"hostname": nasty, "ring": nasty, "units": [nasty, "", "b"], "digest": nasty, "lastError": nasty}
    assert post(client, token, sent).status_code == 204
    found = [*rows(store), one(store)]
    for text in (value for row in found for value in row.values() if isinstance(value, str)):
        assert text.isprintable(), text
        assert "CANARY" not in text
        assert "ghp_" not in text
        assert len(text) <= 1024
    assert {row["host"] for row in rows(store)} == {""}
    check_counts(store)


# --- the contract on paper ---------------------------------------------------------------------------------


def test_every_answer_is_described(client, store, clock):
    """Status, headers and bodies are those of docs/openapi.yaml, for reports and enrolment."""
    spec = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())
    token, key = device_token(store, "a"), enroll_key(store, max_uses=2)
    asked = {"device": "n1", "installId": "0" * 32, "hostname": "mbp-417", "os": "linux", "halod": "0.1.0"}
    sent = [
        (REPORT, token, document(device="a"), {}),
        (REPORT, token, document(device="b"), {}),
        (REPORT, token, b"{", {}),
        (REPORT, token, {**document(device="a"), "schemaVersion": 2}, {}),
        (REPORT, "", document(), {}),
        (REPORT, token, b" " * 65_537, {}),
        (REPORT, token, document(), {"Content-Type": "text/plain"}),
        (ENROLL, key, asked, {}),
        (ENROLL, key, asked, {}),
        (ENROLL, key, {**asked, "device": "n2"}, {}),
        (ENROLL, key, {**asked, "device": "n3"}, {}),
        (ENROLL, token, asked, {}),
        (ENROLL, key, b"{", {}),
        (ENROLL, key, b" " * 65_537, {}),
        (ENROLL, key, {**asked, "device": ""}, {}),
        (ENROLL, key, asked, {"Content-Type": "text/plain"}),
    ]
    seen = set()
    for path, bearer, body, headers in sent:
        answer = post(client, bearer, body, path, **headers)
        seen.add((path, answer.status_code))
        described(spec, path, answer)
    assert {(REPORT, code) for code in (204, 400, 401, 403, 413, 415, 422)} <= seen
    assert {(ENROLL, code) for code in (201, 202, 400, 401, 403, 413, 415, 422)} <= seen


def described(spec, path, answer):
    told = resolve(spec, spec["paths"][path]["post"]["responses"][str(answer.status_code)])
    ours = {"www-authenticate", "retry-after"} & set(answer.headers)
    assert ours <= {name.lower() for name in told.get("headers", {})}
    if answer.content and answer.headers["content-type"] in told.get("content", {}):
        schema = resolve(spec, told["content"][answer.headers["content-type"]]["schema"])
        Draft202012Validator({**spec, **schema}).validate(answer.json())
    elif answer.status_code != 401:
        assert not answer.content


def resolve(spec, thing):
    while "$ref" in thing:
        part = spec
        for name in thing["$ref"].removeprefix("#/").split("/"):
            part = part[name]
        thing = part
    return thing
