# SPDX-License-Identifier: Apache-2.0
"""The list of deliveries as people see it, and what they do with dead ones: retry, discard.

For API, pages and command line alike. Whoever changes something writes it to the audit log in the same transaction.
"""

from typing import Final, Literal

import msgspec
from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from halod.console.hooks.deliver import release
from halod.console.security import audit
from halod.console.store.paging import DEFAULT_LIMIT, Page, checked
from halod.console.store.read.rows import Row, Time, columns
from halod.console.store.read.walk import Check, Listing, read
from halod.console.store.schema import DELIVERIES

State = Literal["due", "done", "dead"]
STATES: Final = ("due", "done", "dead")
_D: Final = DELIVERIES.c


class DeliveryRow(Row, frozen=True, kw_only=True):
    """A delivery. `payload` is the JSON that is sent; `last_error` a word of `hooks.send`, "" when there is none."""

    seq: int = msgspec.field(name="id")
    hook: str
    event: str
    state: str
    tries: int
    created: Time
    next_try: Time
    last_error: str
    payload: str


class By(msgspec.Struct, frozen=True, kw_only=True):
    """Who does something: what the audit log is told."""

    actor: str
    actor_kind: str
    address: str = ""


_NEWEST: Final = Listing(
    kind="deliveries",
    rows=select(DELIVERIES),
    key=(_D.seq,),
    types=(int,),
    make=lambda row: DeliveryRow(**columns(row, *DeliveryRow.__struct_fields__)),
    descending=True,
)


def deliveries(
    c: Connection, *, state: str = "", hook: str = "", cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[DeliveryRow]:
    """List deliveries, newest first; `state` and `hook` exact."""
    checked(state, hook)
    index = [_D.state == state] if state else []
    checks: list[Check] = [lambda found: found.hook == hook] if hook else []
    return read(c, _NEWEST, cursor=cursor, limit=limit, index=index, checks=checks)


def counts(c: Connection) -> dict[tuple[str, str], int]:
    """Give how many deliveries each hook has in each state."""
    rows = c.execute(select(_D.hook, _D.state, func.count()).group_by(_D.hook, _D.state))
    return {(row[0], row[1]): row[2] for row in rows}


def retry(c: Connection, *, by: By, now: int, seq: int = 0, hook: str = "") -> int:
    """Send a dead delivery again, or with `hook` all dead ones of a hook; gives how many.

    They begin anew, with the same id and payload. A hook that had answered 410 is sent to again.
    """
    which = _dead(seq, hook)
    hooks = [row.hook for row in c.execute(select(_D.hook).where(*which).distinct())]
    if not hooks:
        return 0
    release(c, hooks)
    again = c.execute(
        update(DELIVERIES).where(*which).values(state="due", tries=0, next_try=now, last_error="")
    ).rowcount
    _record(c, "webhook.retry", hook or f"delivery {seq}", again, by=by, now=now)
    return again


def discard(c: Connection, *, by: By, now: int, seq: int = 0, hook: str = "") -> int:
    """Drop a dead delivery, or with `hook` all dead ones of a hook; gives how many."""
    dropped = c.execute(delete(DELIVERIES).where(*_dead(seq, hook))).rowcount
    if dropped:
        _record(c, "webhook.discard", hook or f"delivery {seq}", dropped, by=by, now=now)
    return dropped


def _dead(seq: int, hook: str) -> list[ColumnElement[bool]]:
    if bool(seq) == bool(hook):
        raise ValueError("name a delivery or a hook")
    return [_D.state == "dead", _D.seq == seq if seq else _D.hook == hook]


def _record(c: Connection, action: str, target: str, count: int, *, by: By, now: int) -> None:
    audit.record(
        c,
        time=now,
        actor=by.actor,
        actor_kind=by.actor_kind,
        address=by.address,
        action=action,
        target=target,
        deliveries=count,
    )
