# SPDX-License-Identifier: Apache-2.0
"""Brings a database to the schema of this release: one transaction, under a lock, so that replicas may all try.

Steps go forward only. A release before changes nothing in a database that a later one has migrated.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Final, Literal

from sqlalchemy import Connection, inspect, text

from halod.console.store.engine import MIGRATE_LOCK, Store
from halod.errors import UsageError

HEAD: Final = "0001"
"""The newest version; a test holds it to the files of `migrations/versions`."""

State = Literal["empty", "behind", "current", "newer"]
_VERSIONS: Final = frozenset({"0001"})


def state(store: Store) -> State:
    """Tell how the database stands to this release; loads no alembic."""
    with store.read() as connection:
        return _state(version(connection))


def version(connection: Connection) -> str:
    """Give the version that a database is at; "" when it has none."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return str(found or "")


def require_current(store: Store) -> None:
    """Refuse a database that is not at this release's schema.

    Raises:
        UsageError: with what to do about it.
    """
    found = state(store)
    if found == "newer":
        raise UsageError(_NEWER)
    if found != "current":
        raise UsageError("the database has not been migrated to this release", advice="halo-server migrate")


def upgrade(store: Store) -> State:
    """Migrate to this release's schema and give the state that was found.

    Raises:
        UsageError: the database is of a later release, or holds tables of somebody else.
    """
    from alembic import command
    from alembic.config import Config

    with _alone(store) as connection:
        found = _state(version(connection))
        if found == "newer":
            raise UsageError(_NEWER)
        if found == "empty" and inspect(connection).get_table_names():
            raise UsageError("the database has tables already, and none of them is the console's")
        if found != "current":
            config = Config()
            config.set_main_option(
                "script_location", os.path.join(os.path.dirname(__file__), "..", "migrations")
            )
            config.set_main_option("path_separator", "os")
            config.attributes["connection"] = connection
            command.upgrade(config, HEAD)
        return found


_NEWER: Final = "the database has been migrated by a later release of halo-server"


def _state(found: str) -> State:
    if not found:
        return "empty"
    if found == HEAD:
        return "current"
    return "behind" if found in _VERSIONS else "newer"


@contextlib.contextmanager
def _alone(store: Store) -> Iterator[Connection]:
    with store.write() as connection:
        if not store.sqlite:  # SQLite: BEGIN IMMEDIATE
            connection.execute(text("SET LOCAL lock_timeout = '600s'"))
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATE_LOCK})
        yield connection
