# SPDX-License-Identifier: Apache-2.0
"""The state database's file: opened, migrated, checked, moved aside when it is damaged (design 9).

Invariants:

1. A transaction is on the disk when `run` returns (WAL, `synchronous=FULL`), or nothing of it is.
2. A damaged database is moved aside and started anew, at most once for each call; the newest COPIES damaged
   ones are kept. Whatever stands in the place of the database, a file of a later version too, is moved, not
   deleted.
3. What the disk refuses (full, read-only, I/O) is a StateFault. The connection is closed, and opened again by
   the next call: after a failed write it is not known what the kernel kept.
4. One connection, locked exclusively, so that no shared-memory file is needed: it works on any file system.

Any thread may call; `run` takes a lock, which is never held over anything slower than the disk.
"""

import contextlib
import errno
import os
import sqlite3
import stat
import threading
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from halod.agent.files import prepare_directory, sync_directory
from halod.agent.schema_sql import APPLICATION_ID, MIGRATIONS
from halod.errors import EnvironmentFault

FILE_NAME: Final = "state.db"
COPIES: Final = 3
"""Damaged databases that are kept for a person to look at."""
_WAL_LIMIT: Final = 4 * 1024 * 1024
"""Bytes that the write-ahead log keeps after a checkpoint."""

_ADVICE: Final = {
    "state-full": "make room on the file system of the state directory",
    "state-unwritable": "give the state directory to the agent's account, writable, mode 0700",
    "state-io": "look at the kernel's log: the file system of the state directory reports errors",
    "state-busy": "end the other program that has the state database open",
}
_FAULTS: Final = {
    sqlite3.SQLITE_FULL: "state-full",
    sqlite3.SQLITE_READONLY: "state-unwritable",
    sqlite3.SQLITE_CANTOPEN: "state-unwritable",
    sqlite3.SQLITE_PERM: "state-unwritable",
    sqlite3.SQLITE_AUTH: "state-unwritable",
    sqlite3.SQLITE_IOERR: "state-io",
    sqlite3.SQLITE_NOMEM: "state-io",
    sqlite3.SQLITE_BUSY: "state-busy",
    sqlite3.SQLITE_LOCKED: "state-busy",
}

_Result = TypeVar("_Result")


class StateFault(EnvironmentFault):
    """The state cannot be kept now: `code` is one of state-full, state-unwritable, state-io, state-busy."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the state directory cannot be written ({code})", advice=_ADVICE[code])
        self.code = code


class Damaged(Exception):
    """The database holds what halod did not write. Carries nothing of it."""


def fault_of(error: OSError) -> StateFault:
    """Turn an error of the file system into a StateFault."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return StateFault("state-full")
    return StateFault("state-io" if error.errno == errno.EIO else "state-unwritable")


class Database:
    """The database in one state directory."""

    def __init__(self, directory: str, migrations: Sequence[Iterable[str]] = MIGRATIONS) -> None:
        self.path = os.path.join(directory, FILE_NAME)
        self._directory = directory
        self._migrations = migrations
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._lock = threading.RLock()
        self.resets = 0
        """How often this object started the database anew."""

    def run(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run `work` in one transaction and give its result.

        After damage it is run once more, on a new database: it must have no effect but on the connection.

        Raises:
            StateFault: the disk does not let it; nothing has changed.
        """
        with self._lock:
            try:
                return self._once(work)
            except Damaged:
                self._start_anew()
            try:
                return self._once(work)
            except Damaged:
                raise StateFault("state-io") from None

    def close(self) -> None:
        """Close; the next `run` opens again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()

    def _once(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        try:
            return _transaction(self._connected(), work)
        except sqlite3.ProgrammingError:
            raise  # a fault of ours: no reason to throw a database away
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            self.close()
            word = _FAULTS.get(code & 0xFF) if isinstance(code, int) else None
            if word is None:
                raise Damaged from None
            raise StateFault(self._which(word)) from None
        except Damaged:
            self.close()
            raise
        except OSError as error:
            self.close()
            raise fault_of(error) from None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open()
            self._file = self._identity()
        elif self._identity() != self._file:
            raise Damaged  # removed or replaced: what is written now would be gone with the process
        return self._connection

    def _open(self) -> sqlite3.Connection:
        prepare_directory(self._directory)
        self._prepare_file()
        uri = "file:" + urllib.parse.quote(self.path) + "?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None, check_same_thread=False)
        try:
            _configure(connection)
            _migrate(connection, self._migrations)
        except BaseException:
            connection.close()
            raise
        return connection

    def _which(self, word: str) -> str:
        """Tell a file system that turned read-only from one that fails: SQLite has one code for both."""
        if word == "state-io" and not os.access(self._directory, os.W_OK):
            return "state-unwritable"
        return word

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _prepare_file(self) -> None:
        """Make the file with its mode before SQLite does; the log beside it gets the same one."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            found = os.lstat(self.path)
            if not stat.S_ISREG(found.st_mode):
                raise Damaged from None
            if found.st_mode & 0o177:
                os.chmod(self.path, 0o600)
            return
        os.close(descriptor)
        # The log of a database that is gone must not be read into the new one.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path + "-wal")
        sync_directory(self._directory)

    def _start_anew(self) -> None:
        """Move what is there aside, the log first: a database without its log is whole, if older."""
        try:
            for number in range(COPIES - 1, 0, -1):
                _move(self._copy(number), self._copy(number + 1))
                _move(self._copy(number) + "-wal", self._copy(number + 1) + "-wal")
            _move(self.path + "-wal", self._copy(1) + "-wal")
            _move(self.path, self._copy(1))
            sync_directory(self._directory)
        except OSError as error:
            raise fault_of(error) from None
        self.resets += 1

    def _copy(self, number: int) -> str:
        return f"{self.path}.broken.{number}"


def _move(source: str, target: str) -> None:
    """Rename over whatever is at the target; what is not there is not moved."""
    with contextlib.suppress(FileNotFoundError):
        try:
            os.replace(source, target)
        except (IsADirectoryError, NotADirectoryError):
            # One of them is a directory that somebody put there; both stay, under another name.
            os.replace(target, f"{target}.odd")
            os.replace(source, target)


def _configure(connection: sqlite3.Connection) -> None:
    """Set what is not kept in the file, and hold the file against what it must be."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    fresh = _is_fresh(connection)
    if fresh:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
    if not fresh and _pragma(connection, "quick_check(1)") != "ok":
        raise Damaged


def _is_fresh(connection: sqlite3.Connection) -> bool:
    """Tell whether nothing was written yet: a first start may have ended before the tables were made."""
    application = _pragma(connection, "application_id")
    if application == APPLICATION_ID:
        return False
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application or tables or _pragma(connection, "user_version"):
        raise Damaged
    return True


def _pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _migrate(connection: sqlite3.Connection, migrations: Sequence[Iterable[str]]) -> None:
    """Bring the tables to the newest version; one of a later halod counts as damaged."""
    version = _pragma(connection, "user_version")
    if not isinstance(version, int) or not 0 <= version <= len(migrations):
        raise Damaged

    def step(number: int) -> None:
        def work(db: sqlite3.Connection) -> None:
            for statement in migrations[number]:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {number + 1}")
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

        _transaction(connection, work)

    for number in range(version, len(migrations)):
        step(number)


def _transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise
    return result
