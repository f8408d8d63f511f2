# SPDX-License-Identifier: Apache-2.0
"""How a filtered list is read with bounded work, whatever the filters are.

A list has one order, its key. Conditions that an index holds in that order (`index`) are walked. When some
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
"""A condition on the columns of a list, in whatever table or subquery they are."""

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
    """Adds to a subquery of rows, found already, what is shown beside them."""


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


def read(
    c: Connection,
    listing: Listing[T],
    *,
    cursor: str,
    limit: int,
    index: Sequence[ColumnElement[bool]] = (),
    checks: Sequence[Check] = (),
    candidates: Sequence[Candidates] = (),
) -> Page[T]:
    """Give a page of `listing`.

    `index` are the conditions that its index has in order, `checks` all others, `candidates` those of either kind
    that are worth a look whether they select few rows.
    """
    behind = [*index, *_behind(listing, cursor)]
    if candidates and checks:
        for one in candidates:
            if few(c, one.ids):
                chosen = one.column.in_(select(one.ids.limit(FEW + 1).subquery()))
                columns = listing.rows.selected_columns
                rows = listing.rows.where(chosen, *behind, *(check(columns) for check in checks))
                return _page(c, listing, rows, (), limit=limit)[0]
    rows = listing.rows.where(*behind)
    found, short = _page(c, listing, rows, checks, limit=limit, most=FIRST_LOOK)
    if not (checks and short):
        return found
    found, short = _page(c, listing, rows, checks, limit=limit)
    last = _last_looked_at(c, listing, rows) if short else None
    return found if last is None else Page(found.rows, encode_cursor(listing.kind, *last))


def _behind(listing: Listing[Any], cursor: str) -> list[ColumnElement[bool]]:
    if not cursor:
        return []
    last = tuple_(*decode_cursor(listing.kind, cursor, *listing.types))
    key = tuple_(*listing.key)
    return [key < last if listing.descending else key > last]


def _order(listing: Listing[Any], columns: Any) -> list[ColumnElement[Any]]:  # noqa: ANN401 -- of a table or subquery
    found = [columns[one.key] for one in listing.key]
    return [column.desc() if listing.descending else column for column in found]


def _ordered(listing: Listing[Any], rows: Select[Any]) -> Select[Any]:
    return rows.order_by(*(one.desc() if listing.descending else one for one in listing.key))


def _page(
    c: Connection,
    listing: Listing[T],
    rows: Select[Any],
    checks: Sequence[Check],
    *,
    limit: int,
    most: int = LOOKED_AT,
) -> tuple[Page[T], bool]:
    """Give the page, and whether rows ran out before it was full."""
    inner = _ordered(listing, rows).limit(most if checks else limit + 1).subquery("found")
    shown = listing.show(inner).where(*(check(inner.c) for check in checks))
    found = c.execute(shown.order_by(*_order(listing, inner.c)).limit(limit + 1)).all()
    full = len(found) > limit
    names = [str(one.key) for one in listing.key]
    key = [found[limit - 1]._mapping[name] for name in names] if full else []  # noqa: SLF001 -- SQLAlchemy's own name for it
    following = encode_cursor(listing.kind, *key) if full else ""
    return Page(tuple(listing.make(row) for row in found[:limit]), following), not full


def _last_looked_at(c: Connection, listing: Listing[Any], rows: Select[Any]) -> tuple[Any, ...] | None:
    """Give the key of the last row that a bounded walk looked at; None: it came to the end."""
    keys = _ordered(listing, rows.with_only_columns(*listing.key, maintain_column_froms=True))
    row = c.execute(keys.offset(LOOKED_AT - 1).limit(1)).first()
    return None if row is None else tuple(row)
