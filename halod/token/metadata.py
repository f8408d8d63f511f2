# SPDX-License-Identifier: Apache-2.0
"""The endpoints of an authorization server: RFC 8414, then OpenID Connect Discovery 1.0.

Invariant: metadata count only when they name exactly the issuer that the settings name, so that no other server can
be taken for it.
"""

from typing import Final
from urllib.parse import urlsplit

from halod.policy.strictjson import NotStrictError, decode
from halod.token.model import Answer, Endpoints, Send, TokenRefused, Unreachable
from halod.token.resource import host_of, is_endpoint

DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_FIRST: Final = "/.well-known/oauth-authorization-server"
_SECOND: Final = "/.well-known/openid-configuration"


def addresses(issuer: str) -> tuple[str, ...]:
    """Give where metadata may be, in the order of the MCP specification (2025-11-25, "Authorization")."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = (f"{origin}{_FIRST}{path}", f"{origin}{_SECOND}{path}")
    return (*inserted, f"{origin}{path}{_SECOND}") if path else inserted


def discover(issuer: str, send: Send) -> Endpoints:
    """Ask for the metadata.

    Raises:
        Unreachable: the server does not answer now.
        TokenRefused: it has no metadata, or they are not those of `issuer`.
    """
    for url in addresses(issuer):
        answer = send(url, None)
        if answer.fault or answer.status == 429 or answer.status >= 500:
            raise Unreachable(f"{host_of(issuer)} {answer.fault or f'answers HTTP {answer.status}'}")
        if answer.status == 200:
            return _endpoints(issuer, json_object(answer, issuer))
    raise TokenRefused(
        f"{host_of(issuer)} has no metadata of an authorization server",
        advice="auth.issuer must be the issuer's URL with its path",
    )


def json_object(answer: Answer, issuer: str) -> dict[str, object]:
    """Give an answer's JSON object.

    Raises:
        TokenRefused: it is none.
    """
    try:
        value = decode(answer.body)
    except NotStrictError:
        value = None
    if not isinstance(value, dict):
        raise TokenRefused(f"{host_of(issuer)} does not answer with a JSON object (HTTP {answer.status})")
    return value


def _endpoints(issuer: str, document: dict[str, object]) -> Endpoints:
    named = document.get("issuer")
    if named != issuer:
        slash = isinstance(named, str) and named.rstrip("/") == issuer.rstrip("/")
        raise TokenRefused(
            f"{host_of(issuer)} says that it is another issuer than auth.issuer",
            advice="they differ in the / at the end" if slash else "",
        )
    token, device = document.get("token_endpoint"), document.get("device_authorization_endpoint", "")
    if not is_endpoint(token, issuer):
        raise TokenRefused(f"{host_of(issuer)} names no token endpoint that can be used")
    if device and not is_endpoint(device, issuer):
        raise TokenRefused(f"{host_of(issuer)} names no device authorization endpoint that can be used")
    grants = document.get("grant_types_supported")
    if isinstance(grants, list) and DEVICE_GRANT not in grants:
        device = ""
    return Endpoints(str(token), str(device))
