# SPDX-License-Identifier: Apache-2.0
"""Whether a document from `policy.url` would be taken: the agent's own judgement, for `halod check`.

Remembers nothing. Made to run in a child that has become the agent's account: what it needs is imported with it.
"""

import difflib  # noqa: F401 - advice on names, which `halod.policy.check` imports on occasion: too late in a child
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from halod.agent.dates import date
from halod.agent.devicefile import Device
from halod.policy.load import PolicyError
from halod.policy.scope import check_device
from halod.policy.signed import MAX_BYTES, Refused, Seen, verify

LIMIT: Final = MAX_BYTES
"""Bytes of a document."""


class Tried(msgspec.Struct, frozen=True):
    """What came of it: `code` is the errorCode that a status would have, "" when it would be taken.

    `problems` are those of the device's ring and units, `rings` those that the policy has.
    """

    code: str = ""
    words: str = ""
    problems: tuple[str, ...] = ()
    rings: tuple[str, ...] = ()


def judge(
    keys: Sequence[bytes], org: str, device: Device | None, ring: str, units: Sequence[str]
) -> Callable[[bytes], Tried]:
    """Give the function that judges a document by pinned keys, organisation, what was seen, ring and units."""
    seen = _seen(device, org)
    wanted = org or seen.org

    def tried(document: bytes) -> Tried:
        try:
            signed = verify(document, keys, org=wanted, seen=seen, now=time.time())
        except PolicyError as error:
            return Tried("policy-invalid", f"the signed policy is invalid: {error.message}"[:1000])
        except Refused as error:
            return Tried(error.code, error.message[:1000])
        words = f'version {signed.version} for "{signed.org}", expires {date(signed.expires)[:10]}'
        problems = tuple(check_device(signed.policy, ring, tuple(units)))[:20]
        return Tried("", f"{words}, {signed.policy.digest[:19]}", problems, signed.policy.rings[:10])

    return tried


def _seen(device: Device | None, org: str) -> Seen:
    """Give the newest that was taken from an organisation, from the last one when none is named."""
    if device is None:
        return Seen()
    if org in {"", device.policy_org}:
        return Seen(org=device.policy_org, version=device.policy_version, sha256=device.policy_sha256)
    for one in device.policy_others:
        if one.org == org:
            return Seen(org=one.org, version=one.version, sha256=one.sha256)
    return Seen()
