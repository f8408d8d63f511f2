# SPDX-License-Identifier: Apache-2.0
"""Findings, grouped by what they are about, one by one, and counted over the fleet."""

from typing import Any, Final, Literal

import msgspec
from sqlalchemy import Connection, FromClause, Select, and_, func, select

from halod.console.store.paging import DEFAULT_LIMIT, MOST_INTEGER, Page, checked
from halod.console.store.places import EVERYWHERE, place
from halod.console.store.read.devices import in_unit
from halod.console.store.read.rows import Row, Time, columns
from halod.console.store.read.walk import FEW, Candidates, Check, Equal, Listing, equals, prefix, read
from halod.console.store.schema import DEVICE_UNITS, DEVICES, FINDINGS, GROUP_COUNTS, TALLIES, THINGS

Order = Literal["devices", "last-seen"]


class GroupRow(Row, frozen=True, kw_only=True):
    """Findings that are about the same: kind, server name, and host (http) or hash (stdio).

    `findings`, `devices` and `last_seen` count what the filter selects; `first_seen` is the whole fleet's.
    """

    id: int
    kind: str
    server: str
    what: str
    transport: str
    fix: str
    findings: int
    devices: int
    first_seen: Time
    last_seen: Time


class GroupFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which groups. `server` is a prefix (case counts), `what` a host or a hash; empty fields select nothing out."""

    kind: str = ""
    harness: str = ""
    ring: str = ""
    unit: str = ""
    server: str = ""
    what: str = ""
    order: Order = "devices"


class FindingRow(Row, frozen=True, kw_only=True):
    """A finding of a device."""

    id: int
    device: str
    hostname: str
    thing: int = msgspec.field(name="group")
    username: str = msgspec.field(name="user")
    harness: str
    file: str
    scope: str
    server: str
    kind: str
    transport: str
    host: str
    sha256: str = msgspec.field(name="definitionSha256")
    detail: str
    fix: str
    ring: str
    projects: int
    enabled: bool
    secret: bool = msgspec.field(name="secretInDefinition")
    stale: bool
    first_seen: Time
    last_seen: Time


class FindingFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which findings; all exact. Empty fields (0 for `thing`) select nothing out."""

    thing: int = 0
    device: str = ""
    server: str = ""
    sha256: str = ""
    harness: str = ""
    unit: str = ""
    ring: str = ""
    kind: str = ""


class Tally(Row, frozen=True, kw_only=True):
    """How often a value is, over the fleet; `kind` is the findings', "" where findings are not what is counted."""

    value: str
    kind: str
    findings: int
    devices: int
    first_seen: Time


Dim = Literal["kind", "harness", "ring", "unit", "definition", "server", "reason", "approved", "digest"]


_T: Final = THINGS.c
_G: Final = GROUP_COUNTS.c
_GROUPS: Final = select(_G.thing.label("id"), *(_G.place, _G.kind, _G.findings, _G.devices, _G.last_seen))


def _with_thing(found: FromClause) -> Select[Any]:
    things = (_T.server, _T.what, _T.transport, _T.fix, _T.first_seen)
    return select(found, *things).join_from(found, THINGS, _T.id == found.c.id)


def _group(row: object) -> GroupRow:
    return GroupRow(**columns(row, *GroupRow.__struct_fields__))


_GROUP_LISTS: Final = {
    order: Listing(
        kind=f"groups.{order}",
        rows=_GROUPS,
        key=(column, _G.thing.label("id")),
        types=(int, int),
        make=_group,
        descending=True,
        show=_with_thing,
    )
    for order, column in (("devices", _G.devices), ("last-seen", _G.last_seen))
}


def groups(
    c: Connection, where: GroupFilter, *, cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[GroupRow]:
    """List groups of findings, most devices (or last seen) first."""
    checked(where.kind, where.harness, where.ring, where.unit, where.server, where.what)
    equal: list[Equal] = [(_G.place, place(harness=where.harness, ring=where.ring, unit=where.unit))]
    checks: list[Check] = []
    candidates = []
    if where.kind and where.order == "devices":
        equal.append((_G.kind, where.kind))
    elif where.kind:
        checks.append(equals(_G.kind, where.kind))
        ids = select(_T.id).where(_T.kind == where.kind)
        candidates.append(Candidates(column=_G.thing, ids=ids))
    if where.what:
        checks.append(lambda columns: columns.what == where.what)
        candidates.append(Candidates(column=_G.thing, ids=select(_T.id).where(_T.what == where.what)))
    if where.server:
        checks.append(lambda columns: and_(*prefix(columns.server, where.server)))
        ids = select(_T.id).where(*prefix(_T.server, where.server))
        candidates.append(Candidates(column=_G.thing, ids=ids))
    listing = _GROUP_LISTS[where.order]
    return read(c, listing, cursor=cursor, limit=limit, equal=equal, checks=checks, candidates=candidates)


def group(c: Connection, thing: int) -> GroupRow | None:
    """Give one group counted over the fleet, None if there is none."""
    if not 0 < thing <= MOST_INTEGER:
        return None
    counted = _GROUPS.where(_G.place == EVERYWHERE, _G.thing == thing)
    row = c.execute(_with_thing(counted.subquery("found"))).first()
    return None if row is None else _group(row)


_F: Final = FINDINGS.c
_FINDINGS: Final = Listing(
    kind="findings",
    rows=select(FINDINGS),
    key=(_F.id,),
    types=(int,),
    make=lambda row: FindingRow(**columns(row, *FindingRow.__struct_fields__)),
    descending=True,
    show=lambda found: select(found, func.coalesce(DEVICES.c.hostname, "").label("hostname")).outerjoin_from(
        found, DEVICES, DEVICES.c.device == found.c.device
    ),
)
_IN_ORDER: Final = ("thing", "sha256", "server", "harness", "ring", "kind")
"""What an index has in the order of the list, likely the rarest first."""


def findings(
    c: Connection, where: FindingFilter, *, cursor: str = "", limit: int = DEFAULT_LIMIT
) -> Page[FindingRow]:
    """List findings, newest first."""
    given = {name: value for name, value in msgspec.structs.asdict(where).items() if value}
    checked(*(value for value in given.values() if isinstance(value, str)))
    if not 0 <= where.thing <= MOST_INTEGER or not _any(c, where):
        return Page(())
    unit = given.pop("unit", "")
    walked = next((name for name in _IN_ORDER if name in given), "")
    others = {name: value for name, value in given.items() if name != walked}
    checks: list[Check] = [equals(_F[name], value) for name, value in others.items()]
    candidates = [_having(name, value) for name, value in others.items()]
    if unit:
        checks.append(lambda columns: in_unit(columns.device, unit))
        candidates.append(_in_unit(unit))
    return read(
        c,
        _FINDINGS,
        cursor=cursor,
        limit=limit,
        equal=[(_F[walked], given[walked])] if walked else (),
        checks=checks,
        candidates=candidates,
    )


def _any(c: Connection, where: FindingFilter) -> bool:
    """Tell whether the counts know of a finding at this harness, ring, unit and kind: a walk for none is long."""
    at = place(harness=where.harness, ring=where.ring, unit=where.unit)
    counted = select(1).where(_G.place == at)
    if where.kind:
        counted = counted.where(_G.kind == where.kind)
    if where.thing:
        counted = counted.where(_G.thing == where.thing)
    return bool(c.scalar(select(counted.exists())))


def _having(name: str, value: str | int) -> Candidates:
    return Candidates(column=_F.id, ids=select(_F.id).where(_F[name] == value))


def _in_unit(unit: str) -> Candidates:
    one = DEVICE_UNITS.c
    devices = select(one.device).where(one.unit == unit).limit(FEW + 1).subquery()
    return Candidates(
        column=_F.id, ids=select(_F.id).join_from(devices, FINDINGS, _F.device == devices.c.device)
    )


_TALLY: Final = TALLIES.c
_TALLIES: Final = Listing(
    kind="",
    rows=select(TALLIES),
    key=(_TALLY.devices, _TALLY.value, _TALLY.kind),
    types=(int, str, str),
    make=lambda row: Tally(**columns(row, *Tally.__struct_fields__)),
    descending=True,
)


def prevalence(c: Connection, dim: Dim, *, cursor: str = "", limit: int = DEFAULT_LIMIT) -> Page[Tally]:
    """List the values of `dim`, most devices first."""
    listing = msgspec.structs.replace(_TALLIES, kind=f"prevalence.{dim}")
    return read(c, listing, cursor=cursor, limit=limit, equal=[(_TALLY.dim, dim)])
