# SPDX-License-Identifier: Apache-2.0
"""`/api/v1/webhooks`: what is kept for webhooks, and retrying or discarding what is dead."""

from typing import Any, Final

import msgspec
from starlette.responses import Response

from halod.console.access import Access, Route
from halod.console.call import Call
from halod.console.hooks import letters
from halod.console.hooks.events import moment
from halod.console.hooks.letters import By, DeliveryRow
from halod.console.problem import Problem
from halod.console.store.paging import parse_limit

_PATH: Final = "/api/v1/webhooks/deliveries"


def listed(call: Call) -> Response:
    """List deliveries, newest first."""
    query = call.request.query_params
    state = query.get("state", "")
    if state and state not in letters.STATES:
        raise Problem(400, "state is one of " + ", ".join(letters.STATES))
    with call.console.store.read() as c:
        page = letters.deliveries(
            c,
            state=state,
            hook=query.get("hook", ""),
            cursor=query.get("cursor", ""),
            limit=parse_limit(query.get("limit", "")),
        )
    return _json({"rows": [_document(row) for row in page.rows], "next": page.next})


def retry(call: Call) -> Response:
    """Send a dead delivery again."""
    return _done(call, letters.retry, seq=_seq(call))


def discard(call: Call) -> Response:
    """Drop a dead delivery."""
    return _done(call, letters.discard, seq=_seq(call))


def retry_all(call: Call) -> Response:
    """Send all dead deliveries of a webhook again."""
    return _done(call, letters.retry, hook=call.request.path_params["hook"])


def discard_all(call: Call) -> Response:
    """Drop all dead deliveries of a webhook."""
    return _done(call, letters.discard, hook=call.request.path_params["hook"])


def _done(call: Call, what: Any, **which: Any) -> Response:  # noqa: ANN401 - one of the two above
    console = call.console
    by = By(actor=call.actor.name, actor_kind=call.actor.kind, address=call.address)
    with console.store.write() as c:
        count = what(c, by=by, now=console.clock.now(), **which)
    if not count:
        raise Problem(404, "nothing dead is kept under this name")
    return _json({"deliveries": count})


def _seq(call: Call) -> int:
    text = call.request.path_params["delivery"]
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 19 and int(text)):
        raise Problem(404, "nothing dead is kept under this name")
    return int(text)


def _document(row: DeliveryRow) -> dict[str, Any]:
    document = msgspec.to_builtins(row)
    payload = msgspec.json.decode(row.payload)
    times = {"created": moment(row.created), "nextTry": moment(row.next_try)}
    return {**document, **times, "payload": payload}


def _json(document: object) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")


ROUTES: Final = (
    Route(
        method="GET",
        path=_PATH,
        name="webhook-deliveries",
        access=Access.VIEWER,
        endpoint=listed,
        summary="Deliveries of webhooks, newest first",
    ),
    Route(
        method="POST",
        path=_PATH + "/{delivery}/retry",
        name="webhook-retry",
        access=Access.OPERATOR,
        endpoint=retry,
        summary="Send a dead delivery again",
    ),
    Route(
        method="DELETE",
        path=_PATH + "/{delivery}",
        name="webhook-discard",
        access=Access.OPERATOR,
        endpoint=discard,
        summary="Drop a dead delivery",
    ),
    Route(
        method="POST",
        path="/api/v1/webhooks/{hook}/retry",
        name="webhook-retry-all",
        access=Access.OPERATOR,
        endpoint=retry_all,
        summary="Send all dead deliveries of a webhook again",
    ),
    Route(
        method="DELETE",
        path="/api/v1/webhooks/{hook}/dead",
        name="webhook-discard-all",
        access=Access.OPERATOR,
        endpoint=discard_all,
        summary="Drop all dead deliveries of a webhook",
    ),
)
