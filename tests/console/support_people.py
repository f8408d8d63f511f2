# SPDX-License-Identifier: Apache-2.0
"""A console in this process, with a clock of its own, and browsers and programs that ask it."""

import asyncio
import contextlib
import functools
import re
import threading

import httpx
import msgspec

from halod.console import app
from halod.console.access import Role
from halod.console.call import Console
from halod.console.metrics import Metrics
from halod.console.security import login, sessions, tokens
from halod.console.settings import Limits, Settings
from halod.console.store.engine import Store

NOW = 1_796_000_000
ORIGIN = "http://127.0.0.1:8640"
ROOMY = Limits(requests_per_minute=1_000_000, refused_per_minute=1_000_000)


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now=NOW):
        self.at = now

    def now(self):
        return int(self.at)

    def monotonic(self):
        return float(self.at)

    def pass_(self, seconds):
        self.at += seconds


@contextlib.contextmanager
def sqlite_console(url, **settings):
    store = Store.open(url)
    try:
        yield make_console(store, **settings)
    finally:
        store.close()


def make_console(store, clock=None, **settings):
    settings = {"limits": ROOMY, **settings}
    made = Settings(database_url="", **settings)
    return Console(settings=made, store=store, clock=clock or Clock(), metrics=Metrics())


@functools.cache
def _loop():
    """The event loop of all clients, in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="clients", daemon=True).start()
    return loop


class Client:
    """Asks an application without a network; it keeps no cookies. Threads may use it at the same time."""

    def __init__(self, application, base=ORIGIN, address="127.0.0.1"):
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(application, client=(address, 50000)), base_url=base
        )

    def request(self, method, path, **more):
        return asyncio.run_coroutine_threadsafe(self._ask(method, path, more), _loop()).result(60)

    get = functools.partialmethod(request, "GET")
    post = functools.partialmethod(request, "POST")

    async def _ask(self, method, path, more):
        answer = await self._client.request(method, path, **more)
        self._client.cookies.clear()
        return answer


def client(console, *, routes=None, address="127.0.0.1", base=ORIGIN):
    """A client without a session; nothing beside requests is started."""
    return Client(app.build(console, routes=routes, jobs=False), base, address)


def session(console, role=Role.ADMIN, *, subject="local", name="somebody", provider=sessions.LINK):
    """Begin a session; gives the cookie's value."""
    with console.store.write() as c:
        return sessions.create(
            c,
            console.settings,
            subject=subject,
            name=name,
            role=role,
            provider=provider,
            now=console.clock.now(),
        )


def cookie(value, *, https=False):
    return {"Cookie": f"{sessions.cookie_name(https=https)}={value}"}


def own(origin=ORIGIN):
    """Headers that a browser sends with a form of this console's own pages, under `Referrer-Policy: no-referrer`."""
    return {"Origin": "null", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}


def api_token(console, role=Role.ADMIN, days=30):
    with console.store.write() as c:
        return tokens.issue_api(c, name="a program", role=role, now=console.clock.now(), days=days, by="test")


def link(console):
    with console.store.write() as c:
        return login.make_link(c, now=console.clock.now())


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


def filled(path):
    """Put something into the places of a route's path."""
    return re.sub(r"\{[^}]+\}", "1", path)


def probed(routes, calls):
    """The same routes, whose endpoints only note that they were reached."""
    from starlette.responses import Response

    def probe(call):
        calls.append(call)
        return Response(status_code=299)

    return tuple(msgspec.structs.replace(route, endpoint=probe) for route in routes)
