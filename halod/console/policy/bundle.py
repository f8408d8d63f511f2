# SPDX-License-Identifier: Apache-2.0
"""The published policy: which envelope counts, what is kept of it, and what agents and pages are given.

Invariants:

1. What is published is signed by a key of `policy_keys`, of the organisation of the settings, not expired, without
   faults, and newer than what was published before (`halod.policy.signed` decides, as it does on every machine).
2. The table grows by one row with each publication and no row changes; the newest row is the policy.
3. Agents are given the very bytes that were published: they believe the signature, not this server.
4. `digest` is the sha256 of `halos.yaml` as it was signed, which is what a status reports as `digest`; one text
   that is signed again has the same one.
"""

import base64
import binascii
import threading
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Final
from weakref import WeakKeyDictionary

import msgspec
from sqlalchemy import Connection, Engine, func, insert, select

from halod.console.problem import Problem
from halod.console.security import audit
from halod.console.settings import Settings
from halod.console.store.schema import POLICIES
from halod.errors import UsageError
from halod.policy.load import PolicyError, parse
from halod.policy.model import Policy
from halod.policy.signed import KEY_BYTES, MAX_BYTES, Refused, Seen, Signed, read_payload, verify

_URL_SAFE: Final = str.maketrans("-_", "+/")
_KEPT_POLICIES: Final = 8
"""Parsed policies that are held in memory: those of the last few versions."""


class PolicyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A published policy. Times are seconds since the epoch."""

    digest: str
    org: str
    version: int
    issued: int
    expires: int
    uploaded_by: str
    uploaded: int
    envelope: bytes
    policy: Policy
    payload_sha256: str


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A published policy as a list shows it."""

    digest: str
    org: str
    version: int
    issued: int
    expires: int
    uploaded_by: str
    uploaded: int


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """An envelope that may be published, as long as `before` is the newest row (0: none)."""

    signed: Signed
    before: int


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What agents are given: the envelope and its strong entity tag, quoted."""

    envelope: bytes
    etag: str


def examine(c: Connection, envelope: bytes, settings: Settings, *, now: int) -> Checked:
    """Check an envelope against the settings and what is published.

    Half a megabyte of policy takes seconds: done before the transaction of `publish`, they hold up no report.

    Raises:
        Problem: it does not count: 409 no key is pinned, or it is older than what is published; 422 anything else.
    """
    keys = pinned(settings)
    before = current(c)
    seen = Seen()
    if before is not None:
        seen = Seen(org=before.org, version=before.version, sha256=before.payload_sha256)
    return Checked(signed=_verified(envelope, keys, settings.policy_org, seen, now), before=_newest(c))


def publish(
    c: Connection,
    envelope: bytes,
    settings: Settings,
    *,
    by: str,
    now: int,
    by_kind: str = "command",
    address: str = "",
    checked: Checked | None = None,
) -> PolicyRow:
    """Make a signed policy that of the fleet, and write it to the audit log.

    Needs the lock of `Store.change`, so that two publications cannot both be the newest. The same bytes once more
    change nothing; the same version with a signature more is taken (docs/signing.md, "Change a key").

    Args:
        c: the transaction.
        envelope: what `halo sign` wrote.
        settings: with the pinned keys.
        by: who publishes it.
        now: seconds since the epoch.
        by_kind: what `by` is: `session`, `api-token` or `command`.
        address: where it came from.
        checked: what `examine` gave for this envelope; it is examined here without, or when another came between.

    Raises:
        Problem: as `examine`.
    """
    before = current(c)
    if before is not None and before.envelope == envelope:
        return before
    if checked is None or checked.before != _newest(c):
        checked = examine(c, envelope, settings, now=now)
    signed = checked.signed
    if now >= signed.expires:
        raise Problem(422, "the policy has expired")
    row = PolicyRow(
        digest=signed.policy.digest,
        org=signed.org,
        version=signed.version,
        issued=int(signed.issued),
        expires=int(signed.expires),
        uploaded_by=by,
        uploaded=now,
        envelope=envelope,
        policy=signed.policy,
        payload_sha256=signed.sha256,
    )
    c.execute(
        insert(POLICIES).values(
            {column.name: getattr(row, column.name) for column in _ROW} | {"envelope": envelope}
        )
    )
    audit.record(
        c,
        time=now,
        actor=by,
        actor_kind=by_kind,
        action="policy.publish",
        target=row.digest,
        address=address,
        org=row.org,
        version=row.version,
        expires=row.expires,
        servers=len(row.policy.entries),
    )
    return row


def pinned(settings: Settings) -> tuple[bytes, ...]:
    """Give the public keys that a policy has to be signed with.

    Raises:
        Problem: 409, there is none, or one is none.
    """
    keys = []
    for number, text in enumerate(settings.policy_keys, 1):
        try:
            key = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            key = b""
        if len(key) != KEY_BYTES:
            raise Problem(409, f"key {number} of policy_keys in the settings is no public key")
        keys.append(key)
    if not keys:
        raise Problem(409, "policy_keys in the settings is empty, so no policy can be published")
    return tuple(keys)


def _verified(envelope: bytes, keys: tuple[bytes, ...], org: str, seen: Seen, now: int) -> Signed:
    try:
        return verify(envelope, keys, org=org or seen.org, seen=seen, now=now)
    except Refused as error:
        status = 409 if error.code == "policy-older" else 422
        raise Problem(status, error.message.replace("policy.public_keys", "policy_keys")) from None
    except PolicyError as error:
        raise Problem(422, f"the policy has faults: {error.message}") from None


# --- reading ------------------------------------------------------------------------------------------------

_ROW: Final = (
    POLICIES.c.digest,
    POLICIES.c.org,
    POLICIES.c.version,
    POLICIES.c.issued,
    POLICIES.c.expires,
    POLICIES.c.uploaded_by,
    POLICIES.c.uploaded,
)


def current(c: Connection) -> PolicyRow | None:
    """Give the policy in force, parsed; None before the first one. Its signature was checked when it came."""
    row = c.execute(select(*_ROW, POLICIES.c.envelope).order_by(POLICIES.c.id.desc()).limit(1)).one_or_none()
    if row is None:
        return None
    fields = row._asdict()
    policy, payload_sha256 = _parsed(fields["envelope"])
    return PolicyRow(**fields, policy=policy, payload_sha256=payload_sha256)


def _newest(c: Connection) -> int:
    return c.scalar(select(func.max(POLICIES.c.id))) or 0


def published(c: Connection, *, limit: int = 20) -> tuple[Published, ...]:
    """Give the last publications, newest first: the policy in force is the first."""
    rows = c.execute(select(*_ROW).order_by(POLICIES.c.id.desc()).limit(limit))
    return tuple(Published(**row._asdict()) for row in rows)


def versions(c: Connection) -> dict[str, int]:
    """Give the highest published version of each digest.

    It tells a device that is behind from one that follows a policy of its own.
    """
    rows = c.execute(select(POLICIES.c.digest, func.max(POLICIES.c.version)).group_by(POLICIES.c.digest))
    return {row[0]: row[1] for row in rows}


@lru_cache(maxsize=_KEPT_POLICIES)
def _parsed(envelope: bytes) -> tuple[Policy, str]:
    """Parse what is in an envelope; a page would else parse half a megabyte of YAML for each view."""
    payload = read_payload(envelope)
    # The envelope's own payload, as it was signed: its hash tells two contents of one version apart.
    text: str = msgspec.json.decode(envelope)["payload"]
    raw = base64.b64decode(text.translate(_URL_SAFE), validate=True)
    return parse(payload.policy.encode(), "policy"), sha256(raw).hexdigest()


# --- serving ------------------------------------------------------------------------------------------------

_lock: Final = threading.Lock()
_served: Final[WeakKeyDictionary[Engine, tuple[tuple[int, int], Served]]] = WeakKeyDictionary()


def served(c: Connection) -> Served | None:
    """Give what agents are given; None before the first policy.

    One small question for each request: the envelope itself is read when the newest row is another one.
    """
    row = c.execute(
        select(POLICIES.c.id, POLICIES.c.uploaded).order_by(POLICIES.c.id.desc()).limit(1)
    ).one_or_none()
    if row is None:
        return None
    key = (row.id, row.uploaded)
    with _lock:
        known = _served.get(c.engine)
    if known is not None and known[0] == key:
        return known[1]
    newest = c.execute(select(POLICIES.c.envelope).where(POLICIES.c.id == row.id)).one()
    found = Served(envelope=newest.envelope, etag=f'"{sha256(newest.envelope).hexdigest()}"')
    with _lock:
        _served[c.engine] = (key, found)
    return found


def read_file(path: str) -> bytes:
    """Read an envelope for `halo-server publish`, one byte more than is taken at most. Raises UsageError."""
    try:
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", advice="name the file that halo sign has written"
        ) from None


def moment(seconds: int) -> str:
    """Give a time as API documents have it: RFC 3339, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
