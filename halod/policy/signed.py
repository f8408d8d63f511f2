# SPDX-License-Identifier: Apache-2.0
"""A signed policy: a DSSE envelope with Ed25519 signatures over the policy's bytes and what they are good for.

The envelope is that of DSSE 1.0 (https://github.com/secure-systems-lab/dsse): `payloadType`, `payload` and
`signatures`, where a signature is over the pre-authentication encoding of type and payload. The payload is JSON:
the organisation, a version that only grows, when it was issued, when it expires, and the policy as text.

Pure: bytes and times in, values out. Invariants:

1. Nothing of a payload is decoded before a pinned key has signed it, and what was signed is what is decoded.
   Envelope and payload are strict JSON: no key twice, no NaN, a bounded depth.
2. `verify` gives a policy that is good for this organisation, not older than the newest that was seen, and not
   expired; or raises. What it says is made of words of ours and of what a pinned key has signed.
3. Only `halo` and the agent load this module: a scan and its workers never see a signature library.
"""

import binascii
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Final, Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from halod.errors import UsageError
from halod.policy.load import parse
from halod.policy.model import Policy
from halod.policy.strictjson import NotStrictError, decode

PAYLOAD_TYPE: Final = "application/vnd.halos.policy.v1+json"
MAX_BYTES: Final = 1024 * 1024
"""Bytes of an envelope that is made or taken; its policy may have about three quarters of that."""
KEY_BYTES: Final = 32
VERSION_LIMIT: Final = 2**53
"""Versions are below this: every JSON reader has them exactly."""
_SIGNATURE_BYTES: Final = 64
MOST_SIGNATURES: Final = 16
"""Signatures of an envelope, those of strangers included: each costs every reader a check for each key."""
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
# Of msgspec's messages: what stands there is a name of ours, never a stranger's.
_AT: Final = re.compile(r" - at `\$\.([A-Za-z0-9.\[\]]+)`$")
_MISSING: Final = re.compile(r"missing required field `([A-Za-z]+)`")

Code = Literal["policy-malformed", "policy-unsigned", "policy-foreign", "policy-older", "policy-expired"]


class Refused(UsageError):
    """A signed policy that does not count; `code` is the errorCode of the status."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class Payload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is signed. `policy` is halos.yaml as it is, so that its digest is that of the file."""

    org: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    version: Annotated[int, msgspec.Meta(ge=1, lt=VERSION_LIMIT)]
    issued: Annotated[datetime, msgspec.Meta(tz=True)]
    expires: Annotated[datetime, msgspec.Meta(tz=True)]
    policy: str
    """Never with a lone surrogate: the decoder refuses those."""


class _Signature(msgspec.Struct):
    sig: str
    keyid: str | None = ""
    """A hint that nobody has signed: every pinned key is tried. DSSE takes one that is unset, so null, for empty."""


class _Envelope(msgspec.Struct, rename="camel"):
    payload_type: str
    payload: str
    signatures: list[_Signature]


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The newest policy that was taken: of which organisation, which version, and what its payload was."""

    org: str = ""
    version: int = 0
    sha256: str = ""


class Signed(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that is signed by a pinned key. `sha256` is that of the payload; times are seconds since the epoch."""

    policy: Policy
    org: str
    version: int
    issued: float
    expires: float
    sha256: str

    @property
    def seen(self) -> Seen:
        """Give what is remembered of it."""
        return Seen(org=self.org, version=self.version, sha256=self.sha256)


def pae(payload_type: str, payload: bytes) -> bytes:
    """Give DSSE's pre-authentication encoding: what a signature is over."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def key_id(public: bytes) -> str:
    """Give the name of a public key in an envelope: the sha256 of its 32 bytes, in hex."""
    return sha256(public).hexdigest()


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """Give the 32 bytes of a private key's public half."""
    return key.public_key().public_bytes_raw()


# --- signing ------------------------------------------------------------------------------------------------


def sign(payload: Payload, keys: Sequence[Ed25519PrivateKey]) -> bytes:
    """Make an envelope of a payload, signed by each key.

    Raises:
        PolicyError: the policy has faults.
        UsageError: the policy names no organisation or another one, it expires before it is issued, or the
            envelope would be larger than agents take.
    """
    _faultless(payload)
    return _sealed(msgspec.json.encode(payload), [], keys)


def _faultless(payload: Payload) -> None:
    """Refuse to sign what no agent should take. Raises UsageError; PolicyError when the policy has faults."""
    policy = parse(payload.policy.encode(), "policy")
    if policy.org != payload.org:
        raise UsageError("the policy names no org, or another one than it is signed for")
    if payload.expires <= payload.issued:
        raise UsageError("the policy would expire before it is issued")
    if payload.version >= VERSION_LIMIT:
        raise UsageError("there is no higher version")


def countersign(data: bytes, keys: Sequence[Ed25519PrivateKey]) -> bytes:
    """Add signatures to an envelope whose payload stays as it is; one of the same key is replaced.

    Raises Refused when `data` is no envelope of a policy, UsageError and PolicyError as `sign` does. Whether its
    other signatures are good is not looked at.
    """
    envelope, payload = _envelope(data)
    _faultless(_payload(payload))
    mine = {key_id(public_bytes(key)) for key in keys}
    others = [_Signature(one.sig, one.keyid or "") for one in envelope.signatures if one.keyid not in mine]
    return _sealed(payload, others, keys)


def read_payload(data: bytes) -> Payload:
    """Give what an envelope says, signed or not: for the person who signs. Raises Refused."""
    return _payload(_envelope(data)[1])


def _sealed(payload: bytes, signatures: list[_Signature], keys: Sequence[Ed25519PrivateKey]) -> bytes:
    message = pae(PAYLOAD_TYPE, payload)
    made = [
        _Signature(
            keyid=key_id(public_bytes(key)),
            sig=binascii.b2a_base64(key.sign(message), newline=False).decode(),
        )
        for key in keys
    ]
    if len(signatures) + len(made) > MOST_SIGNATURES:
        raise UsageError(f"more than {MOST_SIGNATURES} signatures")
    envelope = _Envelope(
        payload_type=PAYLOAD_TYPE,
        payload=binascii.b2a_base64(payload, newline=False).decode(),
        signatures=[*signatures, *made],
    )
    data = msgspec.json.encode(envelope) + b"\n"
    if len(data) > MAX_BYTES:
        raise UsageError(
            "the signed policy is larger than 1 MiB, which no agent fetches",
            advice="place the policy as a file, or make it smaller",
        )
    return data


# --- verifying ----------------------------------------------------------------------------------------------


def verify(data: bytes, keys: Sequence[bytes], *, org: str, seen: Seen, now: float) -> Signed:
    """Give the policy in an envelope when it counts.

    Args:
        data: the envelope, as it was fetched.
        keys: pinned public keys, 32 bytes each; one of them has to have signed.
        org: the organisation that it has to be of; "" takes any.
        seen: the newest that was taken; versions of another organisation than `org` do not matter.
        now: wall time in seconds since the epoch.

    Raises:
        Refused: it does not count, and why.
        PolicyError: it is signed, but the policy inside has faults.
    """
    signed = verify_kept(data, keys, org=org, seen=seen)
    if now >= signed.expires:
        raise Refused(
            "policy-expired", f"version {signed.version} of the policy expired on {_day(signed.expires)}"
        )
    return signed


def verify_kept(data: bytes, keys: Sequence[bytes], *, org: str, seen: Seen) -> Signed:
    """Give the policy of an envelope that was taken before: as `verify`, but it may have expired since."""
    payload = _authentic(data, keys)
    content = _payload(payload)
    digest = sha256(payload).hexdigest()
    if org and content.org != org:
        raise Refused(
            "policy-foreign", f'the policy is signed for the organisation "{content.org}", not for "{org}"'
        )
    if seen.org == content.org:
        if content.version < seen.version:
            raise Refused(
                "policy-older",
                f"version {content.version} of the policy is older than version {seen.version}, which was seen before",
            )
        if content.version == seen.version and seen.sha256 not in {"", digest}:
            raise Refused(
                "policy-older",
                f"version {content.version} of the policy was seen before with another content;"
                " each change needs a higher version",
            )
    policy = parse(content.policy.encode(), "policy")
    if policy.org != content.org:
        raise Refused(
            "policy-foreign", "the policy inside the signature names another organisation than the signature"
        )
    return Signed(
        policy=policy,
        org=content.org,
        version=content.version,
        issued=content.issued.timestamp(),
        expires=content.expires.timestamp(),
        sha256=digest,
    )


def _authentic(data: bytes, keys: Sequence[bytes]) -> bytes:
    """Give the payload of an envelope that one of the keys has signed."""
    envelope, payload = _envelope(data)
    message = pae(PAYLOAD_TYPE, payload)
    if not envelope.signatures:
        raise Refused("policy-unsigned", "the policy carries no signature")
    signatures = [signature for one in envelope.signatures if (signature := _signature(one.sig))]
    for key in keys:
        public = Ed25519PublicKey.from_public_bytes(key)
        if any(_is_by(public, signature, message) for signature in signatures):
            return payload
    raise Refused(
        "policy-unsigned", "the policy is signed by none of the keys in policy.public_keys, or was changed"
    )


def _signature(text: str) -> bytes:
    """Give a signature; b"" when it is none: what others have put beside ours does not matter."""
    try:
        return _base64(text)
    except Refused:
        return b""


def _is_by(public: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    if len(signature) != _SIGNATURE_BYTES:
        return False
    try:
        public.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _envelope(data: bytes) -> tuple[_Envelope, bytes]:
    """Decode an envelope, and its payload as bytes that nobody vouches for yet."""
    if len(data) > MAX_BYTES:
        raise Refused("policy-malformed", "the signed policy is larger than 1 MiB")
    try:
        decode(data)
        envelope = msgspec.json.decode(data, type=_Envelope)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Refused(
            "policy-malformed", f"this is no signed policy (a DSSE envelope): it {_fault(error)}"
        ) from None
    if len(envelope.signatures) > MOST_SIGNATURES:
        raise Refused("policy-malformed", f"the envelope has more than {MOST_SIGNATURES} signatures")
    if envelope.payload_type != PAYLOAD_TYPE:
        raise Refused("policy-malformed", f"the envelope holds something else than {PAYLOAD_TYPE}")
    return envelope, _base64(envelope.payload)


def _payload(data: bytes) -> Payload:
    try:
        decode(data)
        payload = msgspec.json.decode(data, type=Payload)
        # An offset can lead out of the years that a calendar has.
        return msgspec.structs.replace(
            payload, issued=payload.issued.astimezone(UTC), expires=payload.expires.astimezone(UTC)
        )
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
        raise Refused(
            "policy-malformed",
            f"the signed content is not org, version, issued, expires and policy: it {_fault(error)}",
        ) from None


def _fault(error: Exception) -> str:
    """Say what is wrong with a document, without a word of it."""
    if isinstance(error, NotStrictError):
        return error.fault
    if found := _MISSING.search(str(error)):
        return f"has no {found[1]}"
    if found := _AT.search(str(error)):
        return f"has something else in {found[1]} than belongs there"
    if isinstance(error, OverflowError):
        return "has a time outside the calendar"
    return "has a field that is unknown" if "unknown field" in str(error) else "is another document"


def _base64(text: str) -> bytes:
    """Decode base64 of either alphabet, as DSSE demands of a reader, and nothing that only resembles it."""
    try:
        return binascii.a2b_base64(text.encode("ascii").translate(_URL_SAFE), strict_mode=True)
    except (ValueError, UnicodeError):
        raise Refused("policy-malformed", "the envelope holds text that is no base64") from None


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
