# SPDX-License-Identifier: Apache-2.0
"""The gate before every endpoint: how large a body may be, who asks, whether they may, and how errors are told.

Invariants:

1. No endpoint runs before its route's `Access` is met. A route without one cannot be written (`access.Route`).
2. A session opens pages and the API; an API token opens the API only; device tokens and enrolment keys open neither.
3. A request that changes something and does not carry its own credential in a header passes `csrf`.
4. An error is a `Problem`, or a 500 that says nothing but that it is one.
"""

from collections.abc import AsyncGenerator, Callable
from typing import Final
from urllib.parse import quote

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from halod.console import logs
from halod.console.access import Access, Actor, Role, Route
from halod.console.call import Call, Console
from halod.console.problem import Problem
from halod.console.security import csrf, sessions
from halod.console.security.refusals import Refusals
from halod.console.security.site import Site
from halod.console.security.tokens import bearer, digest
from halod.console.store.engine import unavailable

ErrorPage = Callable[[Call, Problem], Response]
FindToken = Callable[[str], Actor | None]

THREADS: Final = 16
"""Calls that run at the same time; each holds a connection to the database at most."""
WAITING: Final = 256
"""Calls that wait for a thread; more are refused."""
ROLES: Final = {Access.VIEWER: Role.VIEWER, Access.OPERATOR: Role.OPERATOR, Access.ADMIN: Role.ADMIN}
_NOBODY: Final = Actor()
_log = logs.get("gate")


class Gate:
    """Makes ASGI applications of routes."""

    def __init__(
        self,
        console: Console,
        site: Site,
        *,
        error_page: ErrorPage,
        find_token: FindToken,
        refusals: Refusals,
    ) -> None:
        self._console = console
        self._site = site
        self._error_page = error_page
        self._find_token = find_token
        self._refusals = refusals
        self._threads: anyio.CapacityLimiter | None = None
        self._waiting = 0

    def guard(self, route: Route) -> ASGIApp:
        """Give the application that answers for a route."""

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive)
            scope["halo.route"] = route.path
            try:
                response = await self._take(route, request)
            except ClientDisconnect:
                return
            try:
                await response(scope, receive, send)
            finally:
                await _let_go(response)

        return application

    def refuse(self, problem: Problem, *, page: bool, scope: Scope) -> Response:
        """Give the answer for what has no route."""
        if not page:
            return problem.response()
        return self._error(self._call(Request(scope), _NOBODY, b""), problem)

    async def _take(self, route: Route, request: Request) -> Response:
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(THREADS)
        if self._waiting >= WAITING:
            busy = Problem(503, "the console is busy", headers={"Retry-After": "5"})
            return self._tell(route, self._call(request, _NOBODY, b""), busy)
        try:
            body = await _read(request, route.body)
        except Problem as problem:
            return self._tell(route, self._call(request, _NOBODY, b""), problem)
        self._waiting += 1
        try:
            return await anyio.to_thread.run_sync(self._answer, route, request, body, limiter=self._threads)
        finally:
            self._waiting -= 1

    def _answer(self, route: Route, request: Request, body: bytes) -> Response:
        call = self._call(request, _NOBODY, body)
        try:
            if route.access is not Access.PUBLIC or route.page:
                call = self._call(request, self._actor(route, request, call.address), body)
            self._admit(route, call)
            return route.endpoint(call)
        except Problem as problem:
            return self._tell(route, call, problem)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets an answer and the log a line
            if unavailable(error):
                _log.exception("the database did not answer", route=route.path)
                return self._tell(route, call, Problem(503, "the database does not answer just now"))
            _log.exception("a fault inside the console", route=route.path)
            return self._tell(route, call, Problem(500))

    def _call(self, request: Request, actor: Actor, body: bytes) -> Call:
        address = request.client.host if request.client else ""
        return Call(console=self._console, request=request, actor=actor, body=body, address=address)

    def _actor(self, route: Route, request: Request, address: str) -> Actor:
        """Find out who asks. Raises Problem 401 for a credential that is none, 429 for too many of them."""
        if route.access in (Access.DEVICE, Access.ENROLL_KEY):
            return _NOBODY
        authorization = request.headers.get("authorization")
        if authorization is not None and not route.page:
            text = bearer(authorization)
            key = digest(text)
            self._refusals.check(address, key)
            actor = self._find_token(text)
            if actor is None:
                self._refusals.add(address, key)
                raise Problem(401, "this token is not valid here", headers=_CHALLENGE)
            self._refusals.good(key)
            return actor
        return self._session_actor(request)

    def _session_actor(self, request: Request) -> Actor:
        value = request.cookies.get(sessions.cookie_name(https=self._site.https), "")
        if not value:
            return _NOBODY
        settings, store, now = self._console.settings, self._console.store, self._console.clock.now()
        with store.read() as connection:
            session = sessions.find(connection, settings, value, now=now)
        if session is None:
            return _NOBODY
        if sessions.is_stale(session, settings, now):
            with store.write() as connection:
                sessions.touch(connection, session, now)
        return Actor(kind="session", name=session.name, role=session.role, csrf=sessions.form_token(value))

    def _admit(self, route: Route, call: Call) -> None:
        """Raise Problem 401 or 403 unless the call may go on."""
        wanted, headers = ROLES.get(route.access, Role.NONE), call.request.headers
        if wanted is not Role.NONE and call.actor.kind == "none":
            raise Problem(401, "sign in first" if route.page else "a token is needed", headers=_CHALLENGE)
        if call.actor.role < wanted:
            raise Problem(403, f"this needs the role {wanted.name.lower()}")
        if call.request.method in csrf.SAFE or route.access in (Access.DEVICE, Access.ENROLL_KEY):
            return
        if call.actor.kind != "api-token":
            csrf.check_origin(headers, self._site.origin(headers.get("host", "")))
        if call.actor.kind == "session" and route.access is not Access.PUBLIC:
            csrf.check_token(headers, call.body, call.actor.csrf)

    def _tell(self, route: Route, call: Call, problem: Problem) -> Response:
        if not route.page:
            return problem.response()
        if problem.status == 401:
            return _to_login(call.request)
        return self._error(call, problem)

    def _error(self, call: Call, problem: Problem) -> Response:
        try:
            response = self._error_page(call, problem)
        except Exception:  # noqa: BLE001 - the page about a fault has one itself: say the first one plainly
            _log.exception("a fault in the error page")
            return problem.response()
        response.headers.update(problem.headers)
        return response


async def _let_go(response: Response) -> None:
    """Close what an answer was made of piece by piece: it may hold a connection, and its client may have gone."""
    if isinstance(response, StreamingResponse) and isinstance(response.body_iterator, AsyncGenerator):
        await response.body_iterator.aclose()


_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}


def _to_login(request: Request) -> Response:
    """Send a person to sign in, and back afterwards if they only looked."""
    query = request.url.query
    target = request.url.path + (f"?{query}" if query else "")
    back = request.method == "GET" and target != "/" and len(target) <= 1024
    response = RedirectResponse(f"/login?next={quote(target, safe='')}" if back else "/login", 303)
    response.headers["cache-control"] = "no-store"
    return response


async def _read(request: Request, most: int) -> bytes:
    """Read a body of at most `most` bytes. Raises Problem 400 or 413."""
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdecimal():
        raise Problem(400, "Content-Length is no number")
    close = {"Connection": "close"}
    if int(length) > most:
        raise Problem(413, f"a body of at most {most} bytes is taken here", headers=close)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise Problem(413, f"a body of at most {most} bytes is taken here", headers=close)
    return bytes(body)
