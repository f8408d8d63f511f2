# SPDX-License-Identifier: Apache-2.0
"""Databases from bytes: the log's committed frames count, nothing is written, hostile files end as Malformed."""

import random
import sqlite3
import struct
import traceback

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.harnesses.formats import Malformed, sqlite
from halod.harnesses.formats.sqlite import Unsupported, columns, open_database, rows
from halod.harnesses.formats.wal import merge

COUNT = "SELECT count(*) FROM installed_apps"
NAMES = "SELECT id FROM installed_apps ORDER BY id"


class Live:
    """A database in write-ahead mode that is still open, as a running harness has it."""

    def __init__(self, path, page_size=4096):
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute(f"PRAGMA page_size={page_size}")
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA wal_autocheckpoint=0")
        self.connection.execute("CREATE TABLE installed_apps(id TEXT PRIMARY KEY, spec_json TEXT)")

    def add(self, *names, body="x"):
        self.connection.execute("BEGIN")
        self.connection.executemany(
            "INSERT INTO installed_apps VALUES(?, ?)", [(name, body) for name in names]
        )
        self.connection.execute("COMMIT")

    def checkpoint(self, kind="TRUNCATE"):
        self.connection.execute(f"PRAGMA wal_checkpoint({kind})")

    def files(self):
        log = self.path.with_name(self.path.name + "-wal")
        return self.path.read_bytes(), log.read_bytes() if log.exists() else b""


@pytest.fixture
def live(tmp_path):
    database = Live(tmp_path / "halo.db")
    yield database
    database.connection.close()


def ask(database, log=None, query=NAMES):
    connection = open_database(database, log)
    try:
        return rows(connection, query)
    finally:
        connection.close()


def with_recovery(tmp_path, database, log):
    """What SQLite itself makes of the two files."""
    path = tmp_path / "copy.db"
    path.write_bytes(database)
    path.with_name("copy.db-wal").write_bytes(log)
    connection = sqlite3.connect(path)
    try:
        return connection.execute(NAMES).fetchall()
    except sqlite3.DatabaseError:
        return None
    finally:
        connection.close()


def test_rows_in_the_log_are_seen(live):
    live.add("a")
    live.checkpoint()
    live.add("b", "c")
    database, log = live.files()
    assert ask(database, log) == [("a",), ("b",), ("c",)]
    assert ask(database) == ask(database, b"") == [("a",)]


@pytest.mark.parametrize("page_size", [512, 4096, 65536])
def test_every_page_size_and_a_database_that_lies_wholly_in_the_log(tmp_path, page_size):
    database = Live(tmp_path / "x.db", page_size)
    database.add(*(f"{n:04}" for n in range(400)), body="y" * 300)
    found = ask(*database.files(), COUNT)
    database.connection.close()
    assert found == [(400,)]


def test_a_rolled_back_or_torn_transaction_does_not_count(live, tmp_path):
    live.add("a")
    live.add(*(f"b{n}" for n in range(200)), body="z" * 200)
    database, log = live.files()
    for cut in (31, 32, 100, 4152, len(log) // 2, len(log) - 4120, len(log) - 1, len(log)):
        mine = ask(database, log[:cut]) if with_recovery(tmp_path, database, log[:cut]) is not None else None
        assert mine == with_recovery(tmp_path, database, log[:cut])
    assert ask(database, log[:-1]) == [("a",)]


def test_frames_of_an_older_log_do_not_count(live):
    live.add(*(f"a{n}" for n in range(300)), body="w" * 100)
    live.checkpoint("RESTART")
    live.connection.execute("DELETE FROM installed_apps WHERE id <> 'a1'")
    live.checkpoint("RESTART")
    live.add("new")
    database, log = live.files()
    assert len(log) > 3 * 4120, "old frames follow the new ones"
    assert ask(database, log) == [("a1",), ("new",)]


def test_a_shrunk_database_is_cut(live):
    live.add(*(f"a{n}" for n in range(300)), body="w" * 500)
    live.checkpoint()
    live.connection.execute("DELETE FROM installed_apps")
    live.connection.execute("VACUUM")
    database, log = live.files()
    assert len(merge(database, log)) < len(database)
    assert ask(database, log) == []


def test_recovery_agrees_with_sqlite_on_damaged_logs(live, tmp_path):
    live.add("a")
    live.checkpoint()
    for n in range(12):
        live.add(f"b{n:02}", body="q" * 700)
    database, log = live.files()
    rng = random.Random(7)
    for _ in range(60):
        damaged = bytearray(log)
        damaged[rng.randrange(len(log))] ^= 1 << rng.randrange(8)
        theirs = with_recovery(tmp_path, database, bytes(damaged))
        assert ask(database, bytes(damaged)) == theirs


def big_endian(log):
    """Write a log's checksums in the other byte order, as a big-endian machine does."""
    out = bytearray(log)

    def run(data, sums):
        first, second = sums
        words = struct.unpack(f">{len(data) // 4}I", data)
        for even, odd in zip(words[::2], words[1::2], strict=True):
            first = (first + even + second) % 2**32
            second = (second + odd + first) % 2**32
        return first, second

    out[:4] = struct.pack(">I", 0x377F0683)
    sums = run(bytes(out[:24]), (0, 0))
    out[24:32] = struct.pack(">2I", *sums)
    size = int.from_bytes(out[8:12], "big")
    for at in range(32, len(out), 24 + size):
        sums = run(bytes(out[at + 24 : at + 24 + size]), run(bytes(out[at : at + 8]), sums))
        out[at + 16 : at + 24] = struct.pack(">2I", *sums)
    return bytes(out)


def test_checksums_in_big_endian_order(live, tmp_path):
    live.add("a", "b")
    database, log = live.files()
    other = big_endian(log)
    assert other != log
    assert ask(database, other) == with_recovery(tmp_path, database, other) == [("a",), ("b",)]


def resealed(log, at, fields):
    """Change header words of the frame at `at` and give it a checksum that fits."""
    out = bytearray(log)
    for offset, value in fields.items():
        out[at + offset : at + offset + 4] = struct.pack(">I", value)
    return big_endian(bytes(out))


@pytest.mark.parametrize(
    "fields", [{0: 0xFFFFFFFF, 4: 0xFFFFFFFF}, {4: 0x7FFFFFFF}, {0: 5_000_000, 4: 5_000_000}]
)
def test_huge_page_counts_take_no_memory(live, fields):
    live.add("a")
    database, log = live.files()
    last = len(log) - 24 - 4096
    with pytest.raises(Malformed):
        open_database(database, resealed(log, last, fields))


def test_page_number_zero_ends_the_log(live):
    live.add("a")
    live.checkpoint()
    live.add("b")
    database, log = live.files()
    assert ask(database, resealed(log, 32, {0: 0})) == [("a",)]


def test_log_of_another_page_size_is_malformed(live, tmp_path):
    other = Live(tmp_path / "other.db", 1024)
    other.add("a")
    log = other.files()[1]
    other.connection.close()
    with pytest.raises(Malformed):
        open_database(live.files()[0], log)


@pytest.mark.parametrize(
    "log", [b"", b"x", b"\0" * 32, b"CANARY" * 100, struct.pack(">8I", 0x377F0682, 1, 4096, 0, 0, 0, 0, 0)]
)
def test_a_broken_log_header_is_an_empty_log(live, log):
    live.add("a")
    live.checkpoint()
    assert ask(live.files()[0], log) == [("a",)]


def test_zero_bytes_are_an_empty_database():
    connection = open_database(b"", b"whatever")
    assert columns(connection, "installed_apps") == frozenset()
    connection.close()


def spoiled(database, at, value):
    out = bytearray(database)
    out[at : at + len(value)] = value
    return bytes(out)


def test_not_a_database_is_malformed(live):
    live.add("CANARYrow", body="CANARYbody" * 500)
    live.checkpoint()
    good = live.files()[0]
    bad = [
        b"CANARY not a database",
        b"CANARY" * 1000,
        good[:100],
        good[:4096],
        good[:-4096],
        b"\0" + good[1:],
        spoiled(good, 16, b"\0\0"),
        spoiled(good, 16, b"\x10\x01"),
        spoiled(good, 100, b"CANARY" * 50),
        spoiled(good, 28, b"\xff\xff\xff\xff"),
    ]
    for data in bad:
        with pytest.raises(Malformed) as error:
            ask(data)
        assert error.value.__context__ is None
        assert "CANARY" not in "".join(traceback.format_exception(error.value))


def test_errors_of_a_query_hold_nothing_of_the_database(live):
    live.connection.execute("CREATE VIEW v AS SELECT CANARYcolumn FROM CANARYtable")
    live.checkpoint()
    connection = open_database(live.files()[0])
    for query in ("SELECT * FROM v", "SELECT * FROM CANARYmissing", "SELECT CANARY FROM installed_apps"):
        with pytest.raises(Malformed) as error:
            rows(connection, query)
        assert error.value.__context__ is None
        assert "no such" not in "".join(traceback.format_exception(error.value))
    connection.close()


def test_writing_attaching_and_loading_are_off(live, tmp_path, monkeypatch):
    live.checkpoint()
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    connection = open_database(live.files()[0])
    for query in (
        "INSERT INTO installed_apps VALUES(1, 2)",
        "CREATE TABLE t(a)",
        "CREATE TEMP TABLE t(a)",
        "ATTACH 'new.db' AS n",
        "VACUUM INTO 'new.db'",
        "SELECT load_extension('x')",
        "SELECT zeroblob(100000000)",
    ):
        with pytest.raises(Malformed):
            rows(connection, query)
    connection.close()
    assert sorted(tmp_path.iterdir()) == before


def test_brake_stops_a_view_that_never_ends(live):
    live.connection.execute("DROP TABLE installed_apps")
    live.connection.execute(
        "CREATE VIEW installed_apps AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r) SELECT id FROM r"
    )
    live.checkpoint()
    connection = open_database(live.files()[0])
    assert columns(connection, "installed_apps") == frozenset()
    with pytest.raises(Malformed):
        rows(connection, COUNT)
    with pytest.raises(Malformed):
        rows(connection, "SELECT id FROM installed_apps")
    connection.close()


def test_columns_are_those_of_ordinary_tables_only(live):
    live.connection.execute('CREATE TABLE "odd ""name"(a, "b c")')
    live.connection.execute("CREATE VIRTUAL TABLE virtual USING fts4(a)")
    live.checkpoint()
    connection = open_database(live.files()[0])
    assert columns(connection, "installed_apps") == {"id", "spec_json"}
    assert columns(connection, 'odd "name') == {"a", "b c"}
    assert columns(connection, "virtual") == columns(connection, "missing") == frozenset()
    connection.close()


def test_text_that_is_not_utf8_is_replaced(live):
    live.connection.execute("INSERT INTO installed_apps VALUES(CAST(x'61ff' AS TEXT), NULL)")
    assert ask(*live.files()) == [("a\ufffd",)]


def test_too_many_rows_are_refused(live):
    live.add(*(str(n) for n in range(10_001)))
    database, log = live.files()
    assert ask(database, log, "SELECT id FROM installed_apps LIMIT 10000")[-1] is not None
    with pytest.raises(Malformed):
        ask(database, log)


def test_python_without_deserialize_is_said_so(monkeypatch):
    monkeypatch.setattr(sqlite.sqlite3, "Connection", object)
    with pytest.raises(Unsupported):
        open_database(b"")


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 255)), max_size=8), st.integers(0, 20_000))
@settings(max_examples=150, deadline=None)
def test_any_damage_gives_rows_or_malformed(damage, cut):
    if not SAMPLE:
        SAMPLE.extend(sample())
    parts = [bytearray(part) for part in SAMPLE]
    for at, value in damage:
        part = parts[at % 2]
        part[at % len(part)] = value
    for log in (parts[1], parts[1][:cut], None):
        try:
            ask(parts[0], log, "SELECT id, spec_json FROM installed_apps")
        except Malformed:
            continue


SAMPLE: list[bytes] = []


def sample():
    """A small database and its log, made once."""
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        database = Live(pathlib.Path(folder) / "s.db", 512)
        database.add("a", body="y" * 900)
        database.checkpoint()
        database.add(*(f"b{n}" for n in range(20)), body="z" * 100)
        files = database.files()
        database.connection.close()
    return files
