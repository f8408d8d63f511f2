# SPDX-License-Identifier: Apache-2.0
"""What happened: transitions in the order in which they were committed."""

from typing import Final

import msgspec
from sqlalchemy import Connection, func, select

from halod.console.store.paging import DEFAULT_LIMIT, Page, checked, encode_cursor
from halod.console.store.read.rows import Row, Time, columns
from halod.console.store.read.walk import Listing, read
from halod.console.store.schema import DEVICES, TRANSITIONS


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


_T: Final = TRANSITIONS.c
_SINCE: Final = Listing(
    kind="transitions.since",
    rows=select(TRANSITIONS),
    key=(_T.seq,),
    types=(int,),
    make=lambda row: TransitionRow(**columns(row, *TransitionRow.__struct_fields__)),
    show=lambda found: select(found, func.coalesce(DEVICES.c.hostname, "").label("hostname")).outerjoin_from(
        found, DEVICES, DEVICES.c.device == found.c.device
    ),
)
_NEWEST: Final = msgspec.structs.replace(_SINCE, kind="transitions", descending=True)


def since(c: Connection, *, after: int, limit: int = DEFAULT_LIMIT, device: str = "") -> Page[TransitionRow]:
    """List what came after number `after`, oldest first. `next` is the number to go on after, always.

    Numbers grow in the order of commits (schema, rule 3): whoever asks again with `next` misses nothing and
    gets nothing twice.
    """
    checked(device)
    start = encode_cursor(_SINCE.kind, after)
    equal = [(_T.device, device)] if device else []
    rows = read(c, _SINCE, cursor=start, limit=limit, equal=equal).rows
    return Page(rows, str(rows[-1].seq if rows else after))


def newest(
    c: Connection, *, device: str = "", cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[TransitionRow]:
    """List transitions, newest first."""
    checked(device)
    equal = [(_T.device, device)] if device else []
    return read(c, _NEWEST, cursor=cursor, limit=limit, equal=equal)
