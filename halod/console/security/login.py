# SPDX-License-Identifier: Apache-2.0
"""Signing in with a one-time link, and signing out.

A link is made by `halo-server serve` and `halo-server login-link`, for whoever is at the machine. Invariants:

1. It works once, within 15 minutes, however many browsers try at the same time: using it is one DELETE.
2. Opening it changes nothing, so that a preview in a chat does not use it up: a button does.
3. The database holds its hash.
"""

import hashlib
import secrets
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection, delete, insert
from starlette.responses import RedirectResponse, Response

from halod.console import logs
from halod.console.access import Access, Role, Route
from halod.console.call import Call
from halod.console.problem import Problem
from halod.console.security import audit, csrf, sessions
from halod.console.security.refusals import Refusals
from halod.console.security.site import site
from halod.console.store.schema import LOGINS

Render = Callable[..., Response]
"""`render(call, template, status=200, **context)`."""

_log = logs.get("login")

LINK_SECONDS: Final = 15 * 60
_PREFIX: Final = "hll_"
_LENGTH: Final = len(_PREFIX) + 43
SUBJECT: Final = "local"
NAME: Final = "local administrator"


def make_link(connection: Connection, *, now: int) -> str:
    """Make a one-time token for an administrator; it belongs after `/login?link=`."""
    token = _PREFIX + secrets.token_urlsafe(32)
    values: dict[str, Any] = {"hash": _hash(token), "kind": "link", "expires": now + LINK_SECONDS}
    connection.execute(insert(LOGINS).values(data="{}", **values))
    return token


def use_link(connection: Connection, token: str, *, now: int) -> bool:
    """Use a token up; tells whether it was valid. Of many at the same time, one gets True."""
    if len(token) != _LENGTH or not token.startswith(_PREFIX):
        return False
    this = (LOGINS.c.hash == _hash(token)) & (LOGINS.c.kind == "link") & (LOGINS.c.expires > now)
    return connection.execute(delete(LOGINS).where(this)).rowcount == 1


def prune(connection: Connection, *, now: int) -> int:
    """Delete links and journeys that were not ended in time; gives how many. For the scheduler."""
    return connection.execute(delete(LOGINS).where(LOGINS.c.expires <= now)).rowcount


def local_path(text: str) -> str:
    r"""Give a path within this console to go to after signing in; "/" for everything that is none.

    Browsers read `//x`, `/\x` and control characters in ways that lead elsewhere, so none of these passes.
    """
    plain = text.isascii() and text.isprintable() and len(text) <= 1024 and "\\" not in text
    return (
        text if plain and text.startswith("/") and not text.startswith(("//", "/login", "/logout")) else "/"
    )


def routes(render: Render, refusals: Refusals, provider_logout: Callable[[], str]) -> tuple[Route, ...]:
    """Give the routes of signing in and out.

    Args:
        render: gives pages; their templates are the pages' own.
        refusals: counts links that are none.
        provider_logout: gives where the session at the provider is ended, "" for nowhere.
    """
    login = _Login(render, refusals, provider_logout)
    out: dict[str, Any] = {"access": Access.VIEWER, "method": "POST", "page": True, "body": 4096}
    return (
        Route(
            method="GET", path="/login", name="login", access=Access.PUBLIC, endpoint=login.page, page=True
        ),
        Route(
            method="POST",
            path="/login/link",
            name="login-link",
            access=Access.PUBLIC,
            endpoint=login.link,
            page=True,
            body=4096,
        ),
        Route(path="/logout", name="logout", endpoint=login.leave, **out),
        Route(path="/logout/everywhere", name="logout-everywhere", endpoint=login.leave_everywhere, **out),
    )


class _Login:
    def __init__(self, render: Render, refusals: Refusals, provider_logout: Callable[[], str]) -> None:
        self._render = render
        self._refusals = refusals
        self._provider_logout = provider_logout

    def page(self, call: Call) -> Response:
        query = call.request.query_params
        link, target = query.get("link", "")[:_LENGTH], local_path(query.get("next", "/"))
        if call.actor.kind == "session" and not link:
            return RedirectResponse(target, 303)
        left = "left" in query
        elsewhere = self._provider_logout() if left else ""
        return show(self._render, call, link=link, next=target, left=left, provider_logout=elsewhere)

    def link(self, call: Call) -> Response:
        fields = csrf.form_fields(call.request.headers.get("content-type", ""), call.body)
        console, now = call.console, call.console.clock.now()
        with console.store.write() as connection:
            if not use_link(connection, fields.get("link", ""), now=now):
                value = ""
            else:
                value = begin(
                    call, connection, subject=SUBJECT, name=NAME, role=Role.ADMIN, provider=sessions.LINK
                )
        outcome = "in" if value else "link"
        console.metrics.add("halo_logins_total", way="link", outcome=outcome)
        if not value:
            # Only here: a link that is valid works whatever others at this address do.
            self._refusals.check(call.address)
            self._refusals.add(call.address)
            _log.warning("nobody was signed in", way="link", address=call.address)
            return show(
                self._render, call, 403, error="This link was used before, or is older than 15 minutes."
            )
        return signed_in(call, value, local_path(fields.get("next", "/")))

    def leave(self, call: Call) -> Response:
        with call.console.store.write() as connection:
            sessions.end(connection, cookie(call))
            _record(call, connection, "logout")
        return _signed_out(call)

    def leave_everywhere(self, call: Call) -> Response:
        console = call.console
        with console.store.write() as connection:
            session = sessions.find(connection, console.settings, cookie(call), now=console.clock.now())
            if session is None:
                raise Problem(401)
            ended = sessions.end_everywhere(connection, session)
            _record(call, connection, "logout.everywhere", ended)
        return _signed_out(call)


def show(render: Render, call: Call, status: int = 200, **context: object) -> Response:
    """Give the page of signing in."""
    values: dict[str, object] = {"link": "", "next": "/", "left": False, "error": "", "provider_logout": ""}
    values["oidc"] = call.console.settings.oidc is not None
    return render(call, "login.html", status, **{**values, **context})


def cookie(call: Call) -> str:
    """Give the session cookie of a call, or ""."""
    return call.request.cookies.get(sessions.cookie_name(https=site(call.console.settings).https), "")


def begin(
    call: Call, connection: Connection, *, subject: str, name: str, role: Role, provider: str, sid: str = ""
) -> str:
    """Begin a session in the place of the one that the browser had; gives the cookie's value."""
    console = call.console
    now = console.clock.now()
    value = sessions.create(
        connection,
        console.settings,
        subject=subject,
        name=name,
        role=role,
        provider=provider,
        now=now,
        sid=sid,
        before=cookie(call),
    )
    way, said = provider.partition(":")[0], role.name.lower()
    who = {"actor": name, "actor_kind": "session", "address": call.address}
    audit.record(connection, time=now, action="login", target=subject, way=way, role=said, **who)
    return value


def signed_in(call: Call, value: str, target: str) -> Response:
    """Send a person on with the cookie of their new session."""
    settings = call.console.settings
    https = site(settings).https
    response = RedirectResponse(target, 303)
    name = sessions.cookie_name(https=https)
    response.headers.append(
        "set-cookie", sessions.set_cookie(name, value, https=https, max_age=settings.session_absolute)
    )
    return response


def _signed_out(call: Call) -> Response:
    https = site(call.console.settings).https
    response = RedirectResponse("/login?left", 303)
    name = sessions.cookie_name(https=https)
    response.headers.append("set-cookie", sessions.set_cookie(name, "", https=https, max_age=0))
    response.headers["clear-site-data"] = '"cache"'
    return response


def _record(call: Call, connection: Connection, action: str, sessions_ended: int = 1) -> None:
    audit.record(
        connection,
        time=call.console.clock.now(),
        actor=call.actor.name,
        actor_kind=call.actor.kind,
        action=action,
        address=call.address,
        sessions=sessions_ended,
    )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
