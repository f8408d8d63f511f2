# SPDX-License-Identifier: Apache-2.0
"""Connections, transactions and migrations, on both engines."""

import os
import stat
import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError

from halod.console import migrations
from halod.console.store import migrate
from halod.console.store.engine import Store
from halod.console.store.schema import META, METADATA
from halod.errors import UsageError


@pytest.fixture(params=["sqlite", "postgresql"])
def bare(request, tmp_path):
    """A store without tables."""
    if request.param == "sqlite":
        opened = Store.open(f"sqlite:///{tmp_path}/bare.db")
    else:
        opened = Store.open(request.getfixturevalue("empty_postgres"))
    yield opened
    opened.close()


def test_write_commits_and_rolls_back(store):
    """What ends well is there, what raises is not."""
    with store.write() as c:
        c.execute(insert(META).values(key="a", value="1"))
    with pytest.raises(DBAPIError), store.change() as c:
        c.execute(insert(META).values([{"key": "b", "value": "1"}, {"key": "a", "value": "1"}]))
    with store.read() as c:
        assert c.execute(select(META.c.key)).scalars().all() == ["a"]


def test_read_cannot_write(store):
    """A page that would write fails."""
    with pytest.raises(DBAPIError), store.read() as c:
        c.execute(insert(META).values(key="a", value="1"))
    with store.write() as c:  # and the pool is none the worse
        c.execute(insert(META).values(key="a", value="1"))


def test_read_sees_one_state(store):
    """What is committed meanwhile is not seen half."""
    with store.read() as c:
        assert c.execute(select(META.c.key)).all() == []
        with store.write() as other:
            other.execute(insert(META).values(key="a", value="1"))
        assert c.execute(select(META.c.key)).all() == []
    with store.read() as c:
        assert len(c.execute(select(META.c.key)).all()) == 1


def test_changes_are_alone(store):
    """Read, then write: with the lock, no addition of eight threads is lost."""
    with store.write() as c:
        c.execute(insert(META).values(key="n", value="0"))

    def add():
        for _ in range(5):
            with store.change() as c:
                number = int(c.execute(select(META.c.value)).scalar_one())
                c.execute(META.update().values(value=str(number + 1)))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.read() as c:
        assert c.execute(select(META.c.value)).scalar_one() == "40"


def test_sqlite_is_durable_and_private(tmp_path):
    """The file and its log are the owner's; a commit waits for the disk."""
    path = tmp_path / "console.db"
    path.touch(0o644)
    store = Store.open(f"sqlite:///{path}")
    migrate.upgrade(store)
    with store.write() as c:
        asked = {
            name: c.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert asked == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    for name in os.listdir(tmp_path):
        assert stat.S_IMODE(os.stat(tmp_path / name).st_mode) == 0o600, name
    store.close()


def test_postgresql_is_durable(postgres_url):
    """A database whose own default is to lose the last commits does not make the console lose them."""
    store = Store.open(postgres_url)
    with store.write() as c:
        assert c.execute(text("SHOW synchronous_commit")).scalar() == "on"
        assert c.execute(text("SHOW statement_timeout")).scalar() == "30s"
    with store.read() as c:
        assert c.execute(text("SHOW transaction_isolation")).scalar() == "repeatable read"
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://u:CANARYpw@db/x",
        "sqlite:////nonexistent/place/console.db",
        "postgresql://u:CANARYpw@localhost:1/x",
        "postgresql://u:CANARYpw@/x?host=/nonexistent",
    ],
)
def test_addresses_that_are_none(url):
    """One clear line without the address's password, and nothing chained that holds it."""
    with pytest.raises(UsageError) as caught:
        Store.open(url)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_link_is_not_opened(tmp_path):
    """The file that is made private is the one that was named."""
    (tmp_path / "link.db").symlink_to(tmp_path / "target.db")
    with pytest.raises(UsageError):
        Store.open(f"sqlite:///{tmp_path}/link.db")
    with pytest.raises(UsageError):
        Store.open(f"sqlite:///{tmp_path}")


# --- migrations --------------------------------------------------------------------------------------------


def test_migrated_is_the_schema(bare):
    """Tables, columns, types, defaults, keys and indexes: as `METADATA` would make them."""
    assert migrate.state(bare) == "empty"
    with pytest.raises(UsageError):
        migrate.require_current(bare)
    assert migrate.upgrade(bare) == "empty"
    assert migrate.state(bare) == "current"
    migrate.require_current(bare)
    with bare.read() as c:
        context = MigrationContext.configure(c, opts={"target_metadata": METADATA})
        assert compare_metadata(context, METADATA) == []
        migrated = described(c)
    with bare.write() as c:
        found = MetaData()
        found.reflect(c)
        found.drop_all(c)
        METADATA.create_all(c)
    with bare.read() as c:
        made = described(c)
    migrated.pop("alembic_version")
    assert migrated == made


def described(c):
    """Give all that the database says of its tables; SQLite the statements that made them, too."""
    found = {}
    inspector = inspect(c)
    for name in inspector.get_table_names():
        found[name] = {
            "columns": [{**column, "type": str(column["type"])} for column in inspector.get_columns(name)],
            "primary": inspector.get_pk_constraint(name),
            "unique": sorted(inspector.get_unique_constraints(name), key=lambda one: one["name"]),
            "foreign": inspector.get_foreign_keys(name),
            "indexes": sorted(inspector.get_indexes(name), key=lambda one: one["name"]),
        }
        if c.dialect.name == "sqlite":
            made = c.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).scalar()
            found[name]["autoincrement"] = "AUTOINCREMENT" in made
    return found


def test_a_second_upgrade_changes_nothing(store):
    assert migrate.upgrade(store) == "current"


def test_upgrades_at_the_same_time(bare):
    """Replicas that start together: one migrates, the others find it done."""
    found, failed = [], []

    def run():
        try:
            found.append(migrate.upgrade(bare))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(found) == ["current", "current", "current", "empty"]


def test_a_later_schema_is_refused(store):
    """A release before touches nothing."""
    with store.write() as c:
        c.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert migrate.state(store) == "newer"
    for refused in (migrate.upgrade, migrate.require_current):
        with pytest.raises(UsageError, match="later release"):
            refused(store)


def test_tables_of_others_are_left_alone(bare):
    """A database that is somebody else's is refused, not mixed with."""
    with bare.write() as c:
        c.execute(text("CREATE TABLE theirs (a INTEGER)"))
    with pytest.raises(UsageError, match="tables already"):
        migrate.upgrade(bare)
    with bare.read() as c:
        assert inspect(c).get_table_names() == ["theirs"]


def test_the_head_is_the_newest_file():
    """`store.migrate`, which loads no alembic to compare, knows every version there is."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", os.path.dirname(migrations.__file__))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [migrate.HEAD]
    assert {script.revision for script in scripts.walk_revisions()} == migrate._VERSIONS
