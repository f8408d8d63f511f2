# SPDX-License-Identifier: Apache-2.0
"""A migrated, empty store on both engines: `store`, with the parameters sqlite and postgresql.

PostgreSQL is a real server: one for each process of pytest, without network, started when the first test asks for it. Each
test has a database to itself, copied from a template that was migrated once, or emptied after a test before.
"""

import itertools
import shutil

import pytest
from sqlalchemy import event

from halod.console.store.engine import Store
from halod.console.store.migrate import HEAD, upgrade
from halod.console.store.schema import METADATA
from tests.console.support_postgres import running

ENGINES = ("sqlite", "postgresql")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of this process's own: `.url(database)`, `.ask(statement)`."""
    with running() as server:
        server.ask("CREATE DATABASE template_halod")
        store = Store.open(server.url("template_halod"))
        upgrade(store)
        store.close()
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "console.db"
    store = Store.open(f"sqlite:///{path}")
    upgrade(store)
    store.close()
    return path


@pytest.fixture
def empty_postgres(postgres):
    """The address of a database without tables."""
    name = f"empty_{next(_numbers)}"
    postgres.ask(f"CREATE DATABASE {name}")
    yield postgres.url(name)
    postgres.ask(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def clean_databases(postgres):
    """Migrated databases that nobody uses just now: emptying one is quicker than making one."""
    return []


@pytest.fixture
def postgres_url(postgres, clean_databases):
    """The address of a migrated, empty database."""
    if clean_databases:
        name = clean_databases.pop()
    else:
        name = f"test_{next(_numbers)}"
        postgres.ask(f"CREATE DATABASE {name} TEMPLATE template_halod")
    yield postgres.url(name)
    if postgres.empty(name, HEAD):
        clean_databases.append(name)
    else:
        postgres.ask(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite_url(sqlite_template, tmp_path):
    """The address of a migrated, empty database."""
    path = tmp_path / "console.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(params=ENGINES)
def store_url(request):
    """The address of a migrated, empty database: a test runs once on each engine."""
    return request.getfixturevalue(f"{'postgres' if request.param == 'postgresql' else 'sqlite'}_url")


@pytest.fixture
def store(store_url):
    """A migrated, empty store: a test runs once on each engine."""
    opened = _open(store_url)
    yield opened
    opened.close()


def _open(url):
    """Open a store that does not wait for the disk: tests end it, the power does not."""
    opened = Store.open(url)
    if opened.sqlite:
        event.listen(opened.engine, "begin", _do_not_wait)
    return opened


def _do_not_wait(connection):
    if connection.info.setdefault("waits", True):
        connection.info["waits"] = False
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA synchronous=OFF")
        connection.exec_driver_sql("BEGIN IMMEDIATE")


@pytest.fixture
def recycled(request, store_url):
    """Gives an empty store each time it is called, quickly: for tests of many examples."""
    store = _open(store_url)

    def give():
        if store.sqlite:
            with store.write() as c:
                for table in reversed(METADATA.sorted_tables):
                    c.execute(table.delete())
        else:
            store.close()
            name = store_url.partition("@/")[2].partition("?")[0]
            assert request.getfixturevalue("postgres").empty(name, HEAD)
        return store

    yield give
    store.close()
