# SPDX-License-Identifier: Apache-2.0
"""Devices: what they say of themselves, what they cover, and who waits to be let in."""

from typing import Literal

import msgspec
from sqlalchemy import Connection

from halod.console.store.paging import DEFAULT_LIMIT, Page
from halod.console.store.read.rows import Row, Time

State = Literal["", "reporting", "silent", "partly", "limited"]


class DeviceRow(Row, frozen=True, kw_only=True):
    """A device. `hostname`, `os`, `halod`, `username`, `ring`, `units`, `digest` and `mode` are its claims."""

    device: str
    hostname: str
    os: str
    halod: str
    username: str = msgspec.field(name="user")
    ring: str
    units: tuple[str, ...]
    digest: str
    mode: str
    first_seen: Time
    last_report: Time
    changed_at: Time
    findings: int
    drift_total: int
    skipped: int
    accounts: int
    files: int
    definitions: int
    not_covered: tuple[str, ...]
    error_code: str
    last_error: str
    truncated: bool
    partly: bool
    limited: bool
    silent: bool
    """Nothing has come for `silent_after` seconds."""
    assigned_ring: str
    """What its enrolment key says it is; "" when that says nothing."""
    assigned_units: tuple[str, ...]


class SkippedRow(Row, frozen=True, kw_only=True):
    """Something that a device could not read. `line` and `column` are 0 when unknown."""

    username: str = msgspec.field(name="user")
    harness: str
    file: str
    reason: str
    server: str
    errno: str
    line: int
    column: int


class ApprovedRow(Row, frozen=True, kw_only=True):
    """How many definitions of one harness and account an entry approves."""

    harness: str
    username: str = msgspec.field(name="user")
    entry: str
    count: int


class PendingRow(Row, frozen=True, kw_only=True):
    """A known device that asked for a token and did not prove to be itself. `claimed` by whoever asked."""

    device: str
    hostname: str
    """As asked now; `known_hostname` as the device said before."""
    known_hostname: str
    os: str
    halod: str
    address: str
    install_id: str
    first_asked: Time
    last_asked: Time
    asked: int


class DeviceFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which devices. Empty fields select nothing out; `hostname` is a prefix (case counts), the rest exact."""

    state: State = ""
    ring: str = ""
    unit: str = ""
    hostname: str = ""
    digest: str = ""


def devices(
    c: Connection,
    where: DeviceFilter,
    *,
    now: int,
    silent_after: int,
    cursor: str = "",
    limit: int = DEFAULT_LIMIT,
) -> Page[DeviceRow]:
    """List devices by hostname; silent ones by their last report, the last to fall silent first."""
    raise NotImplementedError


def device(c: Connection, device: str, *, now: int, silent_after: int) -> DeviceRow | None:
    """Give one device, None if it is not known."""
    raise NotImplementedError


def skipped(c: Connection, device: str) -> tuple[SkippedRow, ...]:
    """Give what a device could not read, in its own order."""
    raise NotImplementedError


def approved(c: Connection, device: str) -> tuple[ApprovedRow, ...]:
    """Give which entries approve what on a device."""
    raise NotImplementedError


def pending(c: Connection, *, cursor: str = "", limit: int = DEFAULT_LIMIT) -> Page[PendingRow]:
    """List devices that wait for an operator, by device."""
    raise NotImplementedError
