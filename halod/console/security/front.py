# SPDX-License-Identifier: Apache-2.0
"""What stands before routing: the Host header, the client's address, headers of every answer, the time for a body,
one log line.

The application inside finds the client's address in `scope["client"]` and leaves the route's path in
`scope["halo.route"]`. A query never reaches a log.
"""

import asyncio
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from halod.console import logs
from halod.console.call import Console
from halod.console.problem import Problem
from halod.console.security.headers import secured
from halod.console.security.ratelimit import Limiter, address_key
from halod.console.security.refusals import too_many
from halod.console.security.site import Site

ANY_HOST: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked by orchestrators under whatever address they have for a replica; they show nothing to a rebound page that
has no token."""
BODY_SECONDS: Final = 30
"""Within which a request's body has to be there."""
SEND_SECONDS: Final = 60
"""Within which a client has to take a piece of an answer."""
REPORT: Final = "/api/v1/fleet/report"
"""It has limits of its own, by token."""
_QUIET: Final = (*ANY_HOST, "/static", REPORT)
_LOUD: Final = frozenset({401, 403})
"""Who is not let in is told of, whatever they asked for."""
_log = logs.get("http")


class _Deadline:
    """Receives a body; one that is not there in time looks to the application like a client that went away."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._end = asyncio.get_running_loop().time() + BODY_SECONDS
        self._whole = False
        self.passed = False

    async def __call__(self) -> Message:
        """Give the next piece."""
        if self._whole:  # what comes now is that the client has gone: for as long as the answer takes
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._end):
                message = await self._receive()
        except TimeoutError:
            self.passed = True
            return {"type": "http.disconnect"}
        self._whole = not message.get("more_body", False)
        return message


class Front:
    """Wraps the router."""

    def __init__(self, inner: ASGIApp, console: Console, site: Site, limiter: Limiter) -> None:
        self._inner = inner
        self._console = console
        self._site = site
        self._limiter = limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._inner(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started, status = self._console.clock.monotonic(), 0
        headers = Headers(scope=scope)
        peer = scope["client"][0] if scope.get("client") else ""
        address = self._site.address(peer, headers.getlist("x-forwarded-for"))
        scope["client"] = (address, 0)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                shown = secured(list(message.get("headers", ())), https=self._site.https)
                message = {**message, "headers": shown}  # a copy: the sender may send this one again
            async with asyncio.timeout(SEND_SECONDS):
                await send(message)

        inside = _Deadline(receive)
        try:
            problem = self._unwelcome(scope, peer, address, headers.getlist("host"))
            await (self._inner if problem is None else problem.response())(scope, inside, answer)
            if inside.passed and not status:
                slow = Problem(408, "the request took too long", headers={"Connection": "close"})
                await slow.response()(scope, receive, answer)
        except Exception:  # noqa: BLE001 - a fault costs one answer, never the server; so does a client that stalls
            _log.exception("a fault inside the console", route=scope.get("halo.route", "-"))
            if not status:
                await Problem(500).response()(scope, receive, answer)
        self._note(scope, status, address, self._console.clock.monotonic() - started)

    def _unwelcome(self, scope: Scope, peer: str, address: str, hosts: list[str]) -> Problem | None:
        """Give why a request is not even routed."""
        path = scope["path"]
        if path in ANY_HOST:
            return None
        if not self._site.hears(peer):
            return Problem(403, "this console is reached through its proxy only")
        if len(hosts) != 1 or not self._site.allows(hosts[0]):
            return Problem(421, "this console does not go by that name; see public_url and hosts")
        if "\0" in path:  # what an address holds is asked of databases, and PostgreSQL takes none
            return Problem(400, "no address holds a NUL")
        seconds = 0.0 if path == REPORT else self._limiter.take(address_key(address))
        if seconds:
            self._console.metrics.add("halo_limited_total", what="address")
            return too_many(seconds)
        return None

    def _note(self, scope: Scope, status: int, address: str, seconds: float) -> None:
        route = scope.get("halo.route", "-")
        metrics = self._console.metrics
        metrics.add("halo_requests_total", route=route, status=str(status))
        metrics.observe("halo_request_seconds", seconds, route=route)
        quiet = route.startswith(_QUIET) and status < 500 and status not in _LOUD
        say = _log.debug if quiet else _log.info
        values = {"status": status, "ms": round(seconds * 1000), "address": address}
        say("request", method=scope["method"] if route != "-" else "-", route=route, **values)
