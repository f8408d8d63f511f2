# SPDX-License-Identifier: Apache-2.0
"""Keys, policies and envelopes for the tests of signed policies."""

import base64
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from halod.policy.signed import Payload, public_bytes, sign

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
NEW_KEY = Ed25519PrivateKey.from_private_bytes(b"n" * 32)
STRANGER = Ed25519PrivateKey.from_private_bytes(b"s" * 32)
BEGAN = datetime.now(UTC).replace(microsecond=0)
"""The same for all: a version stands for one content."""
POLICY = """\
org: acme
rings: [ring0]
mcp:
  servers:
    - {id: tools, rings: [ring0], package: {type: npm, identifier: "@acme/tools", version: 1.2.0}}
"""
OTHER = "org: acme\nrings: [ring0]\nmcp: {mode: warn, servers: []}\n"


def public(*keys):
    """The 32 bytes of each public half."""
    return [public_bytes(key) for key in keys]


def pinned(*keys):
    """The same as settings write them."""
    return [base64.b64encode(one).decode() for one in public(*keys)]


def payload(policy=POLICY, *, org="acme", version=7, now=None, days=90.0):
    """A payload issued at `now` (a datetime; when the tests began when there is none), good for some days."""
    issued = now or BEGAN
    return Payload(
        org=org, version=version, issued=issued, expires=issued + timedelta(days=days), policy=policy
    )


def envelope(*keys, policy=POLICY, **fields):
    """A signed policy, by KEY unless others are given."""
    return sign(payload(policy, **fields), keys or [KEY])


def expired(*keys, **fields):
    """One that expired yesterday."""
    return envelope(*keys, now=BEGAN - timedelta(days=91), **fields)
