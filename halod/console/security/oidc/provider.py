# SPDX-License-Identifier: Apache-2.0
"""One OpenID provider: what it announces, its keys, and the two questions of a sign-in.

Invariants:

1. Metadata counts only when it names the issuer of the settings, letter by letter (OpenID Connect Discovery 4.3).
2. Keys are fetched again for a key id that is not known, so a rotation needs no restart; at most every
   AGAIN seconds, so that tokens with made-up ids make no load.
3. Code, verifier and tokens live in local variables only.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from authlib.oauth2.base import OAuth2Error  # type: ignore[import-untyped]
from authlib.oauth2.client import OAuth2Client  # type: ignore[import-untyped]

from halod.console.clock import Clock
from halod.console.security.oidc.identity import (
    Identity,
    Key,
    Refused,
    groups_in,
    identity,
    keys_of,
    suitable,
    verify,
)
from halod.console.security.oidc.wire import Answer, Unreachable, Wire
from halod.console.settings import Oidc
from halod.console.settings.kinds import Fault, url
from halod.console.settings.secret import private_line

FRESH: Final = 3600
"""Seconds that metadata and keys are kept."""
AGAIN: Final = 30
"""Seconds between two attempts to fetch either."""


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What is used of the discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Provider:
    """The provider of the settings; threads may use it at the same time."""

    def __init__(self, settings: Oidc, clock: Clock, wire: Wire | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._wire = wire or Wire(settings.ca_file)
        self._lock = threading.Lock()
        self._metadata: Metadata | None = None
        self._keys: tuple[Key, ...] = ()
        self._metadata_at = self._keys_at = self._metadata_tried = self._keys_tried = float("-inf")

    def metadata(self) -> Metadata:
        """Give what the provider announces. Raises Unreachable."""
        now = self._clock.monotonic()
        with self._lock:
            if self._metadata is not None and now < self._metadata_at + FRESH:
                return self._metadata
            if now < self._metadata_tried + AGAIN:
                return self._known()
            self._metadata_tried = now
        try:
            found = self._discover()
        except Unreachable:
            with self._lock:
                return self._known()
        with self._lock:
            self._metadata, self._metadata_at, self._metadata_tried = found, now, float("-inf")
        return found

    def authorization_url(self, *, redirect: str, state: str, nonce: str, verifier: str) -> str:
        """Give the address that starts a sign-in. Raises Unreachable."""
        address, _ = self._client(redirect).create_authorization_url(
            self.metadata().authorization_endpoint, state=state, nonce=nonce, code_verifier=verifier
        )
        return str(address)

    def logout_url(self, back: str) -> str:
        """Give where the session at the provider is ended, "" for nowhere (OpenID Connect RP-Initiated Logout 1.0)."""
        try:
            end = url(self.metadata().end_session_endpoint)
        except (Unreachable, Fault):
            return ""
        query = urlencode({"client_id": self._settings.client_id, "post_logout_redirect_uri": back})
        return f"{end}{'&' if '?' in end else '?'}{query}"

    def identify(self, *, code: str, redirect: str, nonce: str, verifier: str) -> Identity:
        """Exchange a code for who somebody is.

        Raises:
            Refused: the provider's answer signs nobody in.
            Unreachable: there is none.
        """
        metadata = self.metadata()
        token = self._exchange(metadata, code, redirect, verifier)
        access = token.get("access_token")
        claims = verify(
            token.get("id_token"),
            find=self._find,
            issuer=metadata.issuer,
            client_id=self._settings.client_id,
            nonce=nonce,
            access_token=access if isinstance(access, str) else "",
            now=self._clock.now(),
        )
        who = identity(claims, self._settings.groups_claim)
        if who.groups is None and metadata.userinfo_endpoint and isinstance(access, str):
            groups = self._userinfo_groups(metadata.userinfo_endpoint, access, who.subject)
            return msgspec.structs.replace(who, groups=groups)
        return who

    def _known(self) -> Metadata:
        if self._metadata is None:
            raise Unreachable("the provider does not say what it offers")
        return self._metadata

    def _discover(self) -> Metadata:
        issuer = self._settings.issuer
        answer = self._wire.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if answer.status != 200 or answer.json is None:
            raise Unreachable("the provider does not say what it offers")
        try:
            found = msgspec.convert(answer.json, Metadata)
            url(found.authorization_endpoint)
        except (msgspec.ValidationError, Fault):
            raise Unreachable("what the provider says it offers is incomplete") from None
        if found.issuer != issuer:
            raise Unreachable("the provider calls itself something else than the settings do")
        return found

    def _client(self, redirect: str, session: object = None) -> Any:  # noqa: ANN401 - the library has no types
        return OAuth2Client(
            session=session,
            client_id=self._settings.client_id,
            token_endpoint_auth_method="none",  # noqa: S106 - a word of the protocol
            scope=" ".join(self._settings.scopes),
            redirect_uri=redirect,
            code_challenge_method="S256",
        )

    def _exchange(self, metadata: Metadata, code: str, redirect: str, verifier: str) -> Mapping[str, Any]:
        client = self._client(redirect, _Session(self._wire, *self._credentials(metadata)))
        try:
            found = client.fetch_token(
                metadata.token_endpoint,
                grant_type="authorization_code",
                code=code,
                code_verifier=verifier,
                redirect_uri=redirect,
            )
        except (OAuth2Error, ValueError, KeyError, TypeError):
            raise Refused("code") from None
        return dict(found)

    def _credentials(self, metadata: Metadata) -> tuple[str, str, bool]:
        """Give client id, secret and whether they go into a header (RFC 6749 section 2.3.1)."""
        settings = self._settings
        if not settings.client_secret_file:
            return settings.client_id, "", False
        basic = "client_secret_basic" in metadata.token_endpoint_auth_methods_supported
        return settings.client_id, private_line(settings.client_secret_file, "client_secret_file"), basic

    def _find(self, kid: str, algorithm: str) -> Sequence[Key]:
        """Find keys; one that is not known yet may be new. Raises Unreachable."""
        now = self._clock.monotonic()
        with self._lock:
            fresh = now < self._keys_at + FRESH
            found = suitable(self._keys, kid, algorithm) if fresh else ()
            if found or (now < self._keys_tried + AGAIN and self._keys):
                return found or suitable(self._keys, kid, algorithm)
            self._keys_tried = now
        answer = self._wire.get(self.metadata().jwks_uri)
        if answer.status != 200 or answer.json is None:
            raise Unreachable("the provider does not give its keys")
        keys = keys_of(answer.json)
        with self._lock:
            self._keys, self._keys_at = keys, now
        return suitable(keys, kid, algorithm)

    def _userinfo_groups(self, address: str, access: str, subject: str) -> frozenset[str] | None:
        answer = self._wire.get(address, bearer=access)
        if answer.status != 200 or answer.json is None:
            raise Refused("userinfo")
        if answer.json.get("sub") != subject:
            raise Refused("userinfo-sub")
        return groups_in(answer.json, self._settings.groups_claim)


class _Session:
    """What the OAuth library sends by: our bounded wire, with the client's credentials."""

    def __init__(self, wire: Wire, client_id: str, secret: str, basic: bool) -> None:  # noqa: FBT001 - one caller
        self._wire = wire
        self._id = client_id
        self._secret = secret
        self._basic = basic

    def post(self, address: str, data: dict[str, str], headers: object, auth: object) -> "_Response":
        del headers, auth
        if self._basic:
            pair = (quote(self._id, safe=""), quote(self._secret, safe=""))
            return _Response(self._wire.post(address, data, basic=pair))
        form = {**data, "client_id": self._id}
        return _Response(
            self._wire.post(address, {**form, "client_secret": self._secret} if self._secret else form)
        )


class _Response:
    """An answer as the OAuth library reads it."""

    def __init__(self, answer: Answer) -> None:
        self.status_code = answer.status
        self._json = answer.json

    def raise_for_status(self) -> None:
        if self.status_code >= 400:
            raise ValueError("refused")

    def json(self) -> dict[str, Any] | None:
        return self._json
