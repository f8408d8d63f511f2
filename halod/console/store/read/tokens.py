# SPDX-License-Identifier: Apache-2.0
"""Tokens as lists show them: never their hashes."""

from typing import Final

from sqlalchemy import Connection, select

from halod.console.store.paging import DEFAULT_LIMIT, Page, checked
from halod.console.store.read.rows import Row, Time, columns
from halod.console.store.read.walk import Check, Equal, Listing, equals, read
from halod.console.store.schema import TOKENS


class TokenRow(Row, frozen=True, kw_only=True):
    """A token. A device's has `device`, a program's `name` and `role`. `used` is the day it was last used on."""

    id: int
    kind: str
    device: str
    name: str
    role: str
    created_by: str
    created: Time
    expires: Time
    revoked: Time | None
    used: Time | None


_T: Final = TOKENS.c
_TOKENS: Final = Listing(
    kind="tokens",
    rows=select(*(_T[name] for name in TokenRow.__struct_fields__)),
    key=(_T.id,),
    types=(int,),
    make=lambda row: TokenRow(**columns(row, *TokenRow.__struct_fields__)),
    descending=True,
)


def tokens(
    c: Connection, *, kind: str = "", device: str = "", cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[TokenRow]:
    """List tokens, the newest first; `kind` is `device` or `api`."""
    checked(kind, device)
    equal: list[Equal] = [(_T.device, device)] if device else []
    checks: list[Check] = []
    if kind and device:
        checks.append(equals(_T.kind, kind))
    elif kind:
        equal.append((_T.kind, kind))
    return read(c, _TOKENS, cursor=cursor, limit=limit, equal=equal, checks=checks)


def token(c: Connection, number: int) -> TokenRow | None:
    """Give one token, None if there is none."""
    row = c.execute(_TOKENS.rows.where(_T.id == number)).first()
    return None if row is None else _TOKENS.make(row)
