# SPDX-License-Identifier: Apache-2.0
"""What happened: transitions in the order in which they were committed."""

import msgspec
from sqlalchemy import Connection

from halod.console.store.paging import DEFAULT_LIMIT, Page
from halod.console.store.read.rows import Row, Time


class TransitionRow(Row, frozen=True, kw_only=True):
    """A finding that opened, changed (`was` is the hash before) or was resolved.

    `claimed_time` is the machine's clock, `received` the console's.
    """

    seq: int
    device: str
    hostname: str
    received: Time
    claimed_time: str
    event: str
    username: str = msgspec.field(name="user")
    harness: str
    file: str
    scope: str
    server: str
    kind: str
    transport: str
    host: str
    sha256: str = msgspec.field(name="definitionSha256")
    was: str
    secret: bool = msgspec.field(name="secretInDefinition")


def since(c: Connection, *, after: int, limit: int = DEFAULT_LIMIT, device: str = "") -> Page[TransitionRow]:
    """List what came after number `after`, oldest first. `next` is the number to go on after, always."""
    raise NotImplementedError


def newest(
    c: Connection, *, device: str = "", cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[TransitionRow]:
    """List transitions, newest first."""
    raise NotImplementedError
