# SPDX-License-Identifier: Apache-2.0
"""Events for webhooks: what happened becomes rows of `deliveries`, in the transaction in which it happened.

A storm stays bounded. Every event has a subject: the thing that was found, the definition, the device. What happens
to one subject within FOLD seconds is one delivery that counts it; in those seconds at most PER_FOLD subjects of an
event get a delivery of their own, the rest are one `events.folded`. A thousand devices that begin to report the same
finding within ten minutes are at most eleven deliveries, with the right number in sum.

Invariants:

1. An event is queued if, and only if, what caused it is committed. The key of a delivery is (event, span, subject),
   once for a hook, so that nothing is queued twice.
2. A payload is written to only while nobody has begun to send it (`tries` 0): every attempt sends the same bytes,
   with the same id. What comes later is counted in a delivery of the next span.
3. A payload holds what a status may hold and nothing else (`halod.status`), at most SHOWN devices.
4. Needs the lock of `Store.change`: nobody else queues at the same time.
"""

import itertools
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, func, insert, select, update

from halod.console.settings import Hook
from halod.console.store.news import NewFinding, News
from halod.console.store.schema import DELIVERIES, DEVICES, SKIPPED

FOLDED: Final = "events.folded"
"""Comes with every event that a hook asks for (`settings.kinds.EVENTS`)."""
FOLD: Final = 60
"""Seconds of a span."""
PER_FOLD: Final = 20
"""Deliveries of one event that a hook gets for a span, beside one `events.folded`."""
WAITING: Final = 5_000
"""Deliveries that may wait for a hook; beyond that there is only `events.folded`."""
SHOWN: Final = 20
"""Devices that a payload names; `count` has the true number."""
_REASONS: Final = 10
_THE_REST: Final = "*"

Facts = dict[str, Any]
_Queued = dict[str, str | int]


class Happened(msgspec.Struct, kw_only=True):
    """What happened to one subject: facts that are the same for all, how often, and to which devices."""

    facts: Facts
    devices: list[Facts]
    count: int


class Payload(msgspec.Struct, kw_only=True):
    """What is sent, in the form that Standard Webhooks recommends, with the delivery's id."""

    id: str
    type: str
    timestamp: str
    data: dict[str, Any]


def after_change(c: Connection, hooks: Sequence[Hook], news: News, now: int) -> None:
    """Queue the events of a batch of reports."""
    if not hooks or not news:
        return
    wanted = {event for hook in hooks for event in hook.events}
    if "finding.new" in wanted:
        queue(c, hooks, "finding.new", _findings(news.new_findings), now)
    if "definition.new" in wanted:
        queue(c, hooks, "definition.new", _definitions(news), now)
    if "coverage.lost" in wanted:
        queue(c, hooks, "coverage.lost", _coverage(c, news.coverage_lost), now)


def devices_changed(
    c: Connection, hooks: Sequence[Hook], event: str, rows: Iterable[tuple[str, str, str, int]], now: int
) -> None:
    """Queue `device.silent` or `device.back` for rows of (device, hostname, ring, last report)."""
    happened = {
        device: Happened(
            facts={},
            devices=[{"device": device, "hostname": hostname, "ring": ring, "lastReport": moment(last)}],
            count=1,
        )
        for device, hostname, ring, last in rows
    }
    queue(c, hooks, event, happened, now)


def moment(seconds: int) -> str:
    """Give a time as payloads have it: RFC 3339, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- what happened ------------------------------------------------------------------------------------------


def _findings(found: Iterable[NewFinding]) -> dict[str, Happened]:
    happened: dict[str, Happened] = {}
    for finding in found:
        one = happened.setdefault(
            str(finding.thing), Happened(facts={"finding": _finding(finding)}, devices=[], count=0)
        )
        _count(one, [_device(finding)], 1)
    return happened


def _definitions(news: News) -> dict[str, Happened]:
    happened = {
        one: Happened(facts={"definitionSha256": one}, devices=[], count=0) for one in news.new_definitions
    }
    for finding in news.new_findings:
        one = happened.get(finding.sha256)
        if one is not None:
            one.facts.setdefault("finding", _finding(finding))
            _count(one, [_device(finding)], 1)
    return happened


def _coverage(c: Connection, devices: Sequence[str]) -> dict[str, Happened]:
    """Name why devices cannot be read any more; of the first few, as the others are folded."""
    if not devices:
        return {}
    shown = sorted(devices)[: PER_FOLD + 1]
    names = {
        row.device: row
        for row in c.execute(
            select(DEVICES.c.device, DEVICES.c.hostname, DEVICES.c.ring).where(DEVICES.c.device.in_(shown))
        )
    }
    reasons: dict[str, list[str]] = {device: [] for device in shown}
    found = select(SKIPPED.c.device, SKIPPED.c.reason).where(SKIPPED.c.device.in_(shown)).distinct()
    for row in c.execute(found.order_by(SKIPPED.c.device, SKIPPED.c.reason)):
        reasons[row.device].append(row.reason)
    happened = {}
    for device in sorted(devices):
        known = names.get(device)
        facts = {"device": device}
        if known is not None:
            facts |= {"hostname": known.hostname, "ring": known.ring}
        happened[device] = Happened(
            facts={"reasons": reasons.get(device, [])[:_REASONS]}, devices=[facts], count=1
        )
    return happened


def _finding(finding: NewFinding) -> Facts:
    facts: Facts = {"group": finding.thing, "kind": finding.kind, "server": finding.server}
    facts |= {"transport": finding.transport, "harness": finding.harness}
    if finding.host:
        facts["host"] = finding.host
    return facts | {"definitionSha256": finding.sha256, "fix": finding.fix}


def _device(finding: NewFinding) -> Facts:
    return {"device": finding.device, "hostname": finding.hostname, "user": finding.username}


def _count(into: Happened, devices: Sequence[Facts], count: int) -> None:
    into.count += count
    known = {one["device"] for one in into.devices}
    for device in devices:
        if len(into.devices) < SHOWN and device["device"] not in known:
            into.devices.append(device)
            known.add(device["device"])


# --- the queue ----------------------------------------------------------------------------------------------


def queue(c: Connection, hooks: Iterable[Hook], event: str, happened: dict[str, Happened], now: int) -> None:
    """Queue what happened, by subject, for every hook that asks for the event."""
    if not happened:
        return
    for hook in hooks:
        if event in hook.events:
            _Span(c, hook.name, event, now).put(happened)


class _Span:
    """The deliveries of one hook and event from this span on; as a rule in two spans, each with PER_FOLD and one."""

    def __init__(self, c: Connection, hook: str, event: str, now: int) -> None:
        self._c = c
        self._hook = hook
        self._event = event
        self._now = now
        self._span = now // FOLD
        self._rows = self._read()
        self._new: dict[str, _Queued] = {}
        self._changed: dict[int, Payload] = {}

    def put(self, happened: dict[str, Happened]) -> None:
        """Count what happened in the deliveries that it belongs to."""
        room = self._room()
        rest: list[Happened] = []
        for name, one in happened.items():
            subject = f"={name}"  # so that no device is called like the rest
            known = self._key(subject) in self._rows or self._key(subject, 1) in self._rows
            if known or room > 0:
                room -= not known
                self._add(subject, self._event, one)
            else:
                rest.append(one)
        if rest:
            self._add(_THE_REST, FOLDED, _folded(self._event, rest))
        self._write()

    def _room(self) -> int:
        """Give how many subjects may still have a delivery of their own."""
        waiting = select(DELIVERIES.c.seq).where(DELIVERIES.c.hook == self._hook, DELIVERIES.c.state == "due")
        count = select(func.count()).select_from(waiting.limit(WAITING).subquery())
        if self._c.scalar(count) == WAITING:
            return 0
        own = [key for key in self._rows if key.startswith(self._key("")) and key != self._key(_THE_REST)]
        return PER_FOLD - len(own)

    def _add(self, subject: str, event: str, one: Happened) -> None:
        for later in itertools.count():
            key = self._key(subject, later)
            row = self._rows.get(key)
            if row is None:
                due = (self._span + later) * FOLD if later else self._now
                self._new[key] = self._queued(key, event, one, due)
                return
            if row.state == "due" and row.tries == 0:
                payload = self._changed.get(row.seq) or msgspec.json.decode(row.payload, type=Payload)
                self._changed[row.seq] = _with(payload, one)
                return

    def _queued(self, key: str, event: str, one: Happened, due: int) -> _Queued:
        data = {**one.facts, "count": one.count, "devices": one.devices[:SHOWN]}
        payload = Payload(
            id=f"msg_{secrets.token_hex(16)}", type=event, timestamp=moment(self._now), data=data
        )
        return {
            "hook": self._hook,
            "event": event,
            "payload": _text(payload),
            "key": key,
            "state": "due",
            "created": self._now,
            "next_try": due,
        }

    def _write(self) -> None:
        for seq, payload in sorted(self._changed.items()):
            self._c.execute(update(DELIVERIES).where(DELIVERIES.c.seq == seq).values(payload=_text(payload)))
        if self._new:
            self._c.execute(insert(DELIVERIES), list(self._new.values()))

    def _read(self) -> dict[str, Row[Any]]:
        """Read what is there, and keep it from being sent until this transaction ends."""
        first, last = self._key(""), f"{self._event}0"  # "0" comes after "/"
        rows = self._c.execute(
            select(*(DELIVERIES.c[name] for name in ("seq", "key", "state", "tries", "payload")))
            .where(DELIVERIES.c.hook == self._hook, DELIVERIES.c.key >= first, DELIVERIES.c.key < last)
            .order_by(DELIVERIES.c.key)
            .with_for_update()
        )
        return {row.key: row for row in rows}

    def _key(self, subject: str, later: int = 0) -> str:
        return f"{self._event}/{self._span + later:012d}/{subject}"


def _folded(event: str, rest: Sequence[Happened]) -> Happened:
    folded = Happened(facts={"event": event, "subjects": len(rest)}, devices=[], count=0)
    for one in rest:
        _count(folded, one.devices, one.count)
    return folded


def _with(payload: Payload, one: Happened) -> Payload:
    """Give a payload that counts what happened since, too."""
    data = payload.data
    sum_ = Happened(facts={}, devices=data["devices"], count=data["count"])
    _count(sum_, one.devices, one.count)
    data |= {"count": sum_.count, "devices": sum_.devices}
    if "subjects" in data:
        data["subjects"] += one.facts["subjects"]
    return payload


def _text(payload: Payload) -> str:
    return msgspec.json.encode(payload).decode()
