# SPDX-License-Identifier: Apache-2.0
"""The way of a browser to the provider and back.

Invariants:

1. A journey belongs to one browser and ends once: a cookie holds 256 random bits, the database their hash, and coming
   back deletes that row. State, nonce and PKCE verifier are derived from the cookie and are stored nowhere.
2. What comes back counts only with that state, once each parameter, and from the issuer that began (RFC 9207).
3. A person is sent on to a path of this console only.
4. Whoever is refused is told so in words of ours; what the provider says is neither shown nor logged.
"""

import hashlib
import hmac
import secrets
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, delete, insert
from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse, Response

from halod.console import logs
from halod.console.access import Access, Role, Route
from halod.console.call import Call
from halod.console.security import audit, login, sessions
from halod.console.security.oidc.identity import Identity, Refused, role_of
from halod.console.security.oidc.provider import Provider
from halod.console.security.oidc.wire import Unreachable
from halod.console.security.refusals import Refusals
from halod.console.security.site import site
from halod.console.settings import Oidc
from halod.console.store.schema import LOGINS

JOURNEY_SECONDS: Final = 600
_RETURN: Final = "/login/oidc/return"
_CODE_LIMIT: Final = 8192
_LENGTH: Final = 43
_log = logs.get("login")

_WORDS: Final = {
    "journey": "This sign-in was not begun in this browser, took longer than ten minutes, or has ended already.",
    "provider": "Your organisation's sign-in did not let you in.",
    "unreachable": "Your organisation's sign-in does not answer just now.",
    "role": "You are known, but in no group that may use this console. Ask whoever runs it.",
    "answer": "Your organisation's sign-in answered in a way that cannot be trusted.",
}


def routes(render: login.Render, refusals: Refusals, settings: Oidc, provider: Provider) -> tuple[Route, ...]:
    """Give the routes of the journey."""
    journey = _Journey(render, refusals, settings, provider)
    public: dict[str, Any] = {"method": "GET", "access": Access.PUBLIC, "page": True}
    return (
        Route(path="/login/oidc", name="login-oidc", endpoint=journey.begin, **public),
        Route(path=_RETURN, name="login-oidc-return", endpoint=journey.end, **public),
    )


class _Journey:
    def __init__(self, render: login.Render, refusals: Refusals, settings: Oidc, provider: Provider) -> None:
        self._render = render
        self._refusals = refusals
        self._settings = settings
        self._provider = provider

    def begin(self, call: Call) -> Response:
        """Send the browser to the provider."""
        console, secret = call.console, secrets.token_urlsafe(32)
        target = login.local_path(call.request.query_params.get("next", "/"))
        try:
            address = self._provider.authorization_url(
                redirect=_redirect(call),
                state=_derived(secret, "state"),
                nonce=_derived(secret, "nonce"),
                verifier=_derived(secret, "verifier"),
            )
        except Unreachable as error:
            return self._refuse(call, "unreachable", str(error), 503)
        with console.store.write() as connection:
            connection.execute(
                insert(LOGINS).values(
                    hash=_hash(secret),
                    kind="oidc",
                    data=msgspec.json.encode({"next": target}).decode(),
                    expires=console.clock.now() + JOURNEY_SECONDS,
                )
            )
        response = RedirectResponse(address, 303)
        _cookie(call, response, secret, JOURNEY_SECONDS)
        return response

    def end(self, call: Call) -> Response:
        """Take the browser back, signed in or told why not."""
        query, secret = call.request.query_params, call.request.cookies.get(_cookie_name(call), "")
        target = self._arrived(call, query, secret)
        if target is None:
            # Any web page can make a browser come here: that must not keep those out who were sent by us.
            self._refusals.check(call.address)
            self._refusals.add(call.address)
            return self._refuse(call, "journey", "state", 400)
        try:
            code = self._code(query)
            who = self._provider.identify(
                code=code,
                redirect=_redirect(call),
                nonce=_derived(secret, "nonce"),
                verifier=_derived(secret, "verifier"),
            )
        except Refused as refused:
            self._refusals.add(call.address)
            words = "provider" if refused.reason in ("error", "code") else "answer"
            return self._refuse(call, words, refused.reason, 403)
        except Unreachable as error:
            return self._refuse(call, "unreachable", str(error), 503)
        return self._admit(call, who, target)

    def _arrived(self, call: Call, query: QueryParams, secret: str) -> str | None:
        """End the journey that the cookie names; gives where to go then, None when there is no such journey."""
        states = query.getlist("state")
        if len(secret) != _LENGTH or len(states) != 1:
            return None
        if not hmac.compare_digest(states[0].encode(), _derived(secret, "state").encode()):
            return None
        with call.console.store.write() as connection:
            data = _take(connection, _hash(secret), call.console.clock.now())
        return None if data is None else login.local_path(msgspec.json.decode(data).get("next", "/"))

    def _code(self, query: QueryParams) -> str:
        """Give the code that the provider sent. Raises Refused or Unreachable."""
        issuers, codes = query.getlist("iss"), query.getlist("code")
        metadata = self._provider.metadata()
        wanted = metadata.authorization_response_iss_parameter_supported
        if issuers != [metadata.issuer] and (issuers or wanted):
            raise Refused("iss")
        if "error" in query or len(codes) != 1:
            raise Refused("error")
        if not 0 < len(codes[0]) <= _CODE_LIMIT:
            raise Refused("code")
        return codes[0]

    def _admit(self, call: Call, who: Identity, target: str) -> Response:
        console, role = call.console, role_of(who.groups or frozenset(), self._settings)
        if role is Role.NONE:
            with console.store.write() as connection:
                audit.record(
                    connection,
                    time=console.clock.now(),
                    actor=who.name,
                    actor_kind="none",
                    action="login.refused",
                    target=who.subject,
                    address=call.address,
                    reason="no group with a role",
                )
            return self._refuse(call, "role", "role", 403)
        with console.store.write() as connection:
            value = login.begin(
                call,
                connection,
                subject=who.subject,
                name=who.name,
                role=role,
                provider=sessions.providers(console.settings)[-1],
                sid=who.sid,
            )
        console.metrics.add("halo_logins_total", way="oidc", outcome="in")
        response = login.signed_in(call, value, target)
        _cookie(call, response, "", 0)
        return response

    def _refuse(self, call: Call, words: str, reason: str, status: int) -> Response:
        _log.warning("nobody was signed in", way="oidc", reason=reason, address=call.address)
        call.console.metrics.add("halo_logins_total", way="oidc", outcome=words)
        response = login.show(self._render, call, status, error=_WORDS[words])
        _cookie(call, response, "", 0)
        return response


def _take(connection: Connection, digest: str, now: int) -> str | None:
    """Delete a journey and give its data: once, however many ask."""
    this = (LOGINS.c.hash == digest) & (LOGINS.c.kind == "oidc") & (LOGINS.c.expires > now)
    return connection.execute(delete(LOGINS).where(this).returning(LOGINS.c.data)).scalar()


def _redirect(call: Call) -> str:
    return call.console.settings.public_url.rstrip("/") + _RETURN


def _derived(secret: str, what: str) -> str:
    """Give 256 bits that tell nothing of the secret and nothing of one another."""
    return hmac.new(secret.encode(), f"halo login {what}".encode(), hashlib.sha256).hexdigest()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _cookie_name(call: Call) -> str:
    return sessions.cookie_name(https=site(call.console.settings).https) + "-login"


def _cookie(call: Call, response: Response, value: str, max_age: int) -> None:
    https = site(call.console.settings).https
    made = sessions.set_cookie(_cookie_name(call), value, https=https, max_age=max_age)
    response.headers.append("set-cookie", made)
