# SPDX-License-Identifier: Apache-2.0
"""Reads and writes what is known of devices: the rows behind `delta.State`.

Written only under `Store.change`: between reading a state and writing the next one nobody else may write, or what was
read is compared by `revision` once the lock is held (`load`).
"""

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, delete, select

from halod.console.store import bulk, delta
from halod.console.store.report import Approved, Finding, Skipped
from halod.console.store.schema import APPROVED, DEVICE_UNITS, DEVICES, FINDINGS, SKIPPED

_FINDING = Finding.__struct_fields__
_KNOWN = ("id", "thing", "nth", "first_seen", "last_seen")


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A device's row and what is known of it."""

    row: RowMapping
    state: delta.State


def load(c: Connection, devices: Iterable[str], earlier: Iterable[Device] = ()) -> dict[str, Device]:
    """Give the devices of these names that there are.

    Of those that were read `earlier`, with or without the lock, only the row is read again while its `revision` is the
    same. The row is read first, so a state is never older than the revision it is known by.
    """
    names = sorted(set(devices))
    rows = c.execute(select(DEVICES).where(bulk.among(c, DEVICES.c.device, names))).mappings().all()
    states = {(one.row["device"], one.row["revision"]): one.state for one in earlier}
    states |= _states(c, [row for row in rows if (row["device"], row["revision"]) not in states])
    return {row["device"]: Device(row=row, state=states[row["device"], row["revision"]]) for row in rows}


def revision() -> int:
    """Draw a revision: one that no row has had, whether it was deleted meanwhile or not."""
    return secrets.randbits(62)


def _states(c: Connection, rows: list[RowMapping]) -> dict[tuple[str, int], delta.State]:
    if not rows:
        return {}
    there = [row["device"] for row in rows]
    findings = _findings(c, there)
    skipped = _by_device(c, SKIPPED, there, _skipped)
    approved = _by_device(c, APPROVED, there, _approved)
    return {
        (row["device"], row["revision"]): delta.State(
            ring=row["ring"],
            units=units(row["units"]),
            digest=row["digest"],
            findings=tuple(findings[row["device"]]),
            skipped=tuple(skipped[row["device"]]),
            approved=tuple(sorted(approved[row["device"]], key=_approved_name)),
        )
        for row in rows
    }


def units(text: str) -> tuple[str, ...]:
    """Read the units of a row of `devices`."""
    return msgspec.json.decode(text, type=tuple[str, ...]) if text else ()


def _by_device(c: Connection, table: Any, devices: list[str], make: Any) -> Mapping[str, list[Any]]:  # noqa: ANN401
    found: dict[str, list[Any]] = defaultdict(list)
    order = table.c.nth if table is SKIPPED else None
    statement = select(table).where(bulk.among(c, table.c.device, devices))
    rows = c.execute(statement if order is None else statement.order_by(table.c.device, order)).mappings()
    for row in rows.all():  # at once: one by one takes longer than what is made of them
        found[row["device"]].append(make(row))
    return found


def _findings(c: Connection, devices: list[str]) -> Mapping[str, list[delta.Known]]:
    """Give what is known by device. Most of what is read for a report is this, so it is read by place."""
    found: dict[str, list[delta.Known]] = defaultdict(list)
    columns = (FINDINGS.c[name] for name in ("device", *_KNOWN, *_FINDING))
    statement = select(*columns).where(bulk.among(c, FINDINGS.c.device, devices))
    for device, number, thing, nth, first_seen, last_seen, *rest in c.execute(statement).all():
        found[device].append(
            delta.Known(
                id=number,
                thing=thing,
                nth=nth,
                first_seen=first_seen,
                last_seen=last_seen,
                finding=Finding(*rest),
            )
        )
    return found


def _skipped(row: RowMapping) -> Skipped:
    return Skipped(
        username=row["username"],
        harness=row["harness"],
        file=row["file"],
        reason=row["reason"],
        server=row["server"],
        errno=row["errno"],
        line=row["line"],
        column=row["column_"],
    )


def _approved_name(row: Approved) -> tuple[str, str, str]:
    return row.name


def _approved(row: RowMapping) -> Approved:
    return Approved(harness=row["harness"], username=row["username"], entry=row["entry"], count=row["count"])


# --- writing -----------------------------------------------------------------------------------------------


def save_findings(
    c: Connection,
    pairs: Mapping[str, tuple[delta.State, delta.State]],
    said: Mapping[str, delta.Changes],
    things: Mapping[tuple[str, str, str], int],
) -> None:
    """Write the rows that differ (`said`); `things` has the number of every thing in the states after."""
    gone: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    added: list[dict[str, Any]] = []
    for device, (_, after) in pairs.items():
        gone += [{"id": known.id} for known in said[device].removed]
        changed += [{"id": known.id, **_columns(known, after.ring, things)} for known in said[device].updated]
        added += [
            {
                "device": device,
                "nth": known.nth,
                "first_seen": known.first_seen,
                **_columns(known, after.ring, things),
            }
            for known in said[device].inserted
        ]
    bulk.remove(c, FINDINGS, gone)
    bulk.update_by(c, FINDINGS, "id", changed)
    bulk.insert(c, FINDINGS, added)


def _columns(
    known: delta.Known, ring: str, things: Mapping[tuple[str, str, str], int]
) -> dict[str, str | int | bool]:
    found = {name: getattr(known.finding, name) for name in _FINDING}
    return {**found, "thing": things[known.finding.thing], "ring": ring, "last_seen": known.last_seen}


def save_lists(c: Connection, pairs: Mapping[str, tuple[delta.State, delta.State]]) -> None:
    """Write skipped rows, approved entries and units of the devices of which they differ."""
    for table, rows_of in ((SKIPPED, _skipped_rows), (APPROVED, _approved_rows), (DEVICE_UNITS, _unit_rows)):
        differ = {
            device: (rows_of(device, before), rows_of(device, after))
            for device, (before, after) in pairs.items()
        }
        differ = {device: (old, new) for device, (old, new) in differ.items() if old != new}
        emptied = [device for device, (old, _) in differ.items() if old]
        if emptied:
            c.execute(delete(table).where(bulk.among(c, table.c.device, emptied)))
        bulk.insert(c, table, [row for _, new in differ.values() for row in new])


def _skipped_rows(device: str, state: delta.State) -> list[dict[str, Any]]:
    return [
        {
            "device": device,
            "nth": nth,
            "username": row.username,
            "harness": row.harness,
            "file": row.file,
            "reason": row.reason,
            "server": row.server,
            "errno": row.errno,
            "line": row.line,
            "column_": row.column,
        }
        for nth, row in enumerate(state.skipped)
    ]


def _approved_rows(device: str, state: delta.State) -> list[dict[str, Any]]:
    return [
        {
            "device": device,
            "harness": row.harness,
            "username": row.username,
            "entry": row.entry,
            "count": row.count,
        }
        for row in state.approved
    ]


def _unit_rows(device: str, state: delta.State) -> list[dict[str, Any]]:
    return [{"unit": unit, "device": device} for unit in state.units]


def create(c: Connection, device: str, now: int, **claims: str) -> None:
    """Make the row of a device that has not reported yet; one that is there stays as it is."""
    row = {"device": device, "first_seen": now, "changed_at": now, "revision": revision(), **claims}
    bulk.insert(c, DEVICES, [row], key=("device",))


def forget(c: Connection, devices: Iterable[str]) -> None:
    """Delete every row about these devices but transitions, audit, tokens and enrolments. Counts are the caller's."""
    names = sorted(set(devices))
    for table in (FINDINGS, SKIPPED, APPROVED, DEVICE_UNITS, DEVICES):
        c.execute(delete(table).where(bulk.among(c, table.c.device, names)))
