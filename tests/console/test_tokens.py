# SPDX-License-Identifier: Apache-2.0
"""Tokens and enrolment keys in the store: found only while they are valid, never readable."""

import pytest

from halod.console.access import Role
from halod.console.security import tokens
from halod.console.store.schema import ENROLL_KEYS, TOKENS
from tests.console.support_ingest import NOW, device_token, rows

DAY = 86_400


def test_secrets():
    """256 random bits behind a prefix, kept as their sha256."""
    made = {tokens.new("hla_") for _ in range(100)}
    assert len(made) == 100
    assert all(len(one) == 47 and tokens.is_form(one, "hla_") for one in made)
    assert not any(tokens.is_form(one, "hld_") for one in made)
    assert tokens.digest("a") == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert len(tokens.digest("\ud800")) == 64


@pytest.mark.parametrize(
    "text", ["", "hld_", "hld_" + "A" * 42, "hld_" + "A" * 44, "HLD_" + "A" * 43, "hld_" + "\n" * 43]
)
def test_what_is_no_secret_is_not_looked_up(text):
    assert not tokens.is_form(text, "hld_")


@pytest.mark.parametrize(
    ("value", "token"),
    [
        (None, ""),
        ("", ""),
        ("Bearer", ""),
        ("Bearer x", "x"),
        ("bearer  x ", "x"),
        ("BEARER x y", "x y"),
        ("Basic x", ""),
        ("x", ""),
    ],
)
def test_bearer(value, token):
    assert tokens.bearer(value) == token


def test_api_tokens(store):
    """Valid until they expire or are revoked; with the role that they were made with."""
    with store.write() as c:
        viewer = tokens.issue_api(c, name="siem", role=Role.VIEWER, now=NOW, days=1, by="ada")
        forever = tokens.issue_api(c, name="bot", role=Role.ADMIN, now=NOW, days=0, by="ada")
    device = device_token(store)
    with store.read() as c:
        found = tokens.find_api(c, viewer, NOW)
        assert (found.kind, found.name, found.role) == ("api-token", "siem", Role.VIEWER)
        assert tokens.find_api(c, viewer, NOW + DAY) is None
        assert tokens.find_api(c, forever, NOW + 10_000 * DAY).role is Role.ADMIN
        for other in (device, "", "hla_" + "A" * 43):
            assert tokens.find_api(c, other, NOW) is None
        assert list(tokens.find_devices(c, [tokens.digest(viewer), tokens.digest(device)], NOW)) == [
            tokens.digest(device)
        ]
    with store.write() as c:
        assert tokens.revoke(c, 1, NOW) is True
        assert tokens.revoke(c, 1, NOW) is False
        assert tokens.revoke(c, 99, NOW) is False
    with store.read() as c:
        assert tokens.find_api(c, viewer, NOW) is None
    kept = str(rows(store, TOKENS))
    assert not any(secret in kept for secret in (viewer, forever, device))


def test_a_role_that_is_not_known_is_no_role(store):
    """A row that a later release wrote opens nothing here."""
    with store.write() as c:
        text = tokens.issue_api(c, name="x", role=Role.VIEWER, now=NOW, days=1, by="ada")
        c.execute(TOKENS.update().values(role="owner"))
    with store.read() as c:
        assert tokens.find_api(c, text, NOW) is None


def test_use_is_noted_by_the_day(store):
    """One small write a day."""
    device_token(store)
    for now, noted in ((NOW, NOW), (NOW + DAY - 1, NOW), (NOW + DAY, NOW + DAY)):
        (row,) = rows(store, TOKENS)
        with store.write() as c:
            tokens.use(c, [(row["id"], row["used"])], now)
        assert rows(store, TOKENS)[0]["used"] == noted


def test_lists(store):
    """The newest first, page by page, without hashes."""
    with store.write() as c:
        for n in range(5):
            tokens.issue_api(c, name=f"t{n}", role=Role.VIEWER, now=NOW, days=1, by="ada")
            tokens.new_enroll_key(c, name=f"k{n}", units=("b", "a", "b"), now=NOW, days=1, by="ada")
    device_token(store, "d1")
    with store.read() as c:
        first = tokens.list_tokens(c, kind="api", limit=3)
        second = tokens.list_tokens(c, kind="api", limit=3, after=first[-1].id)
        assert [one.name for one in (*first, *second)] == ["t4", "t3", "t2", "t1", "t0"]
        assert [one.device for one in tokens.list_tokens(c, device="d1")] == ["d1"]
        assert len(tokens.list_tokens(c)) == 6
        keys = tokens.list_enroll_keys(c, limit=3)
        keys += tokens.list_enroll_keys(c, after=keys[-1].id)
        assert [one.name for one in keys] == ["k4", "k3", "k2", "k1", "k0"]
        assert keys[0].units == ("a", "b")


def test_enrolment_keys(store):
    """Valid until they expire, are revoked or used up."""
    with store.write() as c:
        text = tokens.new_enroll_key(c, name="k", now=NOW, days=1, max_uses=1, by="ada")
        key = tokens.find_enroll_key(c, text, NOW)
        assert tokens.find_enroll_key(c, text, NOW + DAY) is None
        assert tokens.use_enroll_key(c, key.id, NOW + DAY) is False
        assert tokens.use_enroll_key(c, key.id, NOW) is True
        assert tokens.use_enroll_key(c, key.id, NOW) is False
        assert tokens.find_enroll_key(c, text, NOW).uses == 1
        assert tokens.revoke_enroll_key(c, key.id, NOW)
        assert tokens.find_enroll_key(c, text, NOW) is None
    assert text not in str(rows(store, ENROLL_KEYS))
