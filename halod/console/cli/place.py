# SPDX-License-Identifier: Apache-2.0
"""Under which address people open the console: `serve` notes it, so that other commands print links that work."""

import contextlib
from typing import Final

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from halod.console.security.site import site
from halod.console.settings import Settings, split_listen
from halod.console.store.schema import META

_KEY: Final = "address"


def address(settings: Settings) -> str:
    """Give the address that people open, without a slash at its end."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    host, port = split_listen(settings.listen)
    shown = f"[{host}]" if ":" in host else host
    return f"{site(settings).scheme}://{shown}:{port}"


def note_address(connection: Connection, base: str) -> None:
    """Keep where the console that runs on this database is."""
    if connection.execute(update(META).where(META.c.key == _KEY).values(value=base)).rowcount:
        return
    with contextlib.suppress(IntegrityError), connection.begin_nested():  # another replica was faster
        connection.execute(insert(META).values(key=_KEY, value=base))


def known_address(connection: Connection) -> str:
    """Give where the last console was that ran on this database, "" when none did."""
    return connection.execute(select(META.c.value).where(META.c.key == _KEY)).scalar() or ""
