# SPDX-License-Identifier: Apache-2.0
"""POST /api/v1/enroll: every rule of docs/report-api.md, on both engines."""

import re

import pytest

from halod.console.ingest import enroll
from halod.console.security import tokens
from halod.console.settings import Limits
from halod.console.store.schema import AUDIT, DEVICES, ENROLL_KEYS, ENROLLMENTS, TOKENS
from tests.console.support_ingest import (
    ENROLL,
    NOW,
    ROOMY,
    Clock,
    client_of,
    device_token,
    document,
    enroll_key,
    heard_at,
    make_console,
    one,
    post,
    rows,
    token_rows,
)
from tests.support.state import finding

DEVICE = "a" * 64
INSTALL = "0" * 32
OTHER = "1" * 32


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def client(store, clock):
    with client_of(make_console(store, clock)) as made:
        yield made


@pytest.fixture
def key(store):
    return enroll_key(store)


def asking(device=DEVICE, install=INSTALL, old="", **more):
    asked = {
        "device": device,
        "installId": install,
        "hostname": "mbp-417",
        "os": "macos",
        "halod": "0.1.0",
        **more,
    }
    return {**asked, "oldToken": old} if old else asked


def ask(client, key, *arguments, **options):
    return post(client, key, asking(*arguments, **options), ENROLL)


def granted(answer):
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()["token"]


def decide(store, decision, device=DEVICE, **options):
    with store.write() as c:
        return decision(c, device, by="olga", now=NOW, **options)


def test_a_new_device_gets_a_token(client, store, key):
    """At once; it reports for this device and no other, and the address is in the audit log."""
    answer = ask(client, key)
    token = granted(answer)
    assert re.fullmatch(r"hld_[A-Za-z0-9_-]{43}", token)
    assert re.fullmatch(r"2027-\d\d-\d\dT\d\d:\d\d:\d\dZ", answer.json()["expires"])
    assert post(client, token, document(finding("notes"), device=DEVICE)).status_code == 204
    assert post(client, token, document(device="b" * 64)).status_code == 403
    assert one(store, ENROLL_KEYS)["uses"] == 1
    line = one(store, AUDIT)
    assert (line["action"], line["actor"], line["target"], line["address"]) == (
        "device.enroll",
        "fleet",
        DEVICE,
        "127.0.0.1",
    )
    assert token not in str(rows(store, TOKENS)) + str(line)


def test_an_enrolled_device_is_seen_before_it_reports(client, store):
    """With its claims, and what its key says of ring and units."""
    key = enroll_key(store, ring="ring1", units=("payments", "engineering"))
    granted(ask(client, key))
    device = one(store, DEVICES)
    assert (device["hostname"], device["os"], device["install_id"], device["content"]) == (
        "mbp-417",
        "macos",
        INSTALL,
        "",
    )
    assert (device["assigned_ring"], device["assigned_units"]) == ("ring1", '["engineering","payments"]')
    assert heard_at(store, DEVICE) == NOW


def test_a_known_device_without_proof_waits(client, store, key):
    """Until an operator accepts it: once, and its earlier token ends with the new one."""
    first = granted(ask(client, key))
    answer = ask(client, key)
    assert (answer.status_code, answer.content) == (202, b"")
    assert 60 <= int(answer.headers["retry-after"]) <= 3600
    assert post(client, first, document(device=DEVICE)).status_code == 204
    row = one(store, ENROLLMENTS)
    assert (row["state"], row["asked"], row["address"], row["install_id"]) == (
        "waiting",
        1,
        "127.0.0.1",
        INSTALL,
    )
    ask(client, key)
    assert one(store, ENROLLMENTS)["asked"] == 2
    assert decide(store, enroll.accept) is True
    second = granted(ask(client, key))
    assert post(client, first, document(device=DEVICE)).status_code == 401
    assert post(client, second, document(device=DEVICE)).status_code == 204
    assert ask(client, key).status_code == 202
    assert [row["action"] for row in rows(store, AUDIT)] == [
        "device.enroll", "device.wait", "device.accept", "device.enroll", "device.wait",
    ]  # fmt: skip


def test_a_machine_that_was_installed_anew_waits(client, store, key):
    """The old token with another install id is no proof."""
    first = granted(ask(client, key))
    assert ask(client, key, install=OTHER, old=first).status_code == 202
    decide(store, enroll.accept)
    second = granted(ask(client, key, install=OTHER))
    assert granted(ask(client, key, install=OTHER, old=second))


@pytest.mark.parametrize("age", [0, 400 * 86_400])
def test_the_last_token_proves(client, store, key, clock, age):
    """Valid or expired, with the same install id; the key is not used up by it."""
    first = granted(ask(client, key))
    post(client, first, document(device=DEVICE))
    clock.go(age)
    if age:
        assert post(client, first, document(device=DEVICE)).status_code == 401
        key = enroll_key(store, now=clock.now())
    uses = sum(row["uses"] for row in rows(store, ENROLL_KEYS))
    second = granted(ask(client, key, old=first))
    assert sum(row["uses"] for row in rows(store, ENROLL_KEYS)) == uses
    assert post(client, first, document(device=DEVICE)).status_code == 401
    assert post(client, second, document(device=DEVICE)).status_code == 204
    # Now it is the second that proves, not the first.
    assert ask(client, key, old=first).status_code == 202
    assert granted(ask(client, key, old=second))


def test_a_lost_answer_does_not_lock_a_device_out(client, key):
    """The token before proves until the one after it is used: its answer never arrived."""
    first = granted(ask(client, key))
    post(client, first, document(device=DEVICE))
    lost = granted(ask(client, key, old=first))
    again = granted(ask(client, key, old=first))
    assert post(client, lost, document(device=DEVICE)).status_code == 401
    assert post(client, again, document(device=DEVICE)).status_code == 204
    assert ask(client, key, old=first).status_code == 202


def test_a_revoked_token_proves_nothing(client, store, key, clock):
    """Nor does one before it."""
    first = granted(ask(client, key))
    second = granted(ask(client, key, old=first))
    with store.write() as c:
        number = max(row["id"] for row in token_rows(store, DEVICE))
        assert tokens.revoke(c, number, clock.now())
    for old in (first, second):
        assert ask(client, key, old=old).status_code == 202


def test_proofs_of_others(client, store, key):
    """Another device's token, the key itself and rubbish are no proof."""
    granted(ask(client, key))
    other = granted(ask(client, key, "b" * 64))
    for old in (other, key, "x", "hld_" + "A" * 43, "\u0000"):
        assert ask(client, key, old=old).status_code == 202


def test_a_refused_machine(client, store, key):
    """409 for the install id that was refused; the operator may change their mind."""
    granted(ask(client, key))
    assert ask(client, key, install=OTHER).status_code == 202
    assert decide(store, enroll.refuse) is True
    assert ask(client, key, install=OTHER).status_code == 409
    assert decide(store, enroll.accept) is True
    granted(ask(client, key, install=OTHER))


def test_refusing_an_impostor_does_not_concern_the_machine(client, store, key):
    """Who proves to be the device renews its token whatever others asked for, and another install id may still ask."""
    first = granted(ask(client, key))
    ask(client, key, install=OTHER)
    decide(store, enroll.refuse)
    second = granted(ask(client, key, old=first))
    assert post(client, second, document(device=DEVICE)).status_code == 204
    assert rows(store, ENROLLMENTS) == []
    ask(client, key, install=OTHER)
    decide(store, enroll.refuse)
    assert ask(client, key).status_code == 202
    assert one(store, ENROLLMENTS)["install_id"] == INSTALL


def test_two_machines_with_one_name(client, store, key):
    """The first that waits holds the place, the other is counted and noted once; an acceptance is the first one's."""
    granted(ask(client, key))
    ask(client, key, install=OTHER)
    for _ in range(2):
        assert ask(client, key, install="2" * 32).status_code == 202
    row = one(store, ENROLLMENTS)
    assert (row["install_id"], row["others"]) == (OTHER, 2)
    assert [row["action"] for row in rows(store, AUDIT)].count("device.conflict") == 1
    # The operator's page is an old one: it shows an install id that does not wait.
    assert decide(store, enroll.accept, install_id="2" * 32) is False
    assert decide(store, enroll.accept, install_id=OTHER) is True
    assert ask(client, key, install="2" * 32).status_code == 202
    granted(ask(client, key, install=OTHER))


def test_nobody_waits(store):
    assert decide(store, enroll.accept) is False
    assert decide(store, enroll.refuse) is False


def test_a_device_that_reports_with_a_placed_token_is_known(client, store, key):
    """So nobody enrols in its place."""
    token = device_token(store, DEVICE)
    assert ask(client, key).status_code == 202
    post(client, token, document(device=DEVICE))
    assert ask(client, key).status_code == 202


# --- keys --------------------------------------------------------------------------------------------------


def test_keys_that_are_not_valid(client, store, clock):
    """Unknown, another kind of secret, expired, revoked: 401, before anything is said about the body."""
    revoked, short = enroll_key(store), enroll_key(store, days=1)
    with store.write() as c:
        assert tokens.revoke_enroll_key(c, 1, NOW)
        assert not tokens.revoke_enroll_key(c, 1, NOW)
    clock.go(86_400)
    for given in ("", "hle_" + "A" * 43, revoked, short, device_token(store)):
        for body in (asking(), b"{", {}):
            answer = post(client, given, body, ENROLL)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer" + (
                ' error="invalid_token"' if given else ""
            )
    assert rows(store, DEVICES) == []


def test_a_key_is_used_up(client, store):
    """403 for the next new device; one that has its token renews it, and pending ones do not count."""
    key = enroll_key(store, max_uses=2)
    first = granted(ask(client, key, "a"))
    granted(ask(client, key, "b"))
    assert ask(client, key, "c").status_code == 403
    assert ask(client, key, "b").status_code == 202
    assert granted(ask(client, key, "a", old=first))
    assert one(store, ENROLL_KEYS)["uses"] == 2


def test_a_key_is_counted_when_many_come_at_once(client, store):
    """Twelve at the same time and five uses: five tokens."""
    key = enroll_key(store, max_uses=5)
    answers = client.together(
        ("POST", ENROLL, {"json": asking(f"d{n}"), "headers": {"Authorization": f"Bearer {key}"}})
        for n in range(12)
    )
    assert sorted(answer.status_code for answer in answers) == [201] * 5 + [403] * 7
    assert one(store, ENROLL_KEYS)["uses"] == 5
    assert len(rows(store, DEVICES)) == 5


def test_first_come(client, store, key):
    """Several machines with one name at the same time: one gets the token, the others wait."""
    answers = client.together(
        ("POST", ENROLL, {"json": asking(install=f"{n:032}"), "headers": {"Authorization": f"Bearer {key}"}})
        for n in range(6)
    )
    assert sorted(answer.status_code for answer in answers) == [201] + [202] * 5
    assert len(token_rows(store, DEVICE)) == 1


def test_keys_are_not_guessed_fast(store, clock):
    """After some that are not valid the address waits."""
    limits = Limits(refused_per_minute=3, requests_per_minute=1000)
    key = enroll_key(store)
    with client_of(make_console(store, clock, limits=limits)) as client:
        answers = [ask(client, f"hle_{n:043}").status_code for n in range(5)]
        assert answers == [401, 401, 401, 429, 429]
        assert ask(client, key).status_code == 429
        clock.go(21)
        granted(ask(client, key))


# --- bodies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"[" * 10_000, 400),
        ({}, 422),
        *((asking(**{name: value}), 422) for name in ("hostname", "os", "halod") for value in ("", 1, None)),
        (asking(device=""), 422),
        (asking(device="../x"), 422),
        (asking(device="a b"), 422),
        (asking(install=""), 422),
        (asking(install="a b"), 422),
        (asking(install="x" * 300), 422),
        (asking(oldToken=7), 422),
        (b"{" + b" " * 16_384 + b"}", 413),
    ],
)
def test_bodies_that_are_no_request(client, store, key, body, status):
    """400, 413 or 422 without a piece of what was sent; nothing is used up."""
    answer = post(client, key, body, ENROLL)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert one(store, ENROLL_KEYS)["uses"] == 0
    assert rows(store, DEVICES) == []


def test_kinds_of_body(client, key):
    for headers in ({"Content-Type": "text/plain"}, {"Content-Encoding": "gzip"}):
        assert post(client, key, asking(), ENROLL, **headers).status_code == 415


def test_claims_are_cleaned(client, store, key):
    """What a machine says of itself is text like any other."""
    granted(ask(client, key, hostname="a\u202e\x1b[1mb\u0000" * 20, os="x" * 1000, halod="\u200b\u200b1"))
    device = one(store, DEVICES)
    assert device["hostname"].isprintable()
    assert len(device["os"]) == 64
    assert device["halod"] == "1"


def test_tokens_without_an_end(store):
    """`device_token_days = 0`: nothing is said about an end that there is not."""
    key = enroll_key(store, days=0)
    with client_of(make_console(store, device_token_days=0, limits=ROOMY)) as client:
        answer = ask(client, key)
        granted(answer)
        assert "expires" not in answer.json()
