# SPDX-License-Identifier: Apache-2.0
"""SQLite databases (Halo, Warp) from bytes: opened in memory, read only, with a brake.

Invariants:

1. No file is opened or written: the image is deserialised, temporary storage is memory, ATTACH is off.
2. The schema is not trusted: its views, triggers and defaults may call only harmless functions.
3. All statements on one connection together run at most `STEPS` virtual machine steps.
4. SQLite's messages quote schemas and values; only `Malformed` leaves, unchained.

`sqlite3` cannot be imported by a confined worker: this module is imported before the fork (about 1.3 ms
beside msgspec).
"""

import sqlite3
from typing import Final

from halod.harnesses.formats.base import Malformed
from halod.harnesses.formats.wal import merge

STEPS: Final = 20_000_000  # about a second
_STRIDE: Final = 10_000
_LONGEST: Final = 16 << 20  # bytes of one value or row
# UnicodeError: a message that quotes a schema which is not UTF-8.
_FAULTS: Final = (sqlite3.Error, UnicodeError, MemoryError, OverflowError)
_ROWS: Final = 10_000
_SETTINGS: Final = (
    "PRAGMA trusted_schema=0",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cell_size_check=1",
    "PRAGMA query_only=1",
)


class Unsupported(Exception):
    """This Python's sqlite3 cannot open a database from memory (built without deserialize)."""


def open_database(database: bytes | bytearray, log: bytes | bytearray | None = None) -> sqlite3.Connection:
    """Open a database file's bytes with its write-ahead log's committed frames applied; the caller closes it.

    Text that is not UTF-8 comes with U+FFFD, as in Node.

    Raises:
        Malformed: not a database, truncated, or its log does not belong to it.
        Unsupported: see there.
    """
    if not hasattr(sqlite3.Connection, "deserialize"):
        raise Unsupported
    image = merge(database, log)
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
    try:
        if image:
            connection.deserialize(image)
        del image
        _harden(connection)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except _FAULTS:
        connection.close()
    else:
        return connection
    raise Malformed


def rows(connection: sqlite3.Connection, query: str) -> list[tuple[object, ...]]:
    """Run a query of ours and give its rows, at most 10,000.

    Raises:
        Malformed: the database is damaged, lacks the table or a column, or the query ran into a limit.
    """
    try:
        found: list[tuple[object, ...]] = connection.execute(query).fetchmany(_ROWS + 1)
    except _FAULTS:
        found = []
    else:
        if len(found) <= _ROWS:
            return found
    raise Malformed


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Give the column names of an ordinary table; none when there is no such table, or only a view or
    virtual one.

    Raises:
        Malformed: the schema cannot be read.
    """
    found = rows(connection, "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
    if (table,) not in found:
        return frozenset()
    quoted = table.replace('"', '""')
    return frozenset(str(row[1]) for row in rows(connection, f'PRAGMA table_info("{quoted}")'))


def _harden(connection: sqlite3.Connection) -> None:
    """Put limits, settings and the brake on a connection before anything is read."""
    connection.text_factory = _text
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0)
    for setting in _SETTINGS:
        connection.execute(setting)
    connection.set_progress_handler(_Brake().step, _STRIDE)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


class _Brake:
    """Counts the calls of a progress handler and stops the statement when the steps are used up."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = STEPS // _STRIDE

    def step(self) -> bool:
        self.left -= 1
        return self.left < 0
