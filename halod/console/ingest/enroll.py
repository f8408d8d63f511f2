# SPDX-License-Identifier: Apache-2.0
"""`POST /api/v1/enroll`: exchanges the organisation's key for a device's own token (docs/report-api.md, Enrolment).

`device` is no secret: whoever has the key can name another's machine. So:

1. A device that is not known gets a token at once; it is bound to the device and its install id (first come).
2. A known one gets a token when it proves to be itself: by its last token, not revoked, and the same install id.
3. Else an operator decides (202). The decision is about the install id that asked first; another one waits again.
4. A device that can prove itself is not locked out by an operator's refusal of somebody who could not.
"""

from datetime import UTC, datetime
from typing import Final

import msgspec
from sqlalchemy import Connection, RowMapping, delete, insert, select, update
from starlette.responses import Response

from halod.console.access import Access, Route
from halod.console.call import Call, Console
from halod.console.ingest import wire
from halod.console.problem import Problem
from halod.console.security import audit, tokens
from halod.console.security.refusals import Refusals
from halod.console.store import apply, known
from halod.console.store.schema import DEVICES, ENROLLMENTS
from halod.status import clean

BODY: Final = 16 * 1024
PENDING_SECONDS: Final = 600
"""How long a device that waits for an operator is asked to wait before it asks again."""
PATH: Final = "/api/v1/enroll"


def routes(refusals: Refusals) -> tuple[Route, ...]:
    """Give the routes; refused keys are counted by `refusals`."""

    def endpoint(call: Call) -> Response:
        try:
            response = _enroll(call, refusals)
        except Problem as problem:
            call.console.metrics.add(
                "halo_enrollments_total", outcome=_OUTCOMES.get(problem.status, "refused")
            )
            raise
        outcome = "granted" if response.status_code == 201 else "pending"
        call.console.metrics.add("halo_enrollments_total", outcome=outcome)
        return response

    return (
        Route(
            method="POST",
            path=PATH,
            name="enroll",
            access=Access.ENROLL_KEY,
            endpoint=endpoint,
            body=BODY,
            summary="Exchange the enrolment key for a token of this device",
        ),
    )


_OUTCOMES: Final = {401: "unauthorised", 409: "conflict"}


def _enroll(call: Call, refusals: Refusals) -> Response:
    headers = call.request.headers
    text = tokens.bearer(headers.get("authorization"))
    key = tokens.digest(text)
    refusals.check(call.address, key)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if (
        kind != "application/json"
        or headers.get("content-encoding", "identity").strip().lower() != "identity"
    ):
        raise Problem(415, "a request for enrolment is application/json, not compressed")
    try:
        asked: wire.Enrolment | Problem = wire.read_enrolment(call.body)
    except wire.Malformed:
        asked = Problem(400, "the body is no JSON object")
    except wire.NotAStatus:
        asked = Problem(422, "device, installId, hostname, os and halod are needed")
    with call.console.store.read() as c:
        valid = tokens.find_enroll_key(c, text, call.console.clock.now()) is not None
    # Who has no valid key does not get as far as the lock of all changes.
    answer = answer_to(call.console, text, asked, call.address) if valid else _not_valid(text)
    if isinstance(answer, Problem) and answer.status == 401:
        refusals.add(call.address, key)
        raise answer
    refusals.good(key)
    if isinstance(answer, Problem):
        raise answer
    return answer


def answer_to(
    console: Console, key_text: str, asked: wire.Enrolment | Problem, address: str
) -> Response | Problem:
    """Decide in one transaction, alone among all replicas; what is refused is committed with it."""
    now = console.clock.now()
    with console.store.change() as c:
        key = tokens.find_enroll_key(c, key_text, now)
        if key is None:
            return _not_valid(key_text)
        if isinstance(asked, Problem):
            return asked
        ask = _Ask(asked=asked, key=key, address=address, now=now)
        where = ENROLLMENTS.c.device == asked.device
        waiting = c.execute(select(ENROLLMENTS).where(where)).mappings().first()
        way = _way(c, asked, waiting)
        if way == "refused":
            return Problem(409, "an operator has refused this device")
        if way == "waiting":
            _note_waiting(c, ask, waiting)
            return Response(status_code=202, headers={"Retry-After": str(PENDING_SECONDS), **_NO_STORE})
        if way != "proven" and not tokens.use_enroll_key(c, key.id, now):
            return Problem(403, "this enrolment key has been used as often as it may")
        return _grant(c, ask, way, console.settings.device_token_days)


def _not_valid(key_text: str) -> Problem:
    error = ' error="invalid_token"' if key_text else ""
    return Problem(401, "the enrolment key is not valid", headers={"WWW-Authenticate": "Bearer" + error})


class _Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request with a valid key."""

    asked: wire.Enrolment
    key: tokens.EnrollKey
    address: str
    now: int

    @property
    def claims(self) -> dict[str, str]:
        """What the machine says of itself, as it is kept."""
        return {
            "hostname": clean(self.asked.hostname, 256),
            "os": clean(self.asked.os, wire.WORD),
            "halod": clean(self.asked.halod, wire.WORD),
        }

    def record(self, c: Connection, action: str, **detail: str) -> None:
        """Write a line of the audit log."""
        audit.record(
            c,
            time=self.now,
            actor=self.key.name,
            actor_kind="enroll-key",
            action=action,
            target=self.asked.device,
            address=self.address,
            **detail,
        )


_NO_STORE: Final = {"Cache-Control": "no-store"}


def _way(c: Connection, asked: wire.Enrolment, waiting: RowMapping | None) -> str:
    """Tell how a device comes to its token: new, proven or accepted; or why not: waiting or refused."""
    device = asked.device
    there = c.execute(select(DEVICES.c.device).where(DEVICES.c.device == device)).first() is not None
    if not there and not tokens.has_token(c, device) and waiting is None:
        return "new"
    if asked.old_token and tokens.proves(c, asked.old_token, device=device, install_id=asked.install_id):
        return "proven"
    if waiting is not None and waiting["install_id"] == asked.install_id:
        return str(waiting["state"])
    return "waiting"


def _note_waiting(c: Connection, ask: _Ask, waiting: RowMapping | None) -> None:
    """Note who waits. Who asks first holds the place; a refused one gives it up to another install id."""
    asked = ask.asked
    which = ENROLLMENTS.c.device == asked.device
    if waiting is None or (waiting["state"] == "refused" and waiting["install_id"] != asked.install_id):
        c.execute(delete(ENROLLMENTS).where(which))
        c.execute(
            insert(ENROLLMENTS).values(
                device=asked.device,
                install_id=asked.install_id,
                **ask.claims,
                address=ask.address,
                key_id=ask.key.id,
                first_asked=ask.now,
                last_asked=ask.now,
                asked=1,
                state="waiting",
            )
        )
        ask.record(c, "device.wait")
    elif waiting["install_id"] == asked.install_id:
        again = {"last_asked": ask.now, "asked": ENROLLMENTS.c.asked + 1, "address": ask.address}
        c.execute(update(ENROLLMENTS).where(which).values(**again, **ask.claims))
    else:
        if not waiting["others"]:
            ask.record(c, "device.conflict")
        c.execute(update(ENROLLMENTS).where(which).values(others=ENROLLMENTS.c.others + 1))


def _grant(c: Connection, ask: _Ask, way: str, days: int) -> Response:
    device, now = ask.asked.device, ask.now
    known.create(c, device, now, **ask.claims)
    values = {"install_id": ask.asked.install_id}
    if way != "proven":
        values["assigned_ring"] = ask.key.ring
        values["assigned_units"] = msgspec.json.encode(ask.key.units).decode()
    c.execute(update(DEVICES).where(DEVICES.c.device == device).values(**values))
    if way == "new":
        apply.heard(c, [device], now)
    c.execute(delete(ENROLLMENTS).where(ENROLLMENTS.c.device == device))
    by = f"enroll-key {ask.key.name}"
    token = tokens.issue_device(c, device=device, install_id=ask.asked.install_id, now=now, days=days, by=by)
    ask.record(c, "device.enroll", way=way)
    answer: dict[str, str] = {"token": token}
    if days:
        answer["expires"] = _time_text(now + days * tokens.DAY)
    return Response(msgspec.json.encode(answer), 201, _NO_STORE, media_type="application/json")


def _time_text(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- what an operator does ---------------------------------------------------------------------------------


def accept(
    c: Connection,
    device: str,
    *,
    by: str,
    now: int,
    by_kind: str = "session",
    address: str = "",
    install_id: str = "",
) -> bool:
    """Let the one that waits for `device` have a token when it asks next; False when nobody waits.

    `install_id`, if it is given, is the one that the operator has seen: another one is not accepted by mistake.
    """
    done = _decide(c, device, "accepted", by, install_id)
    if done:
        _note(c, "device.accept", device, now=now, actor=by, actor_kind=by_kind, address=address)
    return done


def refuse(
    c: Connection,
    device: str,
    *,
    by: str,
    now: int,
    by_kind: str = "session",
    address: str = "",
    install_id: str = "",
) -> bool:
    """Refuse the one that waits for `device`; False when nobody waits."""
    done = _decide(c, device, "refused", by, install_id)
    if done:
        _note(c, "device.refuse", device, now=now, actor=by, actor_kind=by_kind, address=address)
    return done


def _decide(c: Connection, device: str, state: str, by: str, install_id: str) -> bool:
    which = [ENROLLMENTS.c.device == device, ENROLLMENTS.c.state != state]
    if install_id:
        which.append(ENROLLMENTS.c.install_id == install_id)
    done = c.execute(update(ENROLLMENTS).where(*which).values(state=state, decided_by=clean(by, 256)))
    return done.rowcount == 1


def _note(
    c: Connection, action: str, device: str, *, now: int, actor: str, actor_kind: str, address: str
) -> None:
    audit.record(
        c, time=now, actor=actor, actor_kind=actor_kind, action=action, target=device, address=address
    )
