# SPDX-License-Identifier: Apache-2.0
"""The audit log, newest first."""

from sqlalchemy import Connection

from halod.console.store.paging import DEFAULT_LIMIT, Page
from halod.console.store.read.rows import Row, Time


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


def audit(
    c: Connection, *, action: str = "", actor: str = "", cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[AuditRow]:
    """List lines, newest first; `action` and `actor` exact."""
    raise NotImplementedError
