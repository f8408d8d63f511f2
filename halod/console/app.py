# SPDX-License-Identifier: Apache-2.0
"""The ASGI application: the tables of all rooms in one, behind the gate.

`build` starts nothing; what has to run beside the requests (the writer of reports, the scheduler) is started and
ended with the application's lifespan.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, Protocol

import anyio.to_thread
from starlette.applications import Starlette
from starlette.routing import Route as Path
from starlette.types import ASGIApp, Receive, Scope, Send

from halod.console import monitor, pages
from halod.console.access import Route
from halod.console.call import Console
from halod.console.hooks import routes as hooks
from halod.console.pages import error_page, render
from halod.console.policy import routes as policy
from halod.console.problem import Problem
from halod.console.security import login
from halod.console.security.apitokens import ApiTokens
from halod.console.security.front import Front
from halod.console.security.gate import Gate
from halod.console.security.oidc import journey
from halod.console.security.oidc.provider import Provider
from halod.console.security.ratelimit import CountedRefusals, Limiter
from halod.console.security.refusals import NoRefusals, Refusals
from halod.console.security.site import site
from halod.console.settings import Settings

ROUTES: Final[tuple[Route, ...]] = (
    *monitor.ROUTES,
    *policy.ROUTES,
    *hooks.ROUTES,
    *pages.ROUTES,
)
"""The tables of api, ingest, pages, policy and health, in one; those of signing in come with `table`."""


class Part(Protocol):
    """Something that runs beside the requests."""

    def start(self) -> None:
        """Begin; called on the event loop."""

    def stop(self) -> None:
        """End, and return when it has; called on a thread."""


def table(
    settings: Settings,
    routes: tuple[Route, ...] = ROUTES,
    *,
    refusals: Refusals | None = None,
    provider: Provider | None = None,
) -> tuple[Route, ...]:
    """Give every route of a console with these settings. Raises ValueError when two are the same."""
    counted = refusals or NoRefusals()
    whole = (*login.routes(render, counted, lambda: _provider_logout(settings, provider)), *routes)
    if settings.oidc is not None and provider is not None:
        whole = (*journey.routes(render, counted, settings.oidc, provider), *whole)
    seen = [(route.method, route.path) for route in whole]
    if len(seen) != len(set(seen)):
        raise ValueError("two routes have one address")
    return whole


def build(
    console: Console,
    *,
    routes: tuple[Route, ...] = ROUTES,
    raw: Mapping[tuple[str, str], ASGIApp] | None = None,
    parts: tuple[Part, ...] = (),
) -> ASGIApp:
    """Make the application.

    Args:
        console: what it works with.
        routes: the table; another one for tests.
        raw: applications that do without the gate, by method and path: that of reports.
        parts: what starts and ends with it.
    """
    settings, place = console.settings, site(console.settings)
    refusals = CountedRefusals(console.clock, settings.limits.refused_per_minute)
    provider = Provider(settings.oidc, console.clock) if settings.oidc else None
    gate = Gate(console, place, error_page=error_page, find_token=ApiTokens(console).find, refusals=refusals)
    paths: dict[str, dict[str, ASGIApp]] = {}
    for route in table(settings, routes, refusals=refusals, provider=provider):
        paths.setdefault(route.path, {})[route.method] = gate.guard(route)
    for (method, path), application in (raw or {}).items():
        paths.setdefault(path, {})[method] = _named(path, application)
    found = [Path(path, _Methods(paths[path], gate)) for path in sorted(paths, key=_order)]
    inner = Starlette(routes=found, lifespan=_lifespan(parts))
    inner.router.default = _Missing(gate)
    inner.router.redirect_slashes = False
    limiter = Limiter(console.clock, settings.limits.requests_per_minute)
    return Front(inner.router, console, place, limiter)


def _provider_logout(settings: Settings, provider: Provider | None) -> str:
    return provider.logout_url(f"{settings.public_url.rstrip('/')}/login") if provider else ""


class _Methods:
    """One address: the application of each method."""

    def __init__(self, methods: Mapping[str, ASGIApp], gate: Gate) -> None:
        self._methods = {**methods}
        if "GET" in methods:
            self._methods.setdefault("HEAD", methods["GET"])
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        application = self._methods.get(scope["method"])
        if application is not None:
            await application(scope, receive, send)
            return
        allow = {"Allow": ", ".join(sorted(self._methods))}
        problem = Problem(405, "this address does not take this method", headers=allow)
        await self._gate.refuse(problem, page=_is_page(scope), scope=scope)(scope, receive, send)


class _Missing:
    """Every other address."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = Problem(404, "there is nothing at this address")
        await self._gate.refuse(problem, page=_is_page(scope), scope=scope)(scope, receive, send)


def _is_page(scope: Scope) -> bool:
    """Tell whether a person asks, to whom an error is a page."""
    accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return not scope["path"].startswith("/api/") and b"text/html" in accept


def _named(path: str, application: ASGIApp) -> ASGIApp:
    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        scope["halo.route"] = path
        await application(scope, receive, send)

    return named


def _order(path: str) -> tuple[tuple[bool, str], ...]:
    """Sort so that a fixed address comes before a pattern that it matches."""
    return tuple(("{" in part, part) for part in path.split("/"))


def _lifespan(parts: tuple[Part, ...]) -> Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]:
    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for part in parts:
                part.start()
                stack.push_async_callback(anyio.to_thread.run_sync, part.stop)
            yield

    return lifespan
