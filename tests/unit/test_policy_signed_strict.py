# SPDX-License-Identifier: Apache-2.0
"""Envelopes and signed contents that two readers could understand differently: each is one refusal in our words."""

import base64
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.policy import signed
from halod.policy.signed import Refused, Seen, countersign, key_id, read_payload, verify
from tests.support.signing import BEGAN, KEY, NEW_KEY, STRANGER, envelope, payload, public

GOOD = envelope()
GARBAGE = base64.b64encode(b"x" * 64).decode()


def taken(data, *keys):
    return verify(data, public(*(keys or [KEY])), org="acme", seen=Seen(), now=BEGAN.timestamp())


def malformed(data):
    """The words with which an envelope is refused."""
    for call in (taken, read_payload, lambda one: countersign(one, [NEW_KEY])):
        with pytest.raises(Refused) as caught:
            call(data)
        assert caught.value.code == "policy-malformed"
        assert caught.value.__cause__ is None
        assert "CANARY" not in caught.value.message
        assert "\n" not in caught.value.message
    return caught.value.message


def changed(**fields):
    return json.dumps({**json.loads(GOOD), **fields}).encode()


def with_signature(**fields):
    document = json.loads(GOOD)
    document["signatures"][0].update(fields)
    return json.dumps(document).encode()


def signing(content):
    """An envelope over any content, by a pinned key."""
    return signed._sealed(content, [], [KEY])


@pytest.mark.parametrize("keyid", [None, "", "CANARY", key_id(public(STRANGER)[0])])
def test_a_keyid_is_a_hint_that_may_be_missing(keyid):
    """DSSE: an unset field is an empty one, and nobody has signed it."""
    document = json.loads(with_signature(keyid=keyid))
    assert taken(json.dumps(document).encode()) == taken(GOOD)
    del document["signatures"][0]["keyid"]
    assert taken(json.dumps(document).encode()) == taken(GOOD)
    again = countersign(with_signature(keyid=keyid), [NEW_KEY])
    assert taken(again, NEW_KEY).version == 7
    assert all(isinstance(one["keyid"], str) for one in json.loads(again)["signatures"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (with_signature(sig=None), "signatures[0].sig"),
        (with_signature(sig=5), "signatures[0].sig"),
        (with_signature(sig=[]), "signatures[0].sig"),
        (with_signature(keyid=5), "signatures[0].keyid"),
        (with_signature(keyid={}), "signatures[0].keyid"),
        (changed(signatures=None), "in signatures than"),
        (changed(signatures={}), "in signatures than"),
        (changed(signatures="CANARY"), "in signatures than"),
        (changed(signatures=[None]), "in signatures[0] than"),
        (changed(signatures=[["CANARY"]]), "in signatures[0] than"),
        (changed(signatures=[{}]), "has no sig"),
        (changed(payload=None), "in payload than"),
        (changed(payload=7), "in payload than"),
        (changed(payloadType=None), "in payloadType than"),
        (changed(payloadType="CANARY"), "holds something else"),
        (b'{"payload": "", "signatures": []}', "has no payloadType"),
        (b'"CANARY"', "is another document"),
        (b"[]", "is another document"),
        (b"1" * 5000, "is another document"),
        (b"", "is not JSON"),
        (b"\xef\xbb\xbf" + GOOD, "is not JSON"),
        (GOOD.decode().encode("utf-16"), "is not UTF-8"),
        (GOOD.rstrip() + GOOD, "is not JSON"),
        (GOOD.replace(b"{", b'{"CANARY": NaN,', 1), "NaN"),
        (GOOD.replace(b"{", b'{"CANARY": -Infinity,', 1), "NaN"),
        (GOOD.replace(b"{", b'{"CANARY": ' + b"[" * 100 + b"]" * 100 + b",", 1), "nested too deep"),
        (GOOD.replace(b"{", b'{"CANARY": ' + b"[" * 90_000 + b"]" * 90_000 + b",", 1), "nested too deep"),
        (GOOD.replace(b"{", b'{"CANARY": 1, "CANARY": 2,', 1), "has a key twice"),
        (GOOD.replace(b"{", b'{"payload": "CANARY",', 1), "has a key twice"),
        (GOOD.replace(b"{", b'{"\\u0070ayload": "CANARY",', 1), "has a key twice"),
        (GOOD.replace(b'{"sig"', b'{"sig": "CANARY", "sig"', 1), "has a key twice"),
        (GOOD.replace(b'"keyid"', b'"keyid": "", "keyid"', 1), "has a key twice"),
        (changed(signatures=json.loads(GOOD)["signatures"] * 17), "more than 16 signatures"),
    ],
)
def test_an_envelope_is_refused_with_what_is_wrong(data, said):
    """For the agent, the person who signs and the one who countersigns alike."""
    assert said in malformed(data)


def content(**fields):
    return json.dumps({**msgspec.to_builtins(payload()), **fields}).encode()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (content(version=None), "in version than"),
        (content(version=7.0), "in version than"),
        (content(version="7"), "in version than"),
        (content(version=True), "in version than"),
        (content(version=2**53), "in version than"),
        (content(version=10**400), "in version than"),
        (content().replace(b'"version": 7', b'"version": NaN'), "NaN"),
        (content().replace(b'"version": 7', b'"version": 7e0'), "in version than"),
        (content(org=None), "in org than"),
        (content(org=["acme"]), "in org than"),
        (content(org=""), "in org than"),
        (content(issued=0), "in issued than"),
        (content(expires="2027-11-30"), "in expires than"),
        (content(expires=None), "in expires than"),
        (content(expires="9999-12-31T23:59:59-14:00"), "outside the calendar"),
        (content(policy={}), "in policy than"),
        (content(CANARY=1), "a field that is unknown"),
        (content().replace(b"{", b'{"version": 9,', 1), "has a key twice"),
        (content().replace(b"{", b'{"\\u006frg": "CANARY",', 1), "has a key twice"),
        (content().replace(b"{", b'{"CANARY": ' + b"[" * 100 + b"]" * 100 + b",", 1), "nested too deep"),
        (b"{}", "has no org"),
        (b"[1, 2]", "is another document"),
    ],
)
def test_a_signed_content_is_refused_with_what_is_wrong(data, said):
    """A pinned key that signs it makes it no better."""
    assert said in malformed(signing(data))


@pytest.mark.parametrize("others", [0, 1, 15])
def test_up_to_sixteen_signatures_are_looked_at(others):
    """Wherever the good one stands; one more and none of them is."""
    document = json.loads(GOOD)
    document["signatures"] = [{"sig": GARBAGE}] * others + document["signatures"]
    data = json.dumps(document).encode()
    assert taken(data) == taken(GOOD)
    if others == 15:
        document["signatures"].append({"sig": GARBAGE})
        assert "more than 16 signatures" in malformed(json.dumps(document).encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(GARBAGE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = st.sampled_from(["payloadType", "payload", "signatures", "unknown"])


@settings(max_examples=150, deadline=None)
@given(place=PLACES, value=JSON, inside=st.sampled_from(["", "sig", "keyid", "unknown"]))
def test_any_value_anywhere_is_refused_or_does_not_matter(place, value, inside):
    """The policy that comes out is the one that was signed, or none does."""
    document = json.loads(GOOD)
    if inside:
        document["signatures"].insert(0, {"sig": GARBAGE, inside: value})
    else:
        document[place] = value
    try:
        got = taken(json.dumps(document).encode())
    except Refused as refused:
        got = refused.code
    assert got in (taken(GOOD), "policy-malformed", "policy-unsigned")


@settings(max_examples=150, deadline=None)
@given(place=st.sampled_from(["org", "version", "issued", "expires", "unknown"]), value=JSON)
def test_any_value_that_a_pinned_key_signs_is_refused_or_meant(place, value):
    """Only a higher or lower version is another policy that could be meant."""
    try:
        got = taken(signing(content(**{place: value})))
    except Refused:
        return
    assert place == "version"
    assert got.version == value
