# SPDX-License-Identifier: Apache-2.0
"""What was not read: unread is never shown as clean."""

import msgspec
from sqlalchemy import Connection

from halod.console.store.paging import DEFAULT_LIMIT, Page
from halod.console.store.read.findings import Tally
from halod.console.store.read.rows import Row


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


def gaps(
    c: Connection, *, reason: str = "", harness: str = "", cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[GapRow]:
    """List what could not be read, by device."""
    raise NotImplementedError


def reasons(c: Connection) -> tuple[Tally, ...]:
    """Count reasons over the fleet, most devices first."""
    raise NotImplementedError
