# SPDX-License-Identifier: Apache-2.0
"""The two grants of a public client: device authorization (RFC 8628) and refresh (RFC 6749 section 6).

Invariants:

1. A token counts only as Bearer, in the form of RFC 6750, and for the resource that was asked for: an audience that
   is told, in the answer or in a JWT (RFC 9068), must hold it.
2. Polling keeps to the server's interval and to its `slow_down`, and ends with the code.
3. Of what a server says, only the address and the code that the person needs are shown, when they are plain text.
"""

import base64
import binascii
import re
from typing import Final

import msgspec

from halod.policy.strictjson import NotStrictError, decode
from halod.token.metadata import DEVICE_GRANT, json_object
from halod.token.model import (
    TOKEN_LIMIT,
    Answer,
    Asked,
    Clock,
    Endpoints,
    Send,
    TokenRefused,
    Tokens,
    Unreachable,
    is_bearer,
)
from halod.token.resource import canonical, host_of, is_endpoint

LONGEST_LIFE: Final = 30 * 86_400.0
LONGEST_CODE: Final = 1800.0
"""Seconds that a person has, whatever the server says."""
INTERVAL: Final = 5.0
"""Seconds between polls when the server names none, and what `slow_down` adds (RFC 8628 sections 3.2 and 3.5)."""
SHORTEST_INTERVAL: Final = 1.0
LONGEST_INTERVAL: Final = 60.0
_VISIBLE: Final = re.compile(r"[!-~]+")
_CODE: Final = re.compile(r"[A-Za-z0-9 ._-]{1,64}")
_PENDING: Final = frozenset({"authorization_pending", "slow_down"})
_WORDS: Final = {
    "access_denied": "the request was refused",
    "expired_token": "the code has expired",
    "invalid_client": "it does not know auth.client_id as a public client",
    "unauthorized_client": "it does not know auth.client_id as a public client",
    "invalid_grant": "the sign-in has expired or was withdrawn",
    "invalid_scope": "it does not give auth.scopes to this client",
    "invalid_target": "it does not know this resource",
    "unsupported_grant_type": "it does not support this way of signing in",
}


class Denied(TokenRefused):
    """The server refused the grant for good: what was sent is not worth a second try."""


class Invitation(msgspec.Struct, frozen=True):
    """What a person needs for signing in, and how long and often the server may be asked, in seconds."""

    device_code: str
    user_code: str
    address: str
    interval: float
    lasts: float

    def __repr__(self) -> str:
        """Give the type's name only."""
        return "<Invitation>"

    __str__ = __repr__


def refresh(asked: Asked, endpoints: Endpoints, tokens: Tokens, send: Send, clock: Clock) -> Tokens:
    """Exchange the refresh token; the answer's new one takes its place.

    Raises:
        Denied: it counts no longer.
        TokenRefused: the answer is not what it must be; Unreachable: there is none now.
    """
    form = {
        "grant_type": "refresh_token",
        "refresh_token": tokens.refresh_token,
        "client_id": asked.client_id,
        "resource": asked.resource,
    }
    answer = send(endpoints.token, form)
    _reached(answer, host_of(asked.issuer))
    return _tokens(answer, asked, tokens.refresh_token, clock)


def invite(asked: Asked, endpoints: Endpoints, send: Send) -> Invitation:
    """Ask for a code that a person can confirm elsewhere.

    Raises:
        TokenRefused: the server has no such grant, or its answer is not what it must be; Unreachable.
    """
    host = host_of(asked.issuer)
    if not endpoints.device:
        raise TokenRefused(f"{host} has no device authorization, so nobody can sign in from a terminal")
    form = {"client_id": asked.client_id, "resource": asked.resource}
    if asked.scopes:
        form["scope"] = " ".join(asked.scopes)
    answer = send(endpoints.device, form)
    _reached(answer, host)
    if answer.status != 200:
        raise TokenRefused(f"{host} refuses: {_said(_error(answer, asked))}")
    document = json_object(answer, asked.issuer)
    code, user, address = (document.get(key) for key in ("device_code", "user_code", "verification_uri"))
    lasts, interval = _seconds(document.get("expires_in")), _seconds(document.get("interval"))
    if not (isinstance(code, str) and len(code) <= TOKEN_LIMIT and _VISIBLE.fullmatch(code)):
        raise TokenRefused(f"{host} gives no device code that can be used")
    if not (isinstance(user, str) and _CODE.fullmatch(user)):
        raise TokenRefused(f"{host} gives no code that a person could type")
    if (
        not isinstance(address, str)
        or not is_endpoint(address, asked.issuer)
        or not _VISIBLE.fullmatch(address)
    ):
        raise TokenRefused(f"{host} gives no address that a person could open")
    interval = min(max(interval or INTERVAL, SHORTEST_INTERVAL), LONGEST_INTERVAL)
    return Invitation(code, user, address, interval, min(lasts or LONGEST_CODE, LONGEST_CODE))


def poll(asked: Asked, endpoints: Endpoints, invitation: Invitation, send: Send, clock: Clock) -> Tokens:
    """Wait until the person has confirmed the code.

    Raises:
        TokenRefused: they refused, the code expired, or the answer is not what it must be.
    """
    form = {
        "grant_type": DEVICE_GRANT,
        "device_code": invitation.device_code,
        "client_id": asked.client_id,
        "resource": asked.resource,
    }
    interval, end = invitation.interval, clock.steady() + invitation.lasts
    while True:
        if clock.steady() + interval > end:
            raise TokenRefused("the code has expired", advice="run the command again")
        clock.wait(interval)
        answer = send(endpoints.token, form)
        if answer.fault or answer.status == 429 or answer.status >= 500:
            interval = min(interval * 2, LONGEST_INTERVAL)  # RFC 8628 section 3.5: back off, and go on
            continue
        error = "" if answer.status == 200 else _error(answer, asked)
        if error not in _PENDING:
            return _tokens(answer, asked, "", clock)
        if error == "slow_down":
            interval = min(interval + INTERVAL, LONGEST_INTERVAL)


def _reached(answer: Answer, host: str) -> None:
    if answer.fault or answer.status == 429 or answer.status >= 500:
        raise Unreachable(
            f"{host} {answer.fault or f'answers HTTP {answer.status}'}", advice="try again later"
        )


def _error(answer: Answer, asked: Asked) -> str:
    """Give the error code of RFC 6749 section 5.2 that is known here, or ""."""
    code = json_object(answer, asked.issuer).get("error")
    return code if isinstance(code, str) and (code in _WORDS or code in _PENDING) else ""


def _said(code: str) -> str:
    return _WORDS.get(code, "for a reason that is not known here")


def _tokens(answer: Answer, asked: Asked, kept: str, clock: Clock) -> Tokens:
    """Check an answer with tokens; `kept` is the refresh token that goes on when there is no new one."""
    host = host_of(asked.issuer)
    if answer.status != 200:
        code = _error(answer, asked)
        kind = Denied if code == "invalid_grant" else TokenRefused
        raise kind(f"{host} gives no token: {_said(code)}")
    document = json_object(answer, asked.issuer)
    token, kind_of = document.get("access_token"), document.get("token_type")
    if not isinstance(kind_of, str) or kind_of.lower() != "bearer":
        raise TokenRefused(f"{host} gives a token of another type than Bearer")
    if not (isinstance(token, str) and is_bearer(token)):
        raise TokenRefused(f"{host} gives no token that can be sent in a header")
    _check_audience(document, token, asked)
    fresh = document.get("refresh_token")
    if fresh is not None and not (
        isinstance(fresh, str) and len(fresh) <= TOKEN_LIMIT and _VISIBLE.fullmatch(fresh)
    ):
        raise TokenRefused(f"{host} gives no refresh token that can be kept")
    lasts = min(_seconds(document.get("expires_in")), LONGEST_LIFE)
    return Tokens(
        asked.issuer, asked.client_id, asked.scopes, asked.resource, token, fresh or kept, clock.now() + lasts
    )


def _seconds(value: object) -> float:
    """Give a positive number of seconds; 0 for what is none."""
    return float(value) if isinstance(value, float) and value > 0 else 0.0


def _check_audience(document: dict[str, object], token: str, asked: Asked) -> None:
    told = [document[key] for key in ("resource", "audience", "aud") if key in document]
    claims = _claims(token)
    if claims is not None and "aud" in claims:
        told.append(claims["aud"])
    for audience in told:
        named = audience if isinstance(audience, list) else [audience]
        if not any(isinstance(one, str) and canonical(one) == asked.resource for one in named):
            raise TokenRefused(f"{host_of(asked.issuer)} gives a token for another resource")


def _claims(token: str) -> dict[str, object] | None:
    """Give what a JWT says; None for an opaque token. It is not verified: that is the MCP server's part."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        value = decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, NotStrictError):
        return None
    return value if isinstance(value, dict) else None
