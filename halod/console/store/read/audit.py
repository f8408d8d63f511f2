# SPDX-License-Identifier: Apache-2.0
"""The audit log, newest first."""

from typing import Final

from sqlalchemy import Connection, select

from halod.console.store.paging import DEFAULT_LIMIT, Page, checked
from halod.console.store.read.rows import Row, Time, columns
from halod.console.store.read.walk import Check, Equal, Listing, equals, read
from halod.console.store.schema import AUDIT


class AuditRow(Row, frozen=True, kw_only=True):
    """One line. `detail` is a JSON object as text."""

    seq: int
    time: Time
    actor: str
    actor_kind: str
    action: str
    target: str
    detail: str
    address: str


_A: Final = AUDIT.c
_LINES: Final = Listing(
    kind="audit",
    rows=select(AUDIT),
    key=(_A.seq,),
    types=(int,),
    make=lambda row: AuditRow(**columns(row, *AuditRow.__struct_fields__)),
    descending=True,
)


def audit(
    c: Connection, *, action: str = "", actor: str = "", cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[AuditRow]:
    """List lines, newest first; `action` and `actor` exact."""
    checked(action, actor)
    equal: list[Equal] = [(_A.actor, actor)] if actor else []
    checks: list[Check] = []
    if action and actor:
        checks.append(equals(_A.action, action))
    elif action:
        equal.append((_A.action, action))
    return read(c, _LINES, cursor=cursor, limit=limit, equal=equal, checks=checks)
