# SPDX-License-Identifier: Apache-2.0
"""What the API does: devices that wait are accepted or refused, tokens are revoked. Each is in the audit log."""

from typing import Final

from starlette.responses import Response

from halod.console.access import Access, Role
from halod.console.api import wire
from halod.console.api.asking import Asked, Parameter
from halod.console.api.lists import DEVICE, PAGED, filters
from halod.console.api.operation import Operation
from halod.console.call import Call
from halod.console.ingest import enroll
from halod.console.problem import Problem
from halod.console.security import audit
from halod.console.security import tokens as secrets
from halod.console.store.read import devices, tokens

_INSTALL: Final = filters(
    install="The `installId` that was seen in the list: another one is not let in, or kept out, by mistake."
)
_TOKEN: Final = Parameter(name="token", text="Its number.", number=True, least=1, in_path=True)


def _pending(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = devices.pending(c, **asked.pick("cursor", "limit"))
    return wire.page(found)


def _decide(call: Call, asked: Asked, *, accept: bool) -> Response:
    console = call.console
    decide = enroll.accept if accept else enroll.refuse
    with console.store.change() as c:
        done = decide(
            c,
            asked.text("device"),
            by=call.actor.name,
            by_kind=call.actor.kind,
            now=console.clock.now(),
            address=call.address,
            install_id=asked.text("install"),
        )
    if not done:
        raise Problem(404, "nobody waits under this name")
    return Response(status_code=204)


def _accept(call: Call, asked: Asked) -> Response:
    return _decide(call, asked, accept=True)


def _refuse(call: Call, asked: Asked) -> Response:
    return _decide(call, asked, accept=False)


def _tokens(call: Call, asked: Asked) -> Response:
    with call.console.store.read() as c:
        found = tokens.tokens(c, **asked.pick("kind", "device", "cursor", "limit"))
    return wire.page(found)


def _revoke(call: Call, asked: Asked) -> Response:
    """End a token: an operator a device's, an administrator any."""
    console, number = call.console, asked.number("token")
    now = console.clock.now()
    with console.store.write() as c:
        row = tokens.token(c, number)
        if row is None:
            raise Problem(404, "there is no such token")
        if row.kind != "device" and call.actor.role < Role.ADMIN:
            raise Problem(403, "this needs the role admin")
        if not secrets.revoke(c, number, now):
            raise Problem(409, "this token has been revoked before")
        audit.record(
            c,
            time=now,
            actor=call.actor.name,
            actor_kind=call.actor.kind,
            action="token.revoke",
            target=row.device or row.name,
            address=call.address,
            token=number,
            kind=row.kind,
        )
    return Response(status_code=204)


OPERATIONS: Final = (
    Operation(
        path="/enrollments",
        name="enrollments",
        summary="Devices that wait for an operator",
        about="Known devices that asked for a token and did not show that they are the same ones.",
        run=_pending,
        parameters=PAGED,
        row=devices.PendingRow,
        listed=True,
    ),
    Operation(
        method="POST",
        path="/enrollments/{device}/accept",
        name="enrollment-accept",
        summary="Let a device that waits have a token",
        access=Access.OPERATOR,
        run=_accept,
        parameters=(DEVICE, *_INSTALL),
    ),
    Operation(
        method="POST",
        path="/enrollments/{device}/refuse",
        name="enrollment-refuse",
        summary="Refuse a device that waits",
        access=Access.OPERATOR,
        run=_refuse,
        parameters=(DEVICE, *_INSTALL),
    ),
    Operation(
        path="/tokens",
        name="tokens",
        summary="Tokens of devices and programs, the newest first",
        about="What a token is cannot be read any more; `halo-server token` makes one.",
        access=Access.OPERATOR,
        run=_tokens,
        parameters=(
            Parameter(name="kind", text="Only these.", choices=("device", "api")),
            *filters(device="A device's identity."),
            *PAGED,
        ),
        row=tokens.TokenRow,
        listed=True,
    ),
    Operation(
        method="POST",
        path="/tokens/{token}/revoke",
        name="token-revoke",
        summary="End a token for good",
        about="An operator ends a device's token, an administrator any.",
        access=Access.OPERATOR,
        run=_revoke,
        parameters=(_TOKEN,),
    ),
)
