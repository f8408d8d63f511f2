# SPDX-License-Identifier: Apache-2.0
"""Copies of the database, while the console runs.

Invariants:

1. A file with the name of a backup is a whole one that was looked through: it is written under another name beside it,
   and is given its own at the end. One that is there is never written over.
2. Only its owner can read it.
3. The password of a database is in no argument of a process and in no message.
"""

import contextlib
import os
import secrets
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from sqlalchemy.engine import URL, make_url

from halod.console.store.migrate import HEAD
from halod.errors import EnvironmentFault, UsageError
from halod.status import clean

_LIBPQ: Final = {
    "host": "PGHOST",
    "port": "PGPORT",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "passfile": "PGPASSFILE",
    "service": "PGSERVICE",
    "channel_binding": "PGCHANNELBINDING",
    "gssencmode": "PGGSSENCMODE",
}
DUMP: Final = ("pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--no-password")


def backup(database_url: str, target: str) -> int:
    """Write a backup of a database to a new file; gives its size in bytes.

    Raises:
        UsageError: the target is there already, or `pg_dump` is not installed (the message has the command).
        EnvironmentFault: the copy could not be made, or is not whole.
    """
    url = make_url(database_url)
    path = os.path.abspath(target)
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already", advice="name a new file; none is written over")
    with _beside(path) as partial:
        if url.get_backend_name() == "sqlite":
            _copy_sqlite(url.database or "", partial)
        else:
            _dump(url, partial)
        return os.stat(partial).st_size


@contextlib.contextmanager
def _beside(path: str) -> Iterator[str]:
    """Give the name of an empty private file beside `path`, and at the end give it that name."""
    partial = f"{path}.part-{secrets.token_hex(4)}"
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        try:
            yield partial
            _sync(partial)
            _place(partial, path)
            _sync(os.path.dirname(path))
        finally:
            for name in (partial, f"{partial}-journal", f"{partial}-wal", f"{partial}-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name)
    except OSError as error:
        raise EnvironmentFault(f"cannot write {path}: {os.strerror(error.errno or 0)}") from None


def _place(partial: str, path: str) -> None:
    try:
        os.link(partial, path)
    except FileExistsError:
        raise UsageError(f"{path} is there already", advice="name a new file; none is written over") from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise UsageError(f"{path} is there already", advice="name a new file") from None
        os.rename(partial, path)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- SQLite -------------------------------------------------------------------------------------------------


def _copy_sqlite(source: str, partial: str) -> None:
    """Copy with SQLite's online backup: one state of the database, whatever is written meanwhile."""
    try:
        with (
            contextlib.closing(sqlite3.connect(f"file:{quote(source)}?mode=ro", uri=True)) as here,
            contextlib.closing(sqlite3.connect(partial, isolation_level=None)) as there,
        ):
            here.execute("PRAGMA query_only=ON")
            here.backup(there)
            there.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
            check(there)
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        raise EnvironmentFault(f"the copy could not be made ({name})") from None


def check(database: sqlite3.Connection) -> None:
    """Look a copy through, whole. Raises EnvironmentFault when it is damaged or of another release."""
    found = database.execute("PRAGMA integrity_check(1)").fetchone()
    if found is None or found[0] != "ok":
        raise EnvironmentFault(
            "the copy is damaged (integrity_check)", advice="look at the disk, and at the original"
        )
    version = database.execute("SELECT version_num FROM alembic_version").fetchone()
    if version is None or version[0] != HEAD:
        raise EnvironmentFault(
            "the copy is not of this release's schema", advice="halo-server migrate, then again"
        )


# --- PostgreSQL ---------------------------------------------------------------------------------------------


def _dump(url: URL, partial: str) -> None:
    program = shutil.which(DUMP[0])
    if program is None:
        command = " ".join(DUMP[:-1])
        raise UsageError(
            "pg_dump is not installed here",
            advice=f"where it is: {command} --file=FILE {shown(url)}",
        )
    environment = {**os.environ, **environment_of(url)}
    _run([program, *DUMP[1:], f"--file={partial}"], environment, "pg_dump")
    restore = shutil.which("pg_restore")
    if restore is not None:
        _run([restore, "--list", partial], environment, "pg_restore --list")


def _run(command: list[str], environment: dict[str, str], name: str) -> None:
    done = subprocess.run(  # noqa: S603 - a program out of PATH with words of ours
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode == 0:
        return
    text = done.stderr.decode("utf-8", "replace")
    if "server version mismatch" in text:
        raise UsageError("pg_dump is older than the server", advice="install the one of the server's release")
    said = clean(text.strip().partition("\n")[0], 300)
    raise EnvironmentFault(f"{name} has failed (exit status {done.returncode}): {said}")


def environment_of(url: URL) -> dict[str, str]:
    """Give what libpq reads from the environment to come to the same database."""
    given = {
        "PGUSER": url.username,
        "PGPASSWORD": None if url.password is None else str(url.password),
        "PGHOST": url.host,
        "PGPORT": None if url.port is None else str(url.port),
        "PGDATABASE": url.database,
    }
    for name, variable in _LIBPQ.items():
        value = url.query.get(name)
        if isinstance(value, str):
            given[variable] = value
    return {name: value for name, value in given.items() if value}


def shown(url: URL) -> str:
    """Give an address for a person, without its password."""
    plain = url.set(drivername="postgresql", password=None)
    return plain.render_as_string(hide_password=True)
