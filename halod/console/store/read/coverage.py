# SPDX-License-Identifier: Apache-2.0
"""What was not read: unread is never shown as clean."""

from typing import Final

import msgspec
from sqlalchemy import Connection, func, select

from halod.console.store.paging import DEFAULT_LIMIT, MOST, Page, checked
from halod.console.store.read.findings import Tally, prevalence
from halod.console.store.read.rows import Row, columns
from halod.console.store.read.walk import Check, Equal, Listing, equals, read
from halod.console.store.schema import DEVICES, SKIPPED


class GapRow(Row, frozen=True, kw_only=True):
    """Something that a device could not read."""

    device: str
    hostname: str
    username: str = msgspec.field(name="user")
    harness: str
    file: str
    reason: str
    server: str
    errno: str
    line: int
    column: int


_S: Final = SKIPPED.c
_GAPS: Final = Listing(
    kind="gaps",
    rows=select(
        *(_S.device, _S.nth, _S.username, _S.harness, _S.file, _S.reason, _S.server, _S.errno, _S.line),
        _S.column_.label("column"),
    ),
    key=(_S.device, _S.nth),
    types=(str, int),
    make=lambda row: GapRow(**columns(row, *GapRow.__struct_fields__)),
    show=lambda found: select(found, func.coalesce(DEVICES.c.hostname, "").label("hostname")).outerjoin_from(
        found, DEVICES, DEVICES.c.device == found.c.device
    ),
)


def gaps(
    c: Connection, *, reason: str = "", harness: str = "", cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[GapRow]:
    """List what could not be read, by device."""
    checked(reason, harness)
    equal: list[Equal] = [(_S.reason, reason)] if reason else []
    checks: list[Check] = []
    if harness and reason:
        checks.append(equals(_S.harness, harness))
    elif harness:
        equal.append((_S.harness, harness))
    return read(c, _GAPS, cursor=cursor, limit=limit, equal=equal, checks=checks)


def reasons(c: Connection) -> tuple[Tally, ...]:
    """Count reasons over the fleet, most devices first; at most 200, and there are about twenty."""
    return prevalence(c, "reason", limit=MOST).rows
