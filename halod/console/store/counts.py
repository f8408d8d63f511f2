# SPDX-License-Identifier: Apache-2.0
"""Writes what reports change in `things`, `group_counts`, `tallies` and `days`; and counts anew, to compare.

Only under `Store.change`. Rows are written in sorted order, each once in a batch.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar, get_args

import msgspec
from sqlalchemy import Connection, Table, case, select

from halod.console.store import bulk, delta, known
from halod.console.store.schema import DAYS, DEVICES, GROUP_COUNTS, TALLIES, THINGS
from halod.status import Kind

DAY: Final = 86_400
KINDS: Final = frozenset(get_args(Kind))
OTHER: Final = "other"
"""All further kinds in one: each kind is a row that every change writes, and a line of the trend."""
Thing = tuple[str, str, str]
_Key = TypeVar("_Key")


def number_things(
    c: Connection, pairs: Iterable[tuple[delta.State, delta.State]], said: Iterable[delta.Changes], now: int
) -> dict[Thing, int]:
    """Give the number of every thing before and after, making those that are new.

    A thing's `fix` follows what is said last: the pin that it names may have changed.
    """
    numbers = {row.finding.thing: row.thing for before, _ in pairs for row in before.findings}
    wanted = {
        row.finding.thing: row.finding for changes in said for row in (*changes.inserted, *changes.updated)
    }
    found = _numbers(c, sorted(wanted))
    new = [key for key in sorted(wanted) if key not in found]
    bulk.insert(
        c,
        THINGS,
        [
            {
                **dict(zip(_THING, key, strict=True)),
                "transport": wanted[key].transport,
                "fix": wanted[key].fix,
                "first_seen": now,
            }
            for key in new
        ],
        key=_THING,
    )
    differ = [
        {"id": number, "fix": wanted[key].fix}
        for key, (number, fix) in found.items()
        if wanted[key].fix != fix
    ]
    bulk.update_by(c, THINGS, "id", differ)
    if new:
        found |= _numbers(c, new)
    return numbers | {key: number for key, (number, _) in found.items()}


_THING: Final = ("kind", "server", "what")


def _numbers(c: Connection, keys: list[Thing]) -> dict[Thing, tuple[int, str]]:
    return {
        (row.kind, row.server, row.what): (row.id, row.fix) for row in bulk.matching(c, THINGS, _THING, keys)
    }


def _more(table: Table, given: Any) -> dict[str, Any]:  # noqa: ANN401 - SQLAlchemy's `excluded`
    return {
        "findings": table.c.findings + given.findings,
        "devices": table.c.devices + given.devices,
    }


def _more_seen(table: Table, given: Any) -> dict[str, Any]:  # noqa: ANN401 - SQLAlchemy's `excluded`
    later = case((given.last_seen > table.c.last_seen, given.last_seen), else_=table.c.last_seen)
    return {**_more(table, given), "last_seen": later}


def _none(_table: Table, _given: Any) -> dict[str, Any]:  # noqa: ANN401 - an Assign
    return {"findings": 0, "devices": 0}


def unseen(c: Connection, said: Iterable[delta.Changes]) -> frozenset[str]:
    """Give the definitions that are said and that no device has had before. To be asked before `apply`."""
    definitions = {
        row.finding.sha256 for changes in said for row in (*changes.inserted, *changes.replaced)
    } - {""}
    had = select(TALLIES.c.value).where(
        TALLIES.c.dim == "definition", bulk.among(c, TALLIES.c.value, sorted(definitions))
    )
    return frozenset(definitions.difference(c.execute(had).scalars())) if definitions else frozenset()


def apply(c: Connection, difference: delta.Difference, things: Mapping[Thing, int], now: int) -> None:
    """Add a difference to the counts.

    A row of zeros is deleted, but for definitions: that they were there once is how a new one is told.
    """
    tallies: list[dict[str, Any]] = [
        {"dim": dim, "value": value, "kind": kind, "findings": rows, "devices": devices, "first_seen": now}
        for (dim, value, kind), (rows, devices) in sorted(difference.tallies.items())
    ]
    bulk.insert(c, TALLIES, tallies, key=("dim", "value", "kind"), assign=_more)
    less = [row for row in tallies if row["devices"] < 0 and row["dim"] != "definition"]
    bulk.remove(c, TALLIES, [{key: row[key] for key in ("dim", "value", "kind")} for row in less], _none)

    groups: list[dict[str, Any]] = [
        {
            "place": place,
            "thing": things[thing],
            "kind": thing[0],
            "findings": rows,
            "devices": devices,
            "last_seen": difference.seen.get((place, thing), 0),
        }
        for (place, thing), (rows, devices) in sorted(difference.groups.items())
    ]
    bulk.insert(c, GROUP_COUNTS, groups, key=("place", "thing"), assign=_more_seen)
    less = [row for row in groups if row["devices"] < 0]
    bulk.remove(c, GROUP_COUNTS, [{key: row[key] for key in ("place", "thing")} for row in less], _none)


def day_kind(kind: str) -> str:
    """Give under what a kind stands in the trend: itself, or `OTHER` for what a later agent, or a liar, says."""
    return kind if kind in KINDS else OTHER


def add_day(c: Connection, said: Iterable[delta.Changes], difference: delta.Difference, now: int) -> None:
    """Add what happened to the day's row of each kind; `open` is how many there are now. After `apply`."""
    happened: dict[str, Counter[str]] = defaultdict(Counter)
    for one in said:
        for what, those in (("opened", one.inserted), ("changed", one.replaced), ("resolved", one.removed)):
            for row in those:
                happened[day_kind(row.finding.kind)][what] += 1
    kinds = {day_kind(kind) for dim, _, kind in difference.tallies if dim == "kind"}
    if not happened and not kinds:
        return
    are = select(TALLIES.c.kind, TALLIES.c.findings).where(TALLIES.c.dim == "kind")
    there: Counter[str] = Counter()
    for kind, findings in c.execute(are):
        there[day_kind(kind)] += findings
    rows = [
        {
            "day": now // DAY,
            "kind": kind,
            "open": there[kind],
            **{
                what: happened[kind][what] if kind in happened else 0
                for what in ("opened", "changed", "resolved")
            },
        }
        for kind in sorted({*happened, *kinds, *there})
    ]
    bulk.insert(c, DAYS, rows, key=("day", "kind"), assign=_more_day)


def _more_day(table: Table, given: Any) -> dict[str, Any]:  # noqa: ANN401 - SQLAlchemy's `excluded`
    return {
        "open": given.open,
        **{name: table.c[name] + getattr(given, name) for name in ("opened", "changed", "resolved")},
    }


# --- counted anew ------------------------------------------------------------------------------------------


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """Every count that is not zero: (rows, devices) by key."""

    tallies: dict[delta.Tally, tuple[int, int]]
    groups: dict[delta.Group, tuple[int, int]]


def kept(c: Connection) -> Counted:
    """Give the counts as they are kept."""
    tallies = {
        (row.dim, row.value, row.kind): (row.findings, row.devices)
        for row in c.execute(select(TALLIES))
        if row.findings or row.devices
    }
    joined = select(GROUP_COUNTS, THINGS.c.server, THINGS.c.what).join(
        THINGS, THINGS.c.id == GROUP_COUNTS.c.thing
    )
    groups = {
        (row.place, (row.kind, row.server, row.what)): (row.findings, row.devices)
        for row in c.execute(joined)
    }
    return Counted(tallies=tallies, groups=groups)


def recount(c: Connection) -> Counted:
    """Count everything anew from devices and findings: for tests and for a look at whether all is well."""
    names = c.execute(select(DEVICES.c.device)).scalars().all()
    counted = Counted(tallies={}, groups={})
    for at in range(0, len(names), bulk.CHUNK):
        for one in known.load(c, names[at : at + bulk.CHUNK]).values():
            _sum(counted.tallies, delta.tallies_of(one.state))
            _sum(counted.groups, delta.groups_of(one.state))
    return counted


def _sum(total: dict[_Key, tuple[int, int]], part: Mapping[_Key, int]) -> None:
    for key, rows in part.items():
        before = total.get(key, (0, 0))
        total[key] = (before[0] + rows, before[1] + 1)
