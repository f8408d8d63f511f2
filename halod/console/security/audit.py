# SPDX-License-Identifier: Apache-2.0
"""The audit log: who did what, written in the transaction that does it."""

import msgspec
from sqlalchemy import Connection, insert

from halod.console.store.schema import AUDIT
from halod.status import clean

Value = str | int | bool


def record(
    connection: Connection,
    *,
    time: int,
    actor: str,
    actor_kind: str,
    action: str,
    target: str = "",
    address: str = "",
    **detail: Value,
) -> None:
    """Write one line. `action` is a fixed word such as `device.accept`; no secret belongs into any field."""
    connection.execute(
        insert(AUDIT).values(
            time=time,
            actor=clean(actor, 256),
            actor_kind=actor_kind,
            action=action,
            target=clean(target, 256),
            address=address,
            detail=msgspec.json.encode(detail).decode(),
        )
    )
