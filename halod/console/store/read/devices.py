# SPDX-License-Identifier: Apache-2.0
"""Devices: what they say of themselves, what they cover, and who waits to be let in."""

from typing import Any, Final, Literal

import msgspec
from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, func, select

from halod.console.store.paging import DEFAULT_LIMIT, Page, checked
from halod.console.store.read.rows import Row, Time, columns, texts
from halod.console.store.read.walk import Candidates, Check, Equal, Listing, equals, prefix, read
from halod.console.store.schema import APPROVED, DEVICE_UNITS, DEVICES, ENROLLMENTS, HEARTBEATS, SKIPPED

State = Literal["", "reporting", "silent", "partly", "limited"]


class DeviceRow(Row, frozen=True, kw_only=True):
    """A device. `hostname`, `os`, `halod`, `username`, `ring`, `units`, `digest` and `mode` are its claims."""

    device: str
    hostname: str
    os: str
    halod: str
    username: str = msgspec.field(name="user")
    ring: str
    units: tuple[str, ...]
    digest: str
    mode: str
    first_seen: Time
    last_report: Time
    changed_at: Time
    findings: int
    drift_total: int
    skipped: int
    accounts: int
    files: int
    definitions: int
    not_covered: tuple[str, ...]
    error_code: str
    last_error: str
    truncated: bool
    partly: bool
    limited: bool
    silent: bool
    """Nothing has come for `silent_after` seconds."""
    assigned_ring: str
    """What its enrolment key says it is; "" when that says nothing."""
    assigned_units: tuple[str, ...]


class SkippedRow(Row, frozen=True, kw_only=True):
    """Something that a device could not read. `line` and `column` are 0 when unknown."""

    username: str = msgspec.field(name="user")
    harness: str
    file: str
    reason: str
    server: str
    errno: str
    line: int
    column: int


class ApprovedRow(Row, frozen=True, kw_only=True):
    """How many definitions of one harness and account an entry approves."""

    harness: str
    username: str = msgspec.field(name="user")
    entry: str
    count: int


class PendingRow(Row, frozen=True, kw_only=True):
    """A known device that asked for a token and did not prove to be itself. `claimed` by whoever asked."""

    device: str
    hostname: str
    """As asked now; `known_hostname` as the device said before."""
    known_hostname: str
    os: str
    halod: str
    address: str
    install_id: str
    first_asked: Time
    last_asked: Time
    asked: int


class DeviceFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which devices. Empty fields select nothing out; `hostname` is a prefix (case counts), the rest exact."""

    state: State = ""
    ring: str = ""
    unit: str = ""
    hostname: str = ""
    digest: str = ""


_D: Final = DEVICES.c
_H: Final = HEARTBEATS.c
_ROWS: Final = select(DEVICES)
_HEARD: Final = select(HEARTBEATS)


def _with_report(found: FromClause) -> Select[Any]:
    last = func.coalesce(_H.last_report, 0).label("last_report")
    return select(found, last).outerjoin_from(found, HEARTBEATS, _H.device == found.c.device)


def _with_device(found: FromClause) -> Select[Any]:
    others = (column for column in _D if column.name != "device")
    return select(found, *others).join_from(found, DEVICES, _D.device == found.c.device)


_LISTS: Final = ("units", "assigned_units", "not_covered")
_PLAIN: Final = tuple(name for name in DeviceRow.__struct_fields__ if name not in {*_LISTS, "silent"})


def _row(row: Any, since: int) -> DeviceRow:  # noqa: ANN401 -- columns come with the query
    lists: dict[str, Any] = {name: texts(text) for name, text in columns(row, *_LISTS).items()}
    return DeviceRow(**columns(row, *_PLAIN), **lists, silent=row.last_report < since)


def devices(
    c: Connection,
    where: DeviceFilter,
    *,
    now: int,
    silent_after: int,
    cursor: str = "",
    limit: int = DEFAULT_LIMIT,
) -> Page[DeviceRow]:
    """List devices by hostname; silent ones by their last report, the last to fall silent first."""
    checked(where.ring, where.unit, where.hostname, where.digest)
    since = now - silent_after
    if where.state == "silent":
        return _silent(c, where, since, cursor=cursor, limit=limit)
    checks, candidates = _checks(where), _candidates(where)
    if where.state == "reporting":
        checks["heard"] = lambda columns: columns.last_report >= since
    # An index has each of these in the order of the list; likely the rarest first.
    walked = next((name for name in ("state", "digest", "ring") if name in checks), "")
    if walked:
        del checks[walked], candidates[walked]
    listing = Listing(
        kind="devices",
        rows=_ROWS,
        key=(_D.hostname, _D.device),
        types=(str, str),
        make=lambda row: _row(row, since),
        show=_with_report,
    )
    return read(
        c,
        listing,
        cursor=cursor,
        limit=limit,
        equal=[_selected(where)[walked]] if walked else (),
        index=prefix(_D.hostname, where.hostname),
        checks=tuple(checks.values()),
        candidates=tuple(candidates.values()),
    )


def _silent(c: Connection, where: DeviceFilter, since: int, *, cursor: str, limit: int) -> Page[DeviceRow]:
    checks, candidates = _checks(where), _candidates(where)
    if where.hostname:
        checks["hostname"] = lambda columns: and_(*prefix(columns.hostname, where.hostname))
    silent = _H.last_report < since
    candidates["silent"] = Candidates(column=_H.device, ids=select(_H.device).where(silent))
    listing = Listing(
        kind="devices.silent",
        rows=_HEARD,
        key=(_H.last_report, _H.device),
        types=(int, str),
        make=lambda row: _row(row, since),
        descending=True,
        show=_with_device,
    )
    return read(
        c,
        listing,
        cursor=cursor,
        limit=limit,
        index=[silent],
        checks=tuple(checks.values()),
        candidates=tuple(candidates.values()),
    )


def _selected(where: DeviceFilter) -> dict[str, Equal]:
    """Give the conditions that are a column with a value."""
    found: dict[str, Equal] = {}
    if where.state in {"partly", "limited"}:
        found["state"] = (_D[where.state], True)
    if where.digest:
        found["digest"] = (_D.digest, where.digest)
    if where.ring:
        found["ring"] = (_D.ring, where.ring)
    return found


def _checks(where: DeviceFilter) -> dict[str, Check]:
    found = {name: equals(*one) for name, one in _selected(where).items()}
    if where.unit:
        found["unit"] = lambda columns: in_unit(columns.device, where.unit)
    return found


def in_unit(device: ColumnElement[str], unit: str) -> ColumnElement[bool]:
    """Give the condition that a device says it is in `unit`."""
    one = DEVICE_UNITS.c
    return select(1).where(one.unit == unit, one.device == device).exists()


def _candidates(where: DeviceFilter) -> dict[str, Candidates]:
    known = select(_D.device)
    found = {name: known.where(column == value) for name, (column, value) in _selected(where).items()}
    if where.unit:
        found["unit"] = select(DEVICE_UNITS.c.device).where(DEVICE_UNITS.c.unit == where.unit)
    if where.hostname:
        found["hostname"] = known.where(*prefix(_D.hostname, where.hostname))
    column = _H.device if where.state == "silent" else _D.device
    return {name: Candidates(column=column, ids=ids) for name, ids in found.items()}


def every(
    c: Connection,
    where: DeviceFilter,
    *,
    now: int,
    silent_after: int,
    cursor: str = "",
    limit: int = DEFAULT_LIMIT,
) -> Page[DeviceRow]:
    """List devices by their identity, which never changes: whoever reads the whole list gets each device once."""
    checked(where.ring, where.unit, where.hostname, where.digest)
    since = now - silent_after
    checks = _checks(where)
    if where.hostname:
        checks["hostname"] = lambda columns: and_(*prefix(columns.hostname, where.hostname))
    if where.state == "silent":
        checks["state"] = lambda columns: columns.last_report < since
    elif where.state == "reporting":
        checks["state"] = lambda columns: columns.last_report >= since
    listing = Listing(
        kind="devices.every",
        rows=_ROWS,
        key=(_D.device,),
        types=(str,),
        make=lambda row: _row(row, since),
        show=_with_report,
    )
    return read(c, listing, cursor=cursor, limit=limit, checks=tuple(checks.values()))


def device(c: Connection, device: str, *, now: int, silent_after: int) -> DeviceRow | None:
    """Give one device, None if it is not known."""
    checked(device)
    row = c.execute(_with_report(DEVICES).where(_D.device == device)).first()
    return None if row is None else _row(row, now - silent_after)


_S: Final = SKIPPED.c
_SKIPPED: Final = ("username", "harness", "file", "reason", "server", "errno", "line")


def skipped(c: Connection, device: str) -> tuple[SkippedRow, ...]:
    """Give what a device could not read, in its own order."""
    checked(device)
    rows = c.execute(select(SKIPPED).where(_S.device == device).order_by(_S.nth))
    return tuple(SkippedRow(**columns(row, *_SKIPPED), column=row.column_) for row in rows)


def approved(c: Connection, device: str) -> tuple[ApprovedRow, ...]:
    """Give which entries approve what on a device."""
    checked(device)
    one = APPROVED.c
    rows = c.execute(
        select(APPROVED).where(one.device == device).order_by(one.harness, one.username, one.entry)
    )
    return tuple(ApprovedRow(**columns(row, *ApprovedRow.__struct_fields__)) for row in rows)


_E: Final = ENROLLMENTS.c
_PENDING: Final = Listing(
    kind="pending",
    rows=select(ENROLLMENTS),
    key=(_E.device,),
    types=(str,),
    make=lambda row: PendingRow(**columns(row, *PendingRow.__struct_fields__)),
    show=lambda found: select(found, func.coalesce(_D.hostname, "").label("known_hostname")).outerjoin_from(
        found, DEVICES, _D.device == found.c.device
    ),
)


def pending(c: Connection, *, cursor: str = "", limit: int = DEFAULT_LIMIT) -> Page[PendingRow]:
    """List devices that wait for an operator, by device."""
    return read(c, _PENDING, cursor=cursor, limit=limit, equal=[(_E.state, "waiting")])
