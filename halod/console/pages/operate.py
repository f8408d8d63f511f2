# SPDX-License-Identifier: Apache-2.0
"""What an operator decides: devices that wait, device tokens, webhooks that were not delivered.

Every change is one form with one button, guarded by the gate, written to the audit log in the transaction that makes
it, and answered with a redirect, so that a page loaded anew changes nothing twice.
"""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection
from starlette.responses import RedirectResponse, Response

from halod.console.access import Access, Route
from halod.console.call import Call
from halod.console.hooks import letters
from halod.console.ingest import enroll
from halod.console.pages import links
from halod.console.pages.forms import fields, row_id
from halod.console.pages.render import render
from halod.console.problem import Problem
from halod.console.security import audit, tokens
from halod.console.store.read import devices as devices_of

FORM: Final = 4096
"""Most bytes of a form."""


def record(call: Call, c: Connection, action: str, target: str, **detail: str | int | bool) -> None:
    """Write a line of the audit log about what this call does."""
    audit.record(
        c,
        time=call.console.clock.now(),
        actor=call.actor.name,
        actor_kind=call.actor.kind,
        action=action,
        target=target,
        address=call.address,
        **detail,
    )


# --- devices that wait -------------------------------------------------------------------------------------


def enrolments(call: Call) -> Response:
    """List devices that wait for a decision."""
    asked = links.query(call, "cursor", "done")
    with call.console.store.read() as c:
        page = devices_of.pending(c, cursor=asked["cursor"])
    return render(call, "enrolments.html", here="enrolments", page=page, asked=asked)


def _decide(decision: Callable[..., bool], word: str) -> Callable[[Call], Response]:
    def decide(call: Call) -> Response:
        device = call.request.path_params["device"]
        install_id = fields(call).get("install", "")
        if not install_id:
            raise Problem(422, "the form does not say which installation is meant")
        with call.console.store.change() as c:
            done = decision(
                c,
                device,
                by=call.actor.name,
                now=call.console.clock.now(),
                address=call.address,
                install_id=install_id,
            )
        if not done:
            raise Problem(409, "this device does not wait any more, or another installation asks for it now")
        return RedirectResponse(f"/enrolments?done={word}", 303)

    return decide


def revoke_device_token(call: Call) -> Response:
    """End one token of a device for good."""
    device, number = call.request.path_params["device"], row_id(call, "token")
    with call.console.store.change() as c:
        ours = tokens.list_tokens(c, kind="device", device=device, after=number + 1, limit=1)
        if not (ours and ours[0].id == number):
            raise Problem(404, "this device has no such token")
        if tokens.revoke(c, number, call.console.clock.now()):
            record(call, c, "token.revoke", device, kind="device", number=number)
    return RedirectResponse(f"{links.device(device)}?done=revoked#tokens-h", 303)


# --- webhooks ----------------------------------------------------------------------------------------------


def webhooks(call: Call) -> Response:
    """Show the receivers and what could not be delivered to them."""
    asked = links.query(call, "hook", "state", "cursor", "done")
    state = asked["state"] if asked["state"] in letters.STATES else "dead"
    with call.console.store.read() as c:
        page = letters.deliveries(c, state=state, hook=asked["hook"], cursor=asked["cursor"])
        counts = letters.counts(c)
    return render(
        call,
        "webhooks.html",
        here="webhooks",
        page=page,
        asked=asked,
        state=state,
        states=letters.STATES,
        hooks=call.console.settings.webhooks,
        counts=counts,
    )


def _letter(what: Callable[..., int], word: str) -> Callable[[Call], Response]:
    def act(call: Call) -> Response:
        by = letters.By(actor=call.actor.name, actor_kind=call.actor.kind, address=call.address)
        with call.console.store.write() as c:
            count = what(c, by=by, now=call.console.clock.now(), seq=row_id(call, "delivery") or -1)
        if not count:
            raise Problem(409, "this delivery is not among the dead ones any more")
        return RedirectResponse(f"/webhooks?done={word}", 303)

    return act


ROUTES: Final = (
    Route(
        method="GET",
        path="/enrolments",
        name="enrolments",
        access=Access.VIEWER,
        endpoint=enrolments,
        page=True,
    ),
    Route(
        method="POST",
        path="/enrolments/{device}/accept",
        name="enrolment-accept",
        access=Access.OPERATOR,
        endpoint=_decide(enroll.accept, "accepted"),
        page=True,
        body=FORM,
    ),
    Route(
        method="POST",
        path="/enrolments/{device}/refuse",
        name="enrolment-refuse",
        access=Access.OPERATOR,
        endpoint=_decide(enroll.refuse, "refused"),
        page=True,
        body=FORM,
    ),
    Route(
        method="POST",
        path="/devices/{device}/tokens/{token}/revoke",
        name="device-token-revoke",
        access=Access.OPERATOR,
        endpoint=revoke_device_token,
        page=True,
        body=FORM,
    ),
    Route(
        method="GET", path="/webhooks", name="webhooks", access=Access.VIEWER, endpoint=webhooks, page=True
    ),
    Route(
        method="POST",
        path="/webhooks/{delivery}/retry",
        name="webhook-page-retry",
        access=Access.OPERATOR,
        endpoint=_letter(letters.retry, "again"),
        page=True,
        body=FORM,
    ),
    Route(
        method="POST",
        path="/webhooks/{delivery}/discard",
        name="webhook-page-discard",
        access=Access.OPERATOR,
        endpoint=_letter(letters.discard, "discarded"),
        page=True,
        body=FORM,
    ),
)
