# SPDX-License-Identifier: Apache-2.0
"""A fictional organisation's fleet: some 120 devices and 30 days of history, the same at every run but for the date.

For `make run`, screenshots and tests of pages; never for a console that real devices report to. The policy is signed
with a key that anyone can compute, so `fill` goes only with settings that pin `public_key()`.
"""

import base64
import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import insert, update

from halod.console.access import Role
from halod.console.demo import draw, people, story
from halod.console.ingest.apply import take
from halod.console.policy import bundle
from halod.console.security import audit, tokens
from halod.console.settings import Settings
from halod.console.store import schema
from halod.console.store.engine import Store
from halod.policy.signed import Payload, public_bytes, sign

DEVICES: Final = 120
_DAY: Final = 86_400
_ROUNDS: Final = 4
"""Times a day at which changes are reported; enough for a history, few enough for a quick start."""
_LAST_MINUTES: Final = 15
_NEW_POLICY: Final = 16
"""Day on which the present policy was published."""


def public_key() -> str:
    """Give the key that `policy_keys` of the settings has to name."""
    return base64.b64encode(public_bytes(_key())).decode()


def _key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"halod demonstration: no secret").digest())


def fill(store: Store, settings: Settings, *, now: int, devices: int = DEVICES) -> None:
    """Fill an empty, migrated store: policies, thirty days of reports up to `now`, and a conflict that waits."""
    start = now - story.DAYS * _DAY
    _publish(store, settings, _older_text(), 3, at=start + _DAY)
    lives = {number: story.Life(people.machine(number)) for number in range(1, devices + 1)}
    digests = (_digest(_older_text()), _digest(_text()))
    for day in range(story.DAYS + 1):
        if day == _NEW_POLICY:
            _publish(store, settings, _text(), 4, at=start + day * _DAY + 9 * 3600)
        for at, numbers in _rounds(lives, day, start, now):
            documents = (
                lives[number].report(time=_iso(at), digest=digests[_has_new(number, day)])
                for number in numbers
            )
            take(store, [msgspec.json.encode(document) for document in documents], now=at)
    _last_reports(store, lives, digests, now)
    _enrol(store, [life.machine for life in lives.values()], start, now)
    _conflict(store, people.machine(min(46, devices)), now)
    _doings(store, people.machine(min(12, devices)), now)


def _has_new(number: int, day: int) -> bool:
    return day >= _NEW_POLICY and number not in story.OLD_POLICY


def _rounds(lives: dict[int, story.Life], day: int, start: int, now: int) -> Iterator[tuple[int, list[int]]]:
    """Give, for each time of a day at which someone reports a change, when and which machines."""
    by_round: dict[int, list[int]] = {}
    for number, life in lives.items():
        machine = life.machine
        if day < machine.joined or day > story.SILENT.get(number, story.DAYS):
            continue
        changed = life.live(day) if day > machine.joined else True
        if changed or day in (_NEW_POLICY, story.SILENT.get(number)):
            by_round.setdefault(draw.between(0, _ROUNDS - 1, number, day, "round"), []).append(number)
    for nth in sorted(by_round):
        at = start + day * _DAY + int((7 + 3.1 * nth) * 3600)
        if day == story.DAYS:  # today: the story ends now
            at = now - (_ROUNDS - nth) * 1700 - 900
        yield at, by_round[nth]


def _last_reports(store: Store, lives: dict[int, story.Life], digests: tuple[str, str], now: int) -> None:
    """Let every machine that is not silent have reported within the last quarter of an hour."""
    by_minute: dict[int, list[int]] = {}
    for number in lives:
        if number not in story.SILENT:
            minute = draw.between(0, _LAST_MINUTES - 1, number, "last")
            by_minute.setdefault(minute, []).append(number)
    for minute in sorted(by_minute, reverse=True):
        at = now - 60 * minute
        numbers = by_minute[minute]
        documents = [
            lives[number].report(time=_iso(at), digest=digests[_has_new(number, story.DAYS)])
            for number in numbers
        ]
        take(store, [msgspec.json.encode(document) for document in documents], now=at)


def _publish(store: Store, settings: Settings, text: str, version: int, *, at: int) -> None:
    issued, expires = datetime.fromtimestamp(at - 600, UTC), datetime.fromtimestamp(at + 90 * _DAY, UTC)
    payload = Payload(org="acme", version=version, issued=issued, expires=expires, policy=text)
    with store.change() as c:
        bundle.publish(c, sign(payload, [_key()]), settings, by="policy pipeline", now=at)


def _text() -> str:
    with open(os.path.join(os.path.dirname(__file__), "halos.yaml"), encoding="utf-8") as file:
        return file.read()


def _older_text() -> str:
    return _text().replace("version: 0.0.82", "version: 0.0.78")


def _digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_CLAIMS_ANOTHER: Final = 31
"""A machine that claims another ring than its enrolment key gave it."""


def _enrol(store: Store, machines: list[people.Machine], start: int, now: int) -> None:
    """Give every ring its enrolment key, every machine a token and what its key assigned, and a program its token."""
    with store.change() as c:
        for ring in sorted({machine.ring for machine in machines}):
            tokens.new_enroll_key(
                c, name=f"laptops {ring}", ring=ring, now=start, days=120, by="platform team"
            )
        used = Counter(map(_key_of, machines))
        for key, uses in used.items():
            c.execute(
                update(schema.ENROLL_KEYS)
                .where(schema.ENROLL_KEYS.c.name == f"laptops {key}")
                .values(uses=uses)
            )
        for machine in machines:
            ring = _key_of(machine)
            assigned = {
                "assigned_ring": ring,
                "assigned_units": "[]",
                "install_id": f"demonstration-{machine.number}",
            }
            c.execute(
                update(schema.DEVICES).where(schema.DEVICES.c.device == machine.device).values(**assigned)
            )
            at, by = start + machine.joined * _DAY, f"enroll-key laptops {ring}"
            tokens.issue_device(
                c, device=machine.device, install_id=assigned["install_id"], now=at, days=365, by=by
            )
        for name, role, days in (("siem export", Role.VIEWER, 180), ("dashboards", Role.VIEWER, 38)):
            tokens.issue_api(c, name=name, role=role, now=now - 29 * _DAY, days=days, by="platform team")


def _key_of(machine: people.Machine) -> str:
    """Give the ring whose key a machine enrolled with."""
    return "ring3-ga" if machine.number == _CLAIMS_ANOTHER else machine.ring


def _conflict(store: Store, machine: people.Machine, now: int) -> None:
    """Let a known device ask again without its old token, as after a new installation or an attempt to be it."""
    with store.write() as c:
        c.execute(
            insert(schema.ENROLLMENTS).values(
                device=machine.device,
                install_id=hashlib.sha256(b"another installation").hexdigest()[:32],
                hostname=f"{machine.hostname}-new",
                os=machine.os,
                halod="0.1.0",
                address="192.0.2.44",
                key_id=0,
                first_asked=now - 5400,
                last_asked=now - 600,
                asked=3,
                state="waiting",
                decided_by="",
            )
        )


def _doings(store: Store, machine: people.Machine, now: int) -> None:
    """Write what people did in the console lately to its audit log."""
    alice, bob = "ines.castel", "tomas.horvat"
    lines: tuple[tuple[int, str, str, str, dict[str, str | int]], ...] = (
        (
            9 * _DAY,
            alice,
            "enroll-key.create",
            "laptops ring3-ga",
            {"ring": "ring3-ga", "days": 120, "uses": 0},
        ),
        (6 * _DAY, alice, "device.accept", machine.device, {}),
        (2 * _DAY, bob, "export", "findings.csv", {"kind": "denied"}),
        (7 * 3600, bob, "login", bob, {"way": "oidc", "role": "operator"}),
        (5400, alice, "login", alice, {"way": "oidc", "role": "admin"}),
        (4800, alice, "token.create", "siem export", {"kind": "api", "role": "viewer", "days": 180}),
    )
    with store.write() as c:
        for ago, actor, action, target, detail in lines:
            kind = "session"
            audit.record(
                c,
                time=now - ago,
                actor=actor,
                actor_kind=kind,
                action=action,
                target=target,
                address="192.0.2.17",
                **detail,
            )
