# SPDX-License-Identifier: Apache-2.0
"""The database: connections, transactions and the one lock of writers that keep counts.

Plain (not asyncio) SQLAlchemy Core: reports are committed in groups by one thread, so the event loop waits for few
statements, and pages run on worker threads.
"""

import contextlib
from collections.abc import Iterator

from sqlalchemy import Connection, Engine


class Store:
    """One database, SQLite or PostgreSQL. Threads may use it at the same time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, url: str) -> "Store":
        """Open `url`; SQLite in WAL mode with foreign keys, a busy timeout, and a file that only its owner reads.

        Raises:
            UsageError: the address is not one, its driver is missing, or the database cannot be reached.
        """
        raise NotImplementedError

    @property
    def sqlite(self) -> bool:
        """Whether this is SQLite."""
        return self.engine.dialect.name == "sqlite"

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the database and writes nothing."""
        with self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a transaction, committed at the end, rolled back by an exception."""
        with self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def change(self) -> Iterator[Connection]:
        """`write`, alone among all replicas: for whoever changes findings, counts or transitions (schema, rule 3)."""
        with self.engine.connect() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()
