# SPDX-License-Identifier: Apache-2.0
"""`POST /api/v1/fleet/report`, as docs/report-api.md says: the one endpoint that is asynchronous and without the gate.

It reads the request on the event loop, hands it to the writer and answers when that has committed. What was sent is
never said back. The order of the checks: shape of the request, limits, then (with the group) the token, and only with
a valid token what is wrong with the document.
"""

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from halod.console.call import Console
from halod.console.ingest import wire
from halod.console.ingest.group import SPENT, Item
from halod.console.ingest.writer import Full, Writer
from halod.console.problem import Problem
from halod.console.security import tokens
from halod.console.security.ratelimit import Limiter
from halod.console.security.refusals import Refusals, too_many

BUSY_SECONDS: Final = 5
LIMITED_SECONDS: Final = 3600
"""How long a device waits that has reported too many distinct servers: the most that an agent believes."""
SPENT_SECONDS: Final = 60
"""How long a device waits that has changed more than it may (`budget`)."""
_DETAIL: Final = {
    400: "the body is no JSON object",
    403: "this token is another device's",
    413: f"a report has at most {wire.MOST_BYTES} bytes",
    415: "a report is application/json, not compressed",
    422: "the document is no status of schemaVersion 1",
    500: "",
}
_OUTCOMES: Final = {
    204: "taken",
    401: "unauthorised",
    403: "forbidden",
    429: "limited",
    503: "busy",
    500: "failed",
}


class _Gone(Exception):
    """The client went away in the middle of its request."""


def report_app(console: Console, writer: Writer, refusals: Refusals) -> ASGIApp:
    """Make the application. `scope["client"]` is the device's address, by a declared proxy's word."""
    limiter = Limiter(console.clock, console.settings.limits.reports_per_minute)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await _take(scope, receive, writer, limiter, refusals)
            status, problem = 204, None
        except _Gone:
            return
        except Problem as refused:
            status, problem = refused.status, refused
        console.metrics.add("halo_reports_total", outcome=_OUTCOMES.get(status, "refused"))
        if problem is None:
            await send(_TAKEN)
            await send(_END)
        else:
            await _tell(problem, scope, receive, send)

    return application


_TAKEN: Final = {"type": "http.response.start", "status": 204, "headers": []}
_END: Final = {"type": "http.response.body", "body": b""}


async def _tell(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer; as the contract has it, a 401 without a body."""
    if problem.status == 401:
        headers = [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
        headers.append((b"content-length", b"0"))
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send(_END)
    else:
        await problem.response()(scope, receive, send)


async def _take(scope: Scope, receive: Receive, writer: Writer, limiter: Limiter, refusals: Refusals) -> None:
    """Take a report; return when it is committed, else raise the Problem that is its answer."""
    headers = dict(scope["headers"])
    address = scope["client"][0] if scope.get("client") else ""
    token = tokens.bearer(headers.get(b"authorization", b"").decode("latin-1"))
    key = tokens.digest(token)
    refusals.check(address, key)
    if not tokens.is_form(token, tokens.DEVICE):
        refusals.add(address)
        raise _unauthorised(token)
    if seconds := limiter.take(key):
        raise too_many(seconds)
    _check_type(headers)
    body = await _body(headers, receive)
    try:
        item = Item(token=key, size=len(body), document=wire.read(body))
    except wire.Malformed:
        item = Item(token=key, size=len(body), refusal=400)
    except wire.NotAStatus:
        item = Item(token=key, size=len(body), refusal=422)
    try:
        status = await writer.submit(item)
    except Full:
        raise _busy() from None
    if status == 401:
        refusals.add(address, key)
        raise _unauthorised(token)
    refusals.good(key)
    if status != 204:
        raise _problem(status)


def _unauthorised(token: str) -> Problem:
    error = ' error="invalid_token"' if token else ""
    return Problem(401, headers={"WWW-Authenticate": "Bearer" + error})


def _busy() -> Problem:
    return Problem(
        503, "the console takes no more reports just now", headers={"Retry-After": str(BUSY_SECONDS)}
    )


def _problem(status: int) -> Problem:
    if status == 503:
        return _busy()
    if status == SPENT:
        wait = {"Retry-After": str(SPENT_SECONDS)}
        return Problem(429, "this device changes more than one device may", headers=wait)
    if status == 429:
        wait = {"Retry-After": str(LIMITED_SECONDS)}
        return Problem(429, "this device has reported too many distinct servers in 30 days", headers=wait)
    return Problem(status, _DETAIL[status])


def _check_type(headers: dict[bytes, bytes]) -> None:
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    coding = headers.get(b"content-encoding", b"identity").strip().lower()
    if kind != b"application/json" or coding != b"identity":
        raise Problem(415, _DETAIL[415])


async def _body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    length = headers.get(b"content-length", b"")
    if length and not length.isdigit():
        raise Problem(400, "Content-Length is no number")
    if len(length) > 9 or int(length or b"0") > wire.MOST_BYTES:
        raise _too_large()
    parts = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Gone
        part = message.get("body", b"")
        size += len(part)
        if size > wire.MOST_BYTES:
            raise _too_large()
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large() -> Problem:
    return Problem(413, _DETAIL[413], headers={"Connection": "close"})
