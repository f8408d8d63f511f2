# SPDX-License-Identifier: Apache-2.0
"""Signed policies: what is made, what is taken, and everything that is refused."""

import base64
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.errors import HalodError, UsageError
from halod.policy import signed
from halod.policy.load import PolicyError, parse
from halod.policy.signed import (
    PAYLOAD_TYPE,
    Refused,
    Seen,
    countersign,
    key_id,
    pae,
    sign,
    verify,
    verify_kept,
)
from tests.support.signing import KEY, NEW_KEY, OTHER, POLICY, STRANGER, envelope, payload, public

ROOT = Path(__file__).resolve().parents[2]
THEIRS = json.loads((ROOT / "tests" / "assets" / "signed" / "securesystemslib.json").read_text())
NOW = datetime(2026, 11, 30, 16, tzinfo=UTC)
GOOD = envelope(now=NOW)


def taken(data=GOOD, keys=None, *, org="acme", seen=None, now=NOW):
    return verify(data, public(*(keys or [KEY])), org=org, seen=seen or Seen(), now=now.timestamp())


def refusal(data=GOOD, keys=None, **fields):
    with pytest.raises(Refused) as caught:
        taken(data, keys, **fields)
    assert "CANARY" not in caught.value.message
    assert caught.value.__cause__ is None
    return caught.value.code


def rebuilt(content, *keys):
    """An envelope over a payload that `sign` would not make."""
    data = content if isinstance(content, bytes) else msgspec.json.encode(content)
    return signed._sealed(data, [], keys or [KEY])


# --- good ones ----------------------------------------------------------------------------------------------


def test_what_was_signed_is_what_is_taken():
    """Policy, digest, version and times come out as they went in."""
    got = taken()
    assert got.policy == parse(POLICY.encode(), "x")
    assert (got.org, got.version) == ("acme", 7)
    assert (got.issued, got.expires) == (NOW.timestamp(), (NOW + timedelta(days=90)).timestamp())
    assert got.seen == Seen(org="acme", version=7, sha256=got.sha256)
    assert taken(seen=got.seen) == got


def test_the_encoding_is_that_of_the_specification():
    """The example of DSSE's protocol page; lengths count bytes."""
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pae("ä", b"\xff ") == b"DSSEv1 2 \xc3\xa4 2 \xff "


@pytest.mark.parametrize("urlsafe", [False, True])
def test_an_envelope_of_another_implementation_is_taken(urlsafe):
    """Securesystemslib 1.6.0 made it; a reader takes both alphabets of base64."""
    given_envelope = json.dumps(THEIRS["envelope"])
    assert "/" in THEIRS["envelope"]["payload"].replace("application/", "")
    if urlsafe:
        given_envelope = given_envelope.replace(
            THEIRS["envelope"]["payload"],
            THEIRS["envelope"]["payload"].replace("+", "-").replace("/", "_"),
        )
    key = base64.b64decode(THEIRS["public"])
    got = verify(given_envelope.encode(), [key], org="acme", seen=Seen(), now=NOW.timestamp())
    assert (got.version, got.policy.entries[0].id) == (7, "wiki")


def test_while_keys_are_changed_either_key_will_do():
    """Two signatures; machines pin the old one, the new one, or both."""
    both = countersign(GOOD, [NEW_KEY])
    assert both != envelope(KEY, NEW_KEY, now=NOW, version=8)
    assert both == envelope(KEY, NEW_KEY, now=NOW)
    for keys in ([KEY], [NEW_KEY], [STRANGER, NEW_KEY]):
        assert taken(both, keys).version == 7
    assert refusal(both, [STRANGER]) == "policy-unsigned"
    assert len(json.loads(countersign(both, [NEW_KEY]))["signatures"]) == 2


def test_a_bad_signature_does_not_spoil_a_good_one():
    """Signatures of strangers, of another length, and lying hints are passed over."""
    document = json.loads(GOOD)
    good = document["signatures"][0]
    document["signatures"] = [
        {"sig": base64.b64encode(b"x" * 64).decode(), "keyid": key_id(public(KEY)[0])},
        {"sig": "", "keyid": ""},
        {"sig": good["sig"], "keyid": "CANARY"},
    ]
    assert taken(json.dumps(document).encode()).version == 7


def test_another_organisation_has_its_own_versions():
    """After a change of policy.org, what was seen of the other one does not matter."""
    assert taken(seen=Seen(org="other", version=99, sha256="x")).version == 7


def test_any_organisation_is_taken_where_none_is_known():
    """The first policy of a machine that pins none."""
    assert taken(org="").org == "acme"


# --- refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [[STRANGER], [NEW_KEY, STRANGER]])
def test_an_unknown_key_is_refused(keys):
    """Whoever signed it: nobody here trusts them."""
    assert refusal(keys=keys) == "policy-unsigned"


def test_no_key_takes_nothing():
    """Without pins nothing is believed."""
    with pytest.raises(Refused):
        verify(GOOD, [], org="", seen=Seen(), now=NOW.timestamp())


def test_a_policy_without_signatures_is_refused():
    """Neither an empty list nor the policy as it is."""
    document = json.loads(GOOD)
    document["signatures"] = []
    assert refusal(json.dumps(document).encode()) == "policy-unsigned"
    assert refusal(POLICY.encode()) == "policy-malformed"


def test_every_changed_bit_of_the_payload_is_noticed():
    """A signature is over all of it."""
    document = json.loads(GOOD)
    raw = base64.b64decode(document["payload"])
    for at in range(0, len(raw), 7):
        changed = bytearray(raw)
        changed[at] ^= 1
        document["payload"] = base64.b64encode(changed).decode()
        assert refusal(json.dumps(document).encode()) == "policy-unsigned"


def test_a_signature_is_for_one_type_of_content():
    """What the same key signed as something else is no policy, even when it is called one."""
    content = msgspec.json.encode(payload(now=NOW))
    other = KEY.sign(pae("application/vnd.in-toto+json", content))
    document = json.loads(GOOD)
    document["signatures"] = [{"sig": base64.b64encode(other).decode()}]
    assert refusal(json.dumps(document).encode()) == "policy-unsigned"
    document["payloadType"] = "application/vnd.in-toto+json"
    assert refusal(json.dumps(document).encode()) == "policy-malformed"


def test_a_bare_signature_over_the_content_is_none():
    """It has to be over the encoding with type and lengths."""
    document = json.loads(GOOD)
    document["signatures"] = [
        {"sig": base64.b64encode(KEY.sign(base64.b64decode(document["payload"]))).decode()}
    ]
    assert refusal(json.dumps(document).encode()) == "policy-unsigned"


@pytest.mark.parametrize(
    "key",
    [
        "00" * 32,
        "01" + "00" * 31,
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ],
)
def test_keys_that_any_signature_fits_are_never_pinned(key):
    """Points of small order: with one of them pinned, a signature could be made without a private key."""
    from halod.settings.fields import is_weak_key

    assert is_weak_key(bytes.fromhex(key))
    assert is_weak_key(bytes.fromhex(key)[:31] + bytes([int(key[-2:], 16) ^ 0x80]))
    assert not any(map(is_weak_key, public(KEY, NEW_KEY, STRANGER)))


def test_an_older_version_is_refused():
    """Whoever puts an old file back is noticed."""
    assert refusal(seen=Seen(org="acme", version=8, sha256="x")) == "policy-older"


def test_a_version_stands_for_one_content():
    """The same number with something else inside is refused, another signature over the same is not."""
    seen = taken().seen
    assert refusal(envelope(policy=OTHER, now=NOW), seen=seen) == "policy-older"
    assert taken(countersign(GOOD, [NEW_KEY]), seen=seen).version == 7
    assert taken(seen=Seen(org="acme", version=7)).version == 7


def test_an_expired_one_is_refused():
    """From the second that it names on; one that was taken before may be kept."""
    end = NOW + timedelta(days=90)
    assert taken(now=end - timedelta(seconds=1)).version == 7
    assert refusal(now=end) == "policy-expired"
    assert verify_kept(GOOD, public(KEY), org="acme", seen=Seen()).version == 7


def test_another_organisation_is_refused():
    """Of the signature, and of the policy inside of it."""
    assert refusal(org="other") == "policy-foreign"
    assert refusal(rebuilt(payload(POLICY.replace("acme", "CANARYother"), now=NOW))) == "policy-foreign"
    assert refusal(rebuilt(payload("mcp: {servers: []}\n", now=NOW))) == "policy-foreign"


def test_a_policy_with_faults_is_refused_as_such():
    """Signed or not."""
    with pytest.raises(PolicyError):
        taken(rebuilt(payload("org: acme\nmcp: {servers: [{id: x}]}\n", now=NOW)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b"{}",
        b"[" * 5000,
        rb'{"org":"acme","version":7,"issued":"2026-11-30T16:00:00Z","expires":"2027-11-30T16:00:00Z","policy":"\ud800 x"}',
        {"org": "", "version": 1},
        {"org": "acme", "version": 7, "issued": "2026-11-30", "expires": "2027-11-30", "policy": POLICY},
        {"org": "acme", "version": True, "issued": 1, "expires": 2, "policy": POLICY},
    ],
)
def test_signed_rubbish_is_refused(content):
    """A pinned key that signs something else by this type's name costs nothing."""
    assert refusal(rebuilt(content)) == "policy-malformed"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 0),
        ("version", -1),
        ("version", 2**53),
        ("version", 1.5),
        ("version", "7"),
        ("issued", "2026-11-30T16:00:00"),
        ("expires", "0000-00-00T00:00:00Z"),
        ("policy", 5),
        ("policy", None),
        ("org", "x" * 129),
        ("threshold", 2),
    ],
)
def test_a_field_of_another_kind_is_refused(field, value):
    """Numbers beyond what is exact, times without a zone, fields that nobody knows."""
    content = {**msgspec.to_builtins(payload(now=NOW)), field: value}
    assert refusal(rebuilt(content)) == "policy-malformed"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda e: b"",
        lambda e: b"null",
        lambda e: b"<html>CANARY</html>",
        lambda e: e[:-20],
        lambda e: b"\xef\xbb\xbf\xff" + e,
        lambda e: b"[" * 100_000,
        lambda e: e.replace(b'"payload"', b'"CANARY"'),
        lambda e: e.replace(b'"signatures":[', b'"signatures":[5,'),
        lambda e: e.replace(b'"payload":"', b'"payload":"='),
        lambda e: e.replace(b'"payload":"', '"payload":"ä'.encode()),
        lambda e: json.dumps({**json.loads(e), "signatures": json.loads(e)["signatures"] * 17}).encode(),
        lambda e: e + b" " * 1024 * 1024,
    ],
)
def test_garbage_is_refused(spoil):
    """One word for all of it, and nothing of it in the words."""
    assert refusal(spoil(GOOD)) == "policy-malformed"


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=0, max_size=4), st.integers(0, 8))
def test_a_changed_envelope_gives_the_same_policy_or_a_refusal(at, new, cut):
    """Whatever is changed: never another policy, never another exception."""
    data = GOOD[:at] + new + GOOD[at + cut :]
    try:
        got = taken(data)
    except HalodError:
        return
    assert got.sha256 == taken().sha256


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_bytes_are_refused_with_words(data):
    """No input raises anything but a refusal, as envelope or as signed content."""
    assert refusal(data) in {"policy-malformed", "policy-unsigned"}
    with pytest.raises(HalodError):
        taken(rebuilt(data))


# --- making -------------------------------------------------------------------------------------------------


def test_what_agents_would_refuse_is_not_made():
    """Faults, another org, an expiry before the issue, an envelope that is too large, too many signatures."""
    with pytest.raises(PolicyError):
        sign(payload("org: acme\nmcp: 5\n"), [KEY])
    with pytest.raises(UsageError, match="names no org"):
        sign(payload(org="other"), [KEY])
    with pytest.raises(UsageError, match="before it is issued"):
        sign(payload(days=-1), [KEY])
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        sign(payload(POLICY + "# " + "x" * 800_000 + "\n"), [KEY])
    with pytest.raises(UsageError, match="more than 16"):
        sign(payload(), [KEY] * 17)


def test_only_a_policy_is_countersigned():
    """A second key does not sign what it is not shown to be."""
    with pytest.raises(Refused):
        countersign(rebuilt(b"{}"), [NEW_KEY])
    with pytest.raises(Refused):
        countersign(b"{}", [NEW_KEY])


def test_the_form_is_that_of_the_page():
    """docs/signing.md shows the payload's fields in their order."""
    document = json.loads(GOOD)
    assert document["payloadType"] == PAYLOAD_TYPE
    assert set(document) == {"payloadType", "payload", "signatures"}
    page = (ROOT / "docs" / "signing.md").read_text(encoding="utf-8")
    shown = json.loads(page.partition("```json\n")[2].partition("```")[0])
    assert list(shown) == list(json.loads(base64.b64decode(document["payload"])))
    assert f"`{PAYLOAD_TYPE}`" in page


@pytest.mark.parametrize(
    "module", ["halod.cli.scan", "halod.roles.worker", "halod.roles.watcher", "halod.policy.load"]
)
def test_what_scans_loads_no_signature_library(module):
    """Cryptography is for halo and, where a policy is fetched, the agent."""
    code = f"import sys, {module}; print(*(m for m in sys.modules if m.startswith(('cryptography', 'halod.policy.signed'))))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# --- what a review found -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"policy": "org: acme\nmcp:\n  servers:\n    - {id: x, url: 'http://x'}\n"},
        {"org": "other"},
        {"expires": NOW - timedelta(days=1)},
        {"version": signed.VERSION_LIMIT},
    ],
)
def test_nothing_is_signed_that_no_agent_should_take(change):
    """Neither anew nor as a second signature: the checks are the same."""
    wrong = msgspec.structs.replace(payload(now=NOW), **change)

    with pytest.raises(HalodError):
        sign(wrong, [KEY])
    with pytest.raises((HalodError, Refused)):
        countersign(rebuilt(wrong), [OTHER])


@pytest.mark.parametrize("field", ["issued", "expires"])
@pytest.mark.parametrize("when", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_leaves_the_calendar_is_malformed(field, when):
    """Whatever its signature is worth: an offset leads out of the years that there are."""
    fields = {**msgspec.to_builtins(payload(now=NOW)), field: when}

    assert refusal(rebuilt(msgspec.json.encode(fields))) == "policy-malformed"


def test_what_others_put_beside_a_good_signature_does_not_matter():
    """Text that is no signature at all included."""
    document = json.loads(GOOD)
    document["signatures"].insert(0, {"keyid": "x", "sig": "!!"})

    assert taken(json.dumps(document).encode()) == taken()


def test_a_signature_that_is_no_signature_is_none():
    """Junk alone is a policy that nobody signed."""
    assert refusal(GOOD.replace(b'"sig":"', b'"sig":"CANARY!')) == "policy-unsigned"
