# SPDX-License-Identifier: Apache-2.0
"""Takes cleaned reports into the database: the only writer of devices, findings, transitions and their counts.

Everything happens in the caller's transaction under `Store.change`, a batch at a time with a fixed number of
statements. A report that comes twice changes nothing the second time: the status is replaced by itself, and a
transition whose id the device has sent before is dropped.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Table, delete, select, update

from halod.console.store import bulk, counts, delta, known
from halod.console.store.news import NewFinding, News
from halod.console.store.report import Report
from halod.console.store.schema import DEVICES, HEARTBEATS, SEEN_NAMES, TRANSITIONS

NAMES_WINDOW: Final = 30 * counts.DAY
NAMES_LIMIT: Final = 1000

Pairs = dict[str, tuple[delta.State, delta.State]]


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a device's reports have cost: `rows` were written, of which `kept` stay for months."""

    rows: int
    kept: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a batch."""

    news: News
    refused: frozenset[int]
    """Places in the batch of reports that were not taken: more distinct servers in 30 days than a device may have."""
    costs: Mapping[str, Cost]
    """Of each device of which something was taken."""


def apply(
    c: Connection,
    reports: Sequence[Report],
    devices: Mapping[str, known.Device],
    now: int,
    *,
    names_limit: int = NAMES_LIMIT,
) -> Outcome:
    """Take reports in their order; several of one device are taken one after the other.

    `devices`: what is known of theirs, as `known.load` gives it under the lock. That they were `heard` is noted by the
    caller.
    """
    refused = _too_many_names(c, reports, devices, now, names_limit)
    taken = [report for at, report in enumerate(reports) if at not in refused]
    last = {report.device: report for report in taken}
    pairs = _pairs(taken, devices, now)
    said = {device: delta.changes(*pair) for device, pair in pairs.items()}
    # What has to be read comes first; the rest is sent without waiting, what the database takes longest for last.
    things = counts.number_things(c, pairs.values(), said.values(), now)
    new = counts.unseen(c, said.values())
    with bulk.unanswered(c):
        _save_devices(c, last, pairs, devices, now)
        _mark_limited(c, [reports[at] for at in sorted(refused)], devices, last, now)
        known.save_findings(c, pairs, said, things)
        known.save_lists(c, pairs)
        _save_transitions(c, taken, now)
        difference = delta.difference(pairs.values())
        counts.apply(c, difference, things, now)
    counts.add_day(c, said.values(), difference, now)
    news = News(
        new_findings=tuple(_new_findings(said, last, things)),
        new_definitions=tuple(sorted(new)),
        coverage_lost=tuple(
            device
            for device, report in sorted(last.items())
            if _partly(report, pairs[device][1]) and _was_whole(devices.get(device))
        ),
    )
    return Outcome(news=news, refused=frozenset(refused), costs=_costs(taken, pairs, said))


def _costs(reports: Iterable[Report], pairs: Pairs, said: Mapping[str, delta.Changes]) -> dict[str, Cost]:
    sent = Counter(dict.fromkeys(pairs, 0))
    for report in reports:
        sent[report.device] += len(report.transitions)
    return {
        device: Cost(
            rows=delta.weight(*pairs[device]) + transitions,
            kept=transitions + len(said[device].inserted) + len(said[device].replaced),
        )
        for device, transitions in sent.items()
    }


def heard(c: Connection, devices: Iterable[str], now: int) -> None:
    """Note that these devices have reported. In sorted order: this is done without the lock, too."""
    rows = [{"device": device, "last_report": now} for device in sorted(set(devices))]
    bulk.insert(c, HEARTBEATS, rows, key=("device",), assign=_later)


def _later(_table: Table, given: Any) -> dict[str, Any]:  # noqa: ANN401 - SQLAlchemy's `excluded`
    return {"last_report": given.last_report}


def forget(c: Connection, devices: Iterable[str], now: int) -> None:
    """Delete devices with what is known of them, and take them out of the counts. Transitions are kept."""
    there = known.load(c, devices)
    pairs = {device: (one.state, delta.NOTHING) for device, one in there.items()}
    things = counts.number_things(c, pairs.values(), (), now)
    known.forget(c, there)
    for table in (SEEN_NAMES, HEARTBEATS):
        for device in sorted(there):
            c.execute(delete(table).where(table.c.device == device))
    difference = delta.difference(pairs.values())
    counts.apply(c, difference, things, now)
    counts.add_day(c, [delta.changes(*pair) for pair in pairs.values()], difference, now)


def _partly(report: Report, state: delta.State) -> bool:
    return report.partly or bool(state.skipped)


def _was_whole(device: known.Device | None) -> bool:
    """Tell whether a device had reported, and all could be read."""
    return device is not None and bool(device.row["content"]) and not device.row["partly"]


def _pairs(reports: Iterable[Report], devices: Mapping[str, known.Device], now: int) -> Pairs:
    pairs: Pairs = {}
    for report in reports:
        there = devices.get(report.device)
        before, last = pairs.get(report.device) or (2 * (there.state if there else delta.NOTHING,))
        pairs[report.device] = (before, delta.step(last, report, now))
    return pairs


# --- devices and transitions -------------------------------------------------------------------------------


def _save_devices(
    c: Connection, last: Mapping[str, Report], pairs: Pairs, devices: Mapping[str, known.Device], now: int
) -> None:
    rows = []
    revision = known.revision()
    for device in sorted(last):
        report, (_, state), there = last[device], pairs[device], devices.get(device)
        rows.append(
            {
                "device": device,
                **{name: getattr(report, name) for name in _CLAIMS},
                "units": msgspec.json.encode(report.units).decode(),
                "not_covered": msgspec.json.encode(report.not_covered).decode(),
                "revision": revision,
                "first_seen": now,
                "changed_at": now
                if there is None or there.row["content"] != report.content
                else there.row["changed_at"],
                "findings": len(state.findings),
                "skipped": len(state.skipped),
                "partly": _partly(report, state),
                "limited": False,
            }
        )
    bulk.insert(c, DEVICES, rows, key=("device",), assign=_replace)


_CLAIMS: Final = (
    *("hostname", "os", "halod", "username", "ring", "digest", "mode", "claimed_time", "content"),
    *("drift_total", "accounts", "files", "definitions", "error_code", "last_error", "truncated"),
)
_REPLACED: Final = (
    *_CLAIMS,
    *("units", "not_covered", "revision", "changed_at", "findings", "skipped", "partly", "limited"),
)


def _replace(_table: Table, given: Any) -> dict[str, Any]:  # noqa: ANN401 - SQLAlchemy's `excluded`
    return {name: getattr(given, name) for name in _REPLACED}


def _save_transitions(c: Connection, reports: Iterable[Report], now: int) -> None:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for report in reports:
        for one in report.transitions:
            rows.setdefault(
                (report.device, one.tid),
                {
                    "device": report.device,
                    "tid": one.tid,
                    "received": now,
                    "claimed_time": one.claimed_time,
                    "event": one.event,
                    "was": one.was,
                    **{name: getattr(one.finding, name) for name in _OF_FINDING},
                },
            )
    bulk.insert(c, TRANSITIONS, list(rows.values()), key=("device", "tid"))


_OF_FINDING: Final = (
    *("username", "harness", "file", "scope", "server", "kind", "transport", "host", "sha256", "secret"),
)


def _new_findings(
    said: Mapping[str, delta.Changes],
    last: Mapping[str, Report],
    things: Mapping[tuple[str, str, str], int],
) -> Iterable[NewFinding]:
    for device, changes in said.items():
        for row in (*changes.inserted, *changes.replaced):
            one = row.finding
            if not one.stale:
                yield NewFinding(
                    thing=things[one.thing],
                    kind=one.kind,
                    server=one.server,
                    transport=one.transport,
                    host=one.host,
                    sha256=one.sha256,
                    fix=one.fix,
                    harness=one.harness,
                    device=device,
                    hostname=last[device].hostname,
                    username=one.username,
                )


# --- the limit of names ------------------------------------------------------------------------------------


def _too_many_names(
    c: Connection, reports: Sequence[Report], devices: Mapping[str, known.Device], now: int, limit: int
) -> set[int]:
    """Find the reports that bring a device over its limit, and keep the names of the others.

    What counts are the names of 30 days and those of the findings that are known now. A name is written when it
    comes and when it goes, so a report with the names of the last one looks nothing up.
    """
    current = {
        device: {_name(row.finding.server) for row in there.state.findings}
        for device, there in devices.items()
    }
    said = [
        {_name(one.server) for one in (*report.findings, *(t.finding for t in report.transitions))}
        for report in reports
    ]
    asking = {
        report.device
        for report, names in zip(reports, said, strict=True)
        if names - current.get(report.device, set())
    }
    recent: dict[str, set[str]] = {device: set() for device in asking}
    if asking:
        for row in c.execute(
            select(SEEN_NAMES.c.device, SEEN_NAMES.c.name).where(
                bulk.among(c, SEEN_NAMES.c.device, sorted(asking)),
                SEEN_NAMES.c.last_seen > now - NAMES_WINDOW,
            )
        ):
            recent[row.device].add(row.name)
    refused: set[int] = set()
    written: set[tuple[str, str]] = set()
    for at, (report, names) in enumerate(zip(reports, said, strict=True)):
        device = report.device
        there = current.setdefault(device, set())
        new = names - there
        if new and len(recent.get(device, set()) | there | names) > limit:
            refused.add(at)
            continue
        gone = set() if report.truncated else there - names
        written.update((device, name) for name in new | gone)
        if device in recent:
            recent[device] |= names
        current[device] = {_name(one.server) for one in report.findings} | (
            there if report.truncated else set()
        )
    rows = [{"device": device, "name": name, "last_seen": now} for device, name in sorted(written)]
    bulk.insert(c, SEEN_NAMES, rows, key=("device", "name"), assign=_seen)
    return refused


@lru_cache(maxsize=8192)
def _name(server: str) -> str:
    return hashlib.sha256(server.encode()).hexdigest()[:32]


def _seen(_table: Table, given: Any) -> dict[str, Any]:  # noqa: ANN401 - SQLAlchemy's `excluded`
    return {"last_seen": given.last_seen}


def _mark_limited(
    c: Connection,
    refused: Sequence[Report],
    devices: Mapping[str, known.Device],
    taken: Mapping[str, Report],
    now: int,
) -> None:
    """Show that a device's reports are refused, unless a later one of the batch was taken."""
    for report in {report.device: report for report in refused}.values():
        if report.device in taken:
            continue
        if report.device not in devices:
            known.create(c, report.device, now, hostname=report.hostname, os=report.os, halod=report.halod)
            heard(c, [report.device], now)
        c.execute(update(DEVICES).where(DEVICES.c.device == report.device).values(limited=True))
