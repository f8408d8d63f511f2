# SPDX-License-Identifier: Apache-2.0
"""Many rows in one statement, on both engines.

PostgreSQL takes them as one JSON text (one statement, one plan, one round trip, whatever their number, and cheaper
to write than arrays); SQLite, which has no round trips, row by row. The order of the rows is kept: locks are taken
and numbers given in it.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Table,
    Text,
    any_,
    bindparam,
    column,
    delete,
    func,
    literal,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine

Row = Mapping[str, Any]
Assign = Callable[[Table, Any], dict[str, Any]]
"""Gives what `ON CONFLICT` sets, from the table and the row that was to be inserted (`excluded`)."""
CHUNK: Final = 500
"""Values in one list of a statement of SQLite."""


@contextlib.contextmanager
def unanswered(c: Connection) -> Iterator[None]:
    """Send the statements of the block without waiting for the answer of each; at its end all were carried out.

    For statements that give no rows. On PostgreSQL it is psycopg's pipeline: the database works while the next rows are
    made. An error of one comes with one of the next, or at the end.

    Raises:
        DBAPIError: as statements do.
    """
    if not _has_pipeline(c):
        yield
        return
    driver: Any = c.connection.driver_connection
    try:
        with driver.pipeline():
            yield
    except _errors(c) as error:  # outside a statement SQLAlchemy does not see it
        gone = c.dialect.is_disconnect(error, driver, None)
        if gone:
            c.invalidate(error)
        raise DBAPIError.instance(
            None,
            None,
            error,
            _errors(c),
            hide_parameters=True,
            connection_invalidated=gone,
            dialect=c.dialect,
        ) from None


def _has_pipeline(c: Connection) -> bool:
    """Tell whether the driver can; psycopg is installed with PostgreSQL's extra alone, so it is imported here."""
    if c.dialect.driver != "psycopg":
        return False
    from psycopg import Pipeline

    return Pipeline.is_supported()


def _errors(c: Connection) -> Any:  # noqa: ANN401 - the class of the driver's errors
    return c.dialect.loaded_dbapi.Error


def insert(
    c: Connection,
    table: Table,
    rows: Sequence[Row],
    *,
    key: tuple[str, ...] = (),
    assign: Assign | None = None,
) -> None:
    """Insert rows, all with the same columns. With `key`, a row that is there is left, or changed by `assign`."""
    if not rows:
        return
    names = tuple(rows[0])
    if c.dialect.name == "sqlite":
        c.execute(_sqlite_insert(table, names, key, assign), rows)
    else:
        c.execute(_postgresql_insert(table, names, key, assign), _document(rows))


def update_by(c: Connection, table: Table, name: str, rows: Sequence[Row]) -> None:
    """Update the rows whose column `name` has the value of each row's `name` to its other values."""
    if not rows:
        return
    names = tuple(rows[0])
    if c.dialect.name == "sqlite":
        c.execute(
            _sqlite_update(table, names, name), [{f"b_{key}": row[key] for key in names} for row in rows]
        )
    else:
        c.execute(_postgresql_update(table, names, name), _document(rows))


def remove(c: Connection, table: Table, rows: Sequence[Row], where: Assign | None = None) -> None:
    """Delete the rows whose columns have the values of each row; `where` gives further columns and their values."""
    if not rows:
        return
    names = tuple(rows[0])
    further = [table.c[name] == value for name, value in (where(table, None) if where else {}).items()]
    if c.dialect.name == "sqlite":
        match = [table.c[name] == bindparam(f"b_{name}") for name in names]
        c.execute(
            delete(table).where(*match, *further), [{f"b_{key}": row[key] for key in names} for row in rows]
        )
    else:
        source = _source(table, names)
        match = [table.c[name] == source.c[name] for name in names]
        c.execute(delete(table).where(*match, *further), _document(rows))


def among(c: Connection, which: ColumnElement[Any], values: Iterable[Any]) -> ColumnElement[bool]:
    """Give the condition that a column is one of `values`: one statement text whatever their number (PostgreSQL)."""
    found = list(values)
    if c.dialect.name == "sqlite":
        return which.in_(found)
    return which == any_(literal(found, ARRAY(which.type)))


def matching(
    c: Connection, table: Table, names: tuple[str, ...], keys: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """Give the rows of `table` whose columns `names` are one of `keys`."""
    if c.dialect.name == "sqlite":
        for at in range(0, len(keys), CHUNK):
            some = keys[at : at + CHUNK]
            yield from c.execute(select(table).where(tuple_(*(table.c[name] for name in names)).in_(some)))
    elif keys:
        source = _source(table, names)
        match = [table.c[name] == source.c[name] for name in names]
        rows = [dict(zip(names, key, strict=True)) for key in keys]
        yield from c.execute(select(table).where(*match), _document(rows))


def _document(rows: Sequence[Row]) -> dict[str, str]:
    """Give the rows as one parameter. Each is a dictionary; the statement names the columns that it takes."""
    return {"rows": _encode(rows).decode()}


_encode: Final = msgspec.json.Encoder().encode


def _plain(table: Table, name: str) -> TypeEngine[Any]:
    kind = table.c[name].type
    return Text() if isinstance(kind, Text) else BigInteger() if isinstance(kind, BigInteger) else kind


@lru_cache(maxsize=64)
def _source(table: Table, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - SQLAlchemy's table of a function
    columns = [column(name, _plain(table, name)) for name in names]
    rows = func.json_to_recordset(text("CAST(:rows AS json)").bindparams(bindparam("rows", type_=Text())))
    return rows.table_valued(*columns).render_derived(name="given", with_types=True)


@lru_cache(maxsize=64)
def _postgresql_insert(
    table: Table, names: tuple[str, ...], key: tuple[str, ...], assign: Assign | None
) -> postgresql.Insert:
    source = _source(table, names)
    statement = postgresql.insert(table).from_select(list(names), select(*(source.c[name] for name in names)))
    if assign is not None:
        return statement.on_conflict_do_update(index_elements=key, set_=assign(table, statement.excluded))
    return statement.on_conflict_do_nothing(index_elements=key) if key else statement


@lru_cache(maxsize=64)
def _sqlite_insert(
    table: Table, names: tuple[str, ...], key: tuple[str, ...], assign: Assign | None
) -> sqlite.Insert:
    statement = sqlite.insert(table).values({name: bindparam(name) for name in names})
    if assign is not None:
        return statement.on_conflict_do_update(index_elements=key, set_=assign(table, statement.excluded))
    return statement.on_conflict_do_nothing(index_elements=key) if key else statement


@lru_cache(maxsize=64)
def _postgresql_update(table: Table, names: tuple[str, ...], by: str) -> Any:  # noqa: ANN401 - an Update
    source = _source(table, names)
    return (
        update(table)
        .values({name: source.c[name] for name in names if name != by})
        .where(table.c[by] == source.c[by])
    )


@lru_cache(maxsize=64)
def _sqlite_update(table: Table, names: tuple[str, ...], by: str) -> Any:  # noqa: ANN401 - an Update
    return (
        update(table)
        .values({name: bindparam(f"b_{name}") for name in names if name != by})
        .where(table.c[by] == bindparam(f"b_{by}"))
    )
