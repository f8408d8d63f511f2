# SPDX-License-Identifier: Apache-2.0
"""The database: connections, transactions and the one lock of writers that keep counts.

Plain (not asyncio) SQLAlchemy Core: reports are committed in groups by one thread, so the event loop waits for few
statements, and pages run on worker threads.

Durability: what was committed survives the end of the process, of the machine, and of its power. SQLite runs in WAL
mode with `synchronous=FULL` (NORMAL may lose the last commits when power fails, and a report that was answered with
204 has left its machine for good); PostgreSQL with `synchronous_commit` on, whatever the database's own default.
One sync a group of reports is what makes this affordable.
"""

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoSuchModuleError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from halod.errors import UsageError

CHANGE_LOCK: Final = 0x68616C6F_0001
"""PostgreSQL's advisory lock of `Store.change`; any number that nobody else uses in this database."""
MIGRATE_LOCK: Final = 0x68616C6F_0002
WRITER_CACHE: Final = 32_768
READER_CACHE: Final = 8_192
"""KiB of pages that a connection to SQLite keeps: there may be 40 that read, and they share what is mapped."""
BUSY_SECONDS: Final = 20
"""How long a writer waits for another one before it gives up."""
STATEMENT_SECONDS: Final = 30
"""How long one statement may run in PostgreSQL."""

_BEGIN: Final = "halod_begin"
_POSTGRES: Final = {"postgres", "postgresql", "postgresql+psycopg"}
_SQLITE: Final = {"sqlite", "sqlite+pysqlite"}
_CODES: Final = {
    "42501": "its account lacks a right there; every table has to be its own",
    "53300": "the server has no connection left",
    "57P03": "the server is starting or ending",
    "SQLITE_NOTADB": "the file is no SQLite database",
    "SQLITE_CORRUPT": "the file is damaged; restore a backup",
    "SQLITE_BUSY": "another program holds it",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "the file or its directory cannot be written",
    "SQLITE_CANTOPEN": "the file or its directory cannot be opened",
    "ConnectionTimeout": "nobody answers at its address",
}
"""What codes of SQLite, of PostgreSQL (appendix A of its manual) and types of psycopg mean."""
_SIGNS: Final = (
    ("authentication failed", "the server refuses the account or its password"),
    ("no password supplied", "the server wants a password, and the address has none"),
    ("does not exist", "the server has no such database or account"),
    ("resolve host", "there is no host of that name"),
    ("connection refused", "nobody answers at its address"),
    ("timeout expired", "nobody answers at its address"),
    ("on socket", "there is no server at that socket"),
    ("certificate", "the server's certificate does not count"),
    ("ssl", "server and sslmode do not agree on TLS"),
)
"""The same of an attempt to connect, for which psycopg has no code; in another language it stays a type's name."""


class Store:
    """One database, SQLite or PostgreSQL. Threads may use it at the same time.

    SQLite has two engines: one connection that writes, so that writers of this process queue instead of polling,
    and several that cannot write.
    """

    def __init__(self, engine: Engine, readers: Engine | None = None) -> None:
        self.engine = engine
        self._readers = readers or engine

    @classmethod
    def open(cls, url: str) -> "Store":
        """Open `url`; SQLite in WAL mode with foreign keys, a busy timeout, and a file that only its owner reads.

        Raises:
            UsageError: the address is not one, its driver is missing, or the database cannot be reached.
        """
        parsed = _parse(url)
        try:
            store = _open_sqlite(parsed) if parsed.drivername in _SQLITE else _open_postgresql(parsed)
        except (ImportError, NoSuchModuleError):
            raise UsageError(
                "the driver of PostgreSQL is not installed", advice="install halod[console,postgres]"
            ) from None
        try:
            with store.read() as connection:
                connection.execute(text("SELECT 1"))
        except (DBAPIError, PoolTimeout) as error:
            store.close()
            raise UsageError(f"the database cannot be opened: {_why(error)}") from None
        return store

    @property
    def sqlite(self) -> bool:
        """Whether this is SQLite."""
        return self.engine.dialect.name == "sqlite"

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the database and writes nothing."""
        with self._readers.connect() as connection:
            if not self.sqlite:
                connection = connection.execution_options(  # noqa: PLW2901 - the same one, with its mode
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a transaction, committed at the end, rolled back by an exception."""
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def change(self) -> Iterator[Connection]:
        """`write`, alone among all replicas: for whoever changes findings, counts or transitions (schema, rule 3)."""
        with self.write() as connection:
            self.lock(connection)
            yield connection

    def lock(self, connection: Connection) -> None:
        """Make a transaction of `write` one of `change`; what it read before may have changed meanwhile."""
        if not self.sqlite:  # SQLite: BEGIN IMMEDIATE has locked already
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": CHANGE_LOCK})

    def close(self) -> None:
        """Close every connection."""
        self._readers.dispose()
        self.engine.dispose()


def unavailable(error: BaseException) -> bool:
    """Tell whether `error` says that the database cannot answer now: gone, overloaded, or a lock was held too long."""
    if isinstance(error, PoolTimeout | InterfaceError):
        return True
    return isinstance(error, OperationalError) or (
        isinstance(error, DBAPIError) and error.connection_invalidated
    )


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise UsageError(
            "the address of the database is not one (sqlite:///FILE or postgresql://…)"
        ) from None
    if parsed.drivername in _POSTGRES:
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in _SQLITE:
        raise UsageError(
            "the console keeps its data in SQLite or PostgreSQL (sqlite:///FILE or postgresql://…)"
        )
    if not parsed.database or parsed.database == ":memory:" or parsed.query:
        raise UsageError(
            "the address of a SQLite database names a file: sqlite:////var/lib/halo-server/console.db"
        )
    return parsed


def refusal(error: BaseException) -> str:
    """Say why the database did not do what was asked; "" when that is not the database's doing."""
    if unavailable(error) or (isinstance(error, DBAPIError) and _code(error) in _CODES):
        return _why(error)
    return ""


def _why(error: BaseException) -> str:
    """Say what is wrong in words of our own: the driver's text may hold the address and its password."""
    code = _code(error)
    if code in _CODES:
        return _CODES[code]
    said = str(getattr(error, "orig", None) or error).lower()
    return next((words for sign, words in _SIGNS if sign in said), code)


def _code(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None)
    return str(code or type(cause).__name__)


# --- SQLite ------------------------------------------------------------------------------------------------


def _open_sqlite(url: URL) -> Store:
    path = url.database or ""
    _private_file(path)
    options: dict[str, Any] = {
        "connect_args": {"timeout": BUSY_SECONDS, "check_same_thread": False},
        "hide_parameters": True,  # an error's text holds no value
    }
    writer = create_engine(url, pool_size=1, max_overflow=0, pool_timeout=BUSY_SECONDS, **options)
    readers = create_engine(url, pool_size=8, max_overflow=32, pool_timeout=BUSY_SECONDS, **options)
    _prepare(writer, reading=False)
    _prepare(readers, reading=True)
    return Store(writer, readers)


def _private_file(path: str) -> None:
    """Make the file, or make it private: SQLite gives its log the same mode."""
    try:
        descriptor = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600
        )
    except OSError as error:
        raise UsageError(f"the database {path} cannot be opened: {os.strerror(error.errno or 0)}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"the database {path} is not a file")
        if found.st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    except PermissionError:
        raise UsageError(f"the database {path} belongs to another account") from None
    finally:
        os.close(descriptor)


def _prepare(engine: Engine, *, reading: bool) -> None:
    pragmas = (
        "journal_mode=WAL",
        "synchronous=FULL",
        "fullfsync=ON",  # macOS: a sync that reaches the disk
        "foreign_keys=ON",
        "trusted_schema=OFF",
        f"cache_size=-{READER_CACHE if reading else WRITER_CACHE}",
        "mmap_size=268435456",
        "temp_store=MEMORY",
        "journal_size_limit=67108864",
        *(("query_only=ON",) if reading else ()),
    )

    def connected(raw: sqlite3.Connection, _record: object) -> None:
        raw.isolation_level = None  # transactions begin below, not by the driver's guess
        for pragma in pragmas:
            raw.execute(f"PRAGMA {pragma}").close()

    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)


# --- PostgreSQL --------------------------------------------------------------------------------------------


def _open_postgresql(url: URL) -> Store:
    settings = {
        "statement_timeout": STATEMENT_SECONDS * 1000,
        "lock_timeout": BUSY_SECONDS * 1000,
        "idle_in_transaction_session_timeout": 60_000,
        "timezone": "UTC",
    }
    engine = create_engine(
        url,
        hide_parameters=True,  # an error's text holds no value
        pool_size=10,
        max_overflow=10,
        pool_timeout=BUSY_SECONDS,
        pool_pre_ping=True,
        pool_recycle=1800,
        connect_args={
            "connect_timeout": 10,
            "application_name": "halo-server",
            "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
            "keepalives_idle": 30,
            "tcp_user_timeout": 30_000,
        },
    )

    def connected(raw: Any, _record: object) -> None:  # noqa: ANN401 - psycopg may be missing
        # A stricter setting of the database's own (remote_apply) stays.
        raw.autocommit = True
        raw.execute(
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
        raw.autocommit = False

    event.listen(engine, "connect", connected)
    return Store(engine)
