# SPDX-License-Identifier: Apache-2.0
"""The ASGI application: the tables of all rooms in one, behind the gate.

`build` starts nothing; what has to run beside the requests (the writer of reports, the schedulers) is started and
ended with the application's lifespan.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import anyio.to_thread
from sqlalchemy import Connection
from starlette.applications import Starlette
from starlette.routing import Route as Path
from starlette.types import ASGIApp, Receive, Scope, Send

from halod.console import api, chores, monitor, pages
from halod.console.access import Access, Route
from halod.console.call import Console
from halod.console.hooks import events
from halod.console.hooks import routes as hooks
from halod.console.ingest import enroll
from halod.console.ingest.report import report_app
from halod.console.ingest.writer import Writer
from halod.console.policy import routes as policy
from halod.console.problem import Problem
from halod.console.security import login
from halod.console.security.apitokens import ApiTokens
from halod.console.security.front import REPORT, Front
from halod.console.security.gate import Gate
from halod.console.security.ratelimit import CountedRefusals, Limiter
from halod.console.security.refusals import NoRefusals, Refusals
from halod.console.security.site import site
from halod.console.settings import Settings
from halod.console.store.news import News

if TYPE_CHECKING:
    from halod.console.security.oidc.provider import Provider

ROUTES: Final[tuple[Route, ...]] = (
    *monitor.ROUTES,
    *policy.ROUTES,
    *hooks.ROUTES,
    *api.ROUTES,
    *pages.ROUTES,
)
"""The tables that do not depend on settings; `table` adds signing in and enrolling."""
RAW: Final[Mapping[tuple[str, str], Access]] = {("POST", REPORT): Access.DEVICE}
"""What is answered without the gate, and what it asks of the one who calls."""


class Part(Protocol):
    """Something that runs beside the requests."""

    def start(self) -> None:
        """Begin; called on the event loop."""

    def stop(self) -> None:
        """End, and return when it has; called on a thread."""


def table(
    settings: Settings,
    *,
    refusals: Refusals | None = None,
    provider: "Provider | None" = None,
) -> tuple[Route, ...]:
    """Give every route of a console with these settings. Raises ValueError when two have one address."""
    counted = refusals or NoRefusals()
    whole = [*login.routes(pages.render, counted, lambda: _provider_logout(settings, provider))]
    if settings.oidc is not None and provider is not None:
        from halod.console.security.oidc import journey  # a console without a provider loads nothing of it

        whole += journey.routes(pages.render, counted, settings.oidc, provider)
    whole += [*enroll.routes(counted), *ROUTES]
    seen = [*((route.method, route.path) for route in whole), *RAW]
    if len(seen) != len(set(seen)):
        raise ValueError("two routes have one address")
    return tuple(whole)


def build(console: Console, *, routes: Sequence[Route] | None = None, jobs: bool = True) -> ASGIApp:
    """Make the application.

    Args:
        console: what it works with.
        routes: the whole table, for tests of others than `table` gives.
        jobs: whether this process does what is to be done at intervals.
    """
    settings, clock, place = console.settings, console.clock, site(console.settings)
    refusals = CountedRefusals(clock, settings.limits.refused_per_minute)
    provider = _provider(console)
    gate = Gate(
        console, place, error_page=pages.error_page, find_token=ApiTokens(console).find, refusals=refusals
    )
    writer = _writer(console)
    paths: dict[str, dict[str, ASGIApp]] = {}
    for route in table(settings, refusals=refusals, provider=provider) if routes is None else routes:
        paths.setdefault(route.path, {})[route.method] = gate.guard(route)
    paths.setdefault(REPORT, {})["POST"] = _named(REPORT, report_app(console, writer, refusals))
    found = [Path(path, _Methods(paths[path], gate)) for path in sorted(paths, key=_order)]
    parts: tuple[Part, ...] = (writer, *chores.schedulers(console)) if jobs else (writer,)
    inner = Starlette(routes=found, lifespan=_lifespan(parts)).router
    inner.default = _Missing(gate)
    inner.redirect_slashes = False
    return Front(inner, console, place, Limiter(clock, settings.limits.requests_per_minute))


def _writer(console: Console) -> Writer:
    settings = console.settings

    def tell(connection: Connection, news: News, now: int) -> None:
        events.after_change(connection, settings.webhooks, news, now)

    limit = settings.limits.servers_in_30_days
    return Writer(console.store, console.clock, console.metrics, names_limit=limit, tell=tell)


def _provider(console: Console) -> "Provider | None":
    if console.settings.oidc is None:
        return None
    from halod.console.security.oidc.provider import Provider

    return Provider(console.settings.oidc, console.clock)


def _provider_logout(settings: Settings, provider: "Provider | None") -> str:
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


def _lifespan(
    parts: Sequence[Part],
) -> Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]:
    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for part in parts:
                part.start()
                stack.push_async_callback(anyio.to_thread.run_sync, part.stop)
            yield

    return lifespan
