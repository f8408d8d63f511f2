# SPDX-License-Identifier: Apache-2.0
"""Findings, grouped by what they are about, one by one, and counted over the fleet."""

from typing import Literal

import msgspec
from sqlalchemy import Connection

from halod.console.store.paging import DEFAULT_LIMIT, Page
from halod.console.store.read.rows import Row, Time

Order = Literal["devices", "last-seen"]


class GroupRow(Row, frozen=True, kw_only=True):
    """Findings that are about the same: kind, server name, and host (http) or hash (stdio).

    `findings`, `devices` and `last_seen` count what the filter selects; `first_seen` is the whole fleet's.
    """

    id: int
    kind: str
    server: str
    what: str
    transport: str
    fix: str
    findings: int
    devices: int
    first_seen: Time
    last_seen: Time


class GroupFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which groups. `server` is a prefix (case counts), `what` a host or a hash; empty fields select nothing out."""

    kind: str = ""
    harness: str = ""
    ring: str = ""
    unit: str = ""
    server: str = ""
    what: str = ""
    order: Order = "devices"


class FindingRow(Row, frozen=True, kw_only=True):
    """A finding of a device."""

    id: int
    device: str
    hostname: str
    thing: int = msgspec.field(name="group")
    username: str = msgspec.field(name="user")
    harness: str
    file: str
    scope: str
    server: str
    kind: str
    transport: str
    host: str
    sha256: str = msgspec.field(name="definitionSha256")
    detail: str
    fix: str
    ring: str
    projects: int
    enabled: bool
    secret: bool = msgspec.field(name="secretInDefinition")
    stale: bool
    first_seen: Time
    last_seen: Time


class FindingFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which findings; all exact. Empty fields (0 for `thing`) select nothing out."""

    thing: int = 0
    device: str = ""
    server: str = ""
    sha256: str = ""
    harness: str = ""
    unit: str = ""
    ring: str = ""
    kind: str = ""


class Tally(Row, frozen=True, kw_only=True):
    """How often a value is, over the fleet; `kind` is the findings', "" where findings are not what is counted."""

    value: str
    kind: str
    findings: int
    devices: int
    first_seen: Time


Dim = Literal["kind", "harness", "ring", "unit", "definition", "server", "reason", "approved", "digest"]


def groups(
    c: Connection, where: GroupFilter, *, cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[GroupRow]:
    """List groups of findings, most devices (or last seen) first."""
    raise NotImplementedError


def group(c: Connection, thing: int) -> GroupRow | None:
    """Give one group counted over the fleet, None if there is none."""
    raise NotImplementedError


def findings(
    c: Connection, where: FindingFilter, *, cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[FindingRow]:
    """List findings, newest first."""
    raise NotImplementedError


def prevalence(c: Connection, dim: Dim, *, cursor: str = "", limit: int = DEFAULT_LIMIT) -> Page[Tally]:
    """List the values of `dim`, most devices first."""
    raise NotImplementedError
