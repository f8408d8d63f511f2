# SPDX-License-Identifier: Apache-2.0
"""Statements that are sent without waiting: what they do and how they fail is what statements do."""

import contextlib

import pytest
from sqlalchemy import insert, literal_column, select, text
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from halod.console.store import bulk
from halod.console.store.engine import Store, unavailable
from halod.console.store.schema import META


@pytest.fixture
def postgresql(postgres_url):
    opened = Store.open(postgres_url)
    yield opened
    opened.close()


def keys(store):
    with store.read() as c:
        return sorted(c.execute(select(META.c.key)).scalars())


def test_all_are_carried_out(store):
    """In their order; what comes after the block sees them."""
    with store.write() as c:
        with bulk.unanswered(c):
            for n in range(300):
                bulk.insert(c, META, [{"key": f"k{n}", "value": "1"}])
            bulk.remove(c, META, [{"key": f"k{n}"} for n in range(1, 300)])
            bulk.update_by(c, META, "key", [{"key": "k0", "value": "2"}])
        assert c.execute(select(META.c.key, META.c.value)).all() == [("k0", "2")]
    assert keys(store) == ["k0"]


@contextlib.contextmanager
def sending(store):
    with store.write() as c, bulk.unanswered(c):
        yield c


def send(store, *statements, after=0):
    """Send statements, and `after` good ones behind them."""
    with sending(store) as c:
        bulk.insert(c, META, [{"key": "first", "value": "1"}])
        for one in statements:
            c.execute(one)
        for n in range(after):
            bulk.insert(c, META, [{"key": f"k{n}", "value": "1"}])


@pytest.mark.parametrize("after", [0, 1, 500])
def test_one_that_fails(store, after):
    """Its own error comes, not that of those after it; nothing of the transaction is there, and the pool is none the worse."""
    with pytest.raises(IntegrityError) as caught:
        send(store, insert(META).values(key="first", value="2"), after=after)
    assert not unavailable(caught.value)
    assert keys(store) == []
    send(store)
    assert keys(store) == ["first"]


@pytest.mark.parametrize("after", [0, 500])
def test_content_that_a_database_refuses(postgresql, after):
    """It is told from a database that does not answer (`ingest.writer`: 422, not 503)."""
    refused = insert(META).values(
        key="a", value=literal_column("repeat('1', 3 / (SELECT count(*)::int - 1 FROM meta))")
    )
    with pytest.raises(DataError) as caught:
        send(postgresql, refused, after=after)
    assert caught.value.orig.sqlstate == "22012"
    assert not unavailable(caught.value)
    assert keys(postgresql) == []


@pytest.mark.parametrize("after", [0, 500])
def test_a_server_that_goes(postgresql, after):
    """As with any statement: the database is unavailable, and the next transaction has a new connection."""
    with pytest.raises(DBAPIError) as caught:
        send(
            postgresql,
            text("DO $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); END $$"),
            after=after,
        )
    assert unavailable(caught.value)
    assert caught.value.connection_invalidated
    assert keys(postgresql) == []


def fail(store):
    with sending(store) as c:
        bulk.insert(c, META, [{"key": "a", "value": "1"}])
        raise KeyError("ours")


def test_an_error_of_ours(store):
    """It is the one that comes out."""
    with pytest.raises(KeyError):
        fail(store)
    assert keys(store) == []


def test_a_driver_without_a_pipeline(postgresql, monkeypatch):
    """An older libpq: each statement is waited for."""
    import psycopg

    monkeypatch.setattr(psycopg.Pipeline, "is_supported", classmethod(lambda _cls: False))
    with sending(postgresql) as c:
        bulk.insert(c, META, [{"key": "a", "value": "1"}])
        assert c.execute(select(META.c.key)).scalars().all() == ["a"]
