# SPDX-License-Identifier: Apache-2.0
"""Who uses what is approved, and who still has an old policy."""

import msgspec
from sqlalchemy import Connection

from halod.console.store.paging import DEFAULT_LIMIT, Page
from halod.console.store.read.rows import Row
from halod.policy.model import Policy


class EntryRow(Row, frozen=True, kw_only=True):
    """An entry of the registry and its use.

    `what` is the package with its version, the host, or the first digits of the definition's hash. `drift`
    counts devices with a `version-drift` finding of that name: a finding does not say which entry it is close to.
    """

    entry: str
    what: str
    rings: tuple[str, ...]
    units: tuple[str, ...]
    owner: str
    expires: str
    """YYYY-MM-DD, or ""."""
    devices: int
    definitions: int
    drift: int
    used: bool
    known: bool
    """Whether the policy has it: a device may still use an entry of an older one."""


class EntryUse(Row, frozen=True, kw_only=True):
    """A device that uses an entry."""

    device: str
    hostname: str
    username: str = msgspec.field(name="user")
    harness: str
    count: int


class DigestRow(Row, frozen=True, kw_only=True):
    """How many devices of a ring have a policy."""

    ring: str
    digest: str
    devices: int


def usage(c: Connection, policy: Policy | None) -> tuple[EntryRow, ...]:
    """Give every entry of `policy` in its order, then those that devices use and it does not have (at most 1,000)."""
    raise NotImplementedError


def users(c: Connection, entry: str, *, cursor: str = "", limit: int = DEFAULT_LIMIT) -> Page[EntryUse]:
    """List who uses an entry, by device."""
    raise NotImplementedError


def digests(c: Connection, ring: str = "") -> tuple[DigestRow, ...]:
    """Count devices by ring and policy digest, of one ring or of all."""
    raise NotImplementedError
