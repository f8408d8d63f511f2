# SPDX-License-Identifier: Apache-2.0
"""How a filtered list is read with bounded work, whatever the filters are.

A list has one order, its key. What an index holds in that order (`equal`, `index`) is walked. When another
condition selects few rows at all (`few`), those are fetched, filtered and sorted instead. When none does, one page
walks at most `paging.LOOKED_AT` rows. What is shown is exact in each case; a page may be short, and its `next`
goes on behind the last row that was looked at.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, func, select, tuple_

from halod.console.store.paging import LOOKED_AT, Page, after_prefix, decode_cursor, encode_cursor

T = TypeVar("T")
Check = Callable[[Any], ColumnElement[bool]]
"""A condition on the columns of a list, those that `show` adds included."""

Equal = tuple[ColumnElement[Any], Any]
"""A column and the value that it has to have."""

FEW: Final = 2_000
"""So many rows are fetched and sorted for one page."""
FIRST_LOOK: Final = 600
"""So many rows are walked first: mostly they fill the page already."""


class Listing(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A list: where its rows come from and how they are ordered."""

    kind: str
    """Of its cursors."""
    rows: Select[Any]
    key: tuple[ColumnElement[Any], ...]
    """Columns of `rows` that order them, the last of them unique."""
    types: tuple[type, ...]
    """Of the key: `int` or `str` each."""
    make: Callable[[Any], T]
    descending: bool = False
    show: Callable[[Any], Select[Any]] = select
    """Adds to a subquery of rows what other tables have of them, row by row."""


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that may select few rows: their `ids`, and the column that they are ids of."""

    column: ColumnElement[Any]
    ids: Select[Any]


def few(c: Connection, rows: Select[Any]) -> bool:
    """Tell whether `rows` are at most `FEW`; looks at no more."""
    count = c.scalar(select(func.count()).select_from(rows.limit(FEW + 1).subquery()))
    return (count or 0) <= FEW


def prefix(column: ColumnElement[str], text: str) -> list[ColumnElement[bool]]:
    """Give the conditions of a prefix, as a range of an index; none for ""."""
    if not text:
        return []
    end = after_prefix(text)
    return [column >= text] if end is None else [column >= text, column < end]


def equals(column: ColumnElement[Any], value: Any) -> Check:  # noqa: ANN401 -- whatever the column has
    """Give the check that a column has a value."""
    name = str(column.key)
    return lambda columns: columns[name] == value


def read(
    c: Connection,
    listing: Listing[T],
    *,
    cursor: str,
    limit: int,
    equal: Sequence[Equal] = (),
    index: Sequence[ColumnElement[bool]] = (),
    checks: Sequence[Check] = (),
    candidates: Sequence[Candidates] = (),
) -> Page[T]:
    """Give a page of `listing`.

    `equal` are columns that the index to walk begins with and their values, `index` further conditions that it has
    in order; `checks` are all others, `candidates` those of them that are worth a look whether they select few rows.
    """
    walk = _Walk(c, listing, checks, cursor)
    if not checks:
        return walk.page(walk.in_order(equal, index, limit + 1), limit)
    for one in candidates:
        if few(c, one.ids):
            return walk.page(walk.among(one, equal, index), limit)
    for most in (FIRST_LOOK, LOOKED_AT):
        rows = walk.in_order(equal, index, most)
        found = walk.page(rows, limit)
        if found.next:
            return found
    last = walk.last_of(rows, LOOKED_AT)
    return found if last is None else Page(found.rows, encode_cursor(listing.kind, *last))


class _Walk(Generic[T]):
    """One question: the rows of a list behind a cursor."""

    def __init__(self, c: Connection, listing: Listing[T], checks: Sequence[Check], cursor: str) -> None:
        self._c = c
        self._listing = listing
        self._checks = checks
        self._order = listing.key
        self._last = decode_cursor(listing.kind, cursor, *listing.types) if cursor else ()

    def in_order(
        self, equal: Sequence[Equal], index: Sequence[ColumnElement[bool]], most: int
    ) -> Select[Any]:
        """Give the first `most` rows of an index.

        On PostgreSQL the last column of `equal` is asked for as a range, and is part of the order: a column that equals
        a value orders nothing to its planner, which would then rather walk a whole table by its key until it has met
        enough rows with that value.
        """
        plain, ranged = (equal, ()) if self._c.dialect.name == "sqlite" else (equal[:-1], equal[-1:])
        self._order = (*(column for column, _ in ranged), *self._listing.key)
        conditions = [column == value for column, value in plain]
        for column, value in ranged:
            conditions += [column.op(sign, is_comparison=True)(value) for sign in (">=", "<=")]
        rows = self._listing.rows.where(*conditions, *index, *self._behind(*(value for _, value in ranged)))
        return rows.order_by(*map(self._directed, self._order)).limit(most)

    def among(
        self, candidates: Candidates, equal: Sequence[Equal], index: Sequence[ColumnElement[bool]]
    ) -> Select[Any]:
        """Give those rows that are candidates: at most `FEW`, in no order."""
        self._order = self._listing.key
        chosen = candidates.column.in_(select(candidates.ids.limit(FEW + 1).subquery()))
        return self._listing.rows.where(
            chosen, *(column == value for column, value in equal), *index, *self._behind()
        )

    def _behind(self, *values: Any) -> list[ColumnElement[bool]]:  # noqa: ANN401 -- of the columns that are equal
        if not self._last:
            return []
        last, key = tuple_(*values, *self._last), tuple_(*self._order)
        return [key < last if self._listing.descending else key > last]

    def page(self, rows: Select[Any], limit: int) -> Page[T]:
        """Give the page that `rows` make."""
        listing = self._listing
        inner = rows.subquery("found")
        shown = listing.show(inner)
        columns = shown.selected_columns
        shown = shown.where(*(check(columns) for check in self._checks))
        shown = shown.order_by(*(self._directed(inner.c[str(one.key)]) for one in self._order))
        found = self._c.execute(shown.limit(limit + 1)).all()
        following = ""
        if len(found) > limit:
            last = found[limit - 1]._mapping  # noqa: SLF001 -- SQLAlchemy's own, documented name
            following = encode_cursor(listing.kind, *(last[str(one.key)] for one in listing.key))
        return Page(tuple(listing.make(row) for row in found[:limit]), following)

    def last_of(self, rows: Select[Any], most: int) -> tuple[Any, ...] | None:
        """Give the key of the last of `most` rows that were looked at; None: there were fewer."""
        keys = rows.with_only_columns(*self._listing.key, maintain_column_froms=True)
        row = self._c.execute(keys.offset(most - 1).limit(1)).first()
        return None if row is None else tuple(row)

    def _directed(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return column.desc() if self._listing.descending else column
