# SPDX-License-Identifier: Apache-2.0
"""Whether an ID token counts, who it says somebody is, and what role their groups give. No I/O.

Checks, by OpenID Connect Core 1.0 section 3.1.3.7: the signature by a key of the provider with an algorithm of
ALGORITHMS (never `none`, never a shared secret), `iss`, `aud`, `azp`, `exp`, `iat`, `nbf`, `nonce`, and `at_hash` where
it is given. A token of another purpose (RFC 8725 section 3.11: `typ` at+jwt, logout+jwt) is none.
"""

import base64
import binascii
import hmac
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from authlib.oidc.core import CodeIDToken  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from halod.console.access import Role
from halod.console.settings import Oidc
from halod.status import clean

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
LEEWAY: Final = 60
"""Seconds by which the provider's clock may be off."""
KEYS_LIMIT: Final = 100
GROUPS_LIMIT: Final = 5000
_RSA_BITS: Final = 2048
_KINDS: Final[dict[str, type[RSAKey] | type[ECKey] | type[OKPKey]]] = {
    "RSA": RSAKey,
    "EC": ECKey,
    "OKP": OKPKey,
}
_PUBLIC: Final = ("kty", "kid", "use", "alg", "n", "e", "crv", "x", "y")

Key = RSAKey | ECKey | OKPKey
Find = Callable[[str, str], Sequence[Key]]
"""Gives the provider's keys for a key id ("" for none) and an algorithm."""


class Refused(Exception):
    """An answer of the provider does not sign anybody in. `reason` is a word for log and audit."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who somebody is. `groups` is None when the token does not say."""

    subject: str
    name: str
    groups: frozenset[str] | None
    sid: str = ""


def keys_of(document: dict[str, Any]) -> tuple[Key, ...]:
    """Read a JWKS: the public keys that can sign; keys of other kinds, and faulty ones, are left out."""
    listed = document.get("keys")
    found: list[Key] = []
    for item in listed[:KEYS_LIMIT] if isinstance(listed, list) else ():
        if not isinstance(item, dict) or item.get("use", "sig") != "sig" or item.get("kty") not in _KINDS:
            continue
        public = {name: item[name] for name in _PUBLIC if isinstance(item.get(name), str)}
        try:
            key = _KINDS[item["kty"]].import_key(public)
            if isinstance(key, RSAKey) and key.public_key.key_size < _RSA_BITS:
                continue
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        found.append(key)
    return tuple(found)


def verify(
    token: object, *, find: Find, issuer: str, client_id: str, nonce: str, access_token: str, now: int
) -> dict[str, Any]:
    """Give the claims of an ID token that counts.

    Raises:
        Refused: it does not.
        Whatever `find` raises.
    """
    if not isinstance(token, str) or len(token) > 64 * 1024:
        raise Refused("no-id-token")
    header, claims = _signed(token, find)
    options = {
        "iss": {"essential": True, "value": issuer},
        "sub": {"essential": True},
        "exp": {"essential": True},
    }
    checked = CodeIDToken(
        claims,
        header,
        options={**options, "iat": {"essential": True}, "aud": {"essential": True, "value": client_id}},
        params={"client_id": client_id, "nonce": nonce, "access_token": access_token},
    )
    try:
        checked.validate(now=now, leeway=LEEWAY)
    except JoseError as error:
        claim = getattr(error, "claim", "") or "claims"
        raise Refused(f"id-token-{clean(str(claim), 16)}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Refused("id-token-claims") from None
    _strict(claims, issuer=issuer, client_id=client_id, nonce=nonce, now=now)
    return claims


def _signed(token: str, find: Find) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check the signature; gives header and claims."""
    registry = JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
    header = _header(token)
    algorithm, kid = header.get("alg"), header.get("kid", "")
    if algorithm not in ALGORITHMS or not isinstance(kid, str):
        raise Refused("id-token-alg")
    if header.get("crit") is not None or str(header.get("typ", "JWT")).lower() not in (
        "jwt",
        "application/jwt",
    ):
        raise Refused("id-token-header")
    for key in find(kid, algorithm):
        try:
            return header, jwt.decode(token, key, algorithms=[algorithm], registry=registry).claims
        except (JoseError, ValueError, TypeError):
            continue
    raise Refused("id-token-signature")


def _header(token: str) -> dict[str, Any]:

    first = token.partition(".")[0]
    try:
        found = msgspec.json.decode(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise Refused("id-token-header") from None
    if not isinstance(found, dict):
        raise Refused("id-token-header")
    return found


def _strict(claims: dict[str, Any], *, issuer: str, client_id: str, nonce: str, now: int) -> None:
    """Check again what must hold, by types and in constant time, whatever the library makes of odd values."""
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if claims.get("iss") != issuer:
        raise Refused("id-token-iss")
    if not isinstance(audiences, list) or client_id not in audiences:
        raise Refused("id-token-aud")
    if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != client_id:
        raise Refused("id-token-azp")
    if not isinstance(claims.get("nonce"), str) or not hmac.compare_digest(
        claims["nonce"].encode(), nonce.encode()
    ):
        raise Refused("id-token-nonce")
    ends, begins = _time(claims, "exp"), _time(claims, "iat")
    if ends <= now - LEEWAY:
        raise Refused("id-token-exp")
    if begins > now + LEEWAY:
        raise Refused("id-token-iat")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
        raise Refused("id-token-sub")


def _time(claims: dict[str, Any], name: str) -> float:
    at = claims.get(name)
    if not isinstance(at, (int, float)) or isinstance(at, bool) or not math.isfinite(at):
        raise Refused(f"id-token-{name}")
    return at


def identity(claims: dict[str, Any], groups_claim: str) -> Identity:
    """Give who the claims of a checked ID token are about."""
    sid = claims.get("sid")
    return Identity(
        subject=claims["sub"],
        name=_name(claims),
        groups=groups_in(claims, groups_claim),
        sid=clean(sid, 255) if isinstance(sid, str) else "",
    )


def groups_in(claims: dict[str, Any], groups_claim: str) -> frozenset[str] | None:
    """Read the groups; one text is one group. None when the claim is missing or is something else."""
    found = claims.get(groups_claim)
    if isinstance(found, str):
        return frozenset({found})
    if not isinstance(found, list):
        return None
    return frozenset(item for item in found[:GROUPS_LIMIT] if isinstance(item, str))


def role_of(groups: frozenset[str], settings: Oidc) -> Role:
    """Give the highest role that any of the groups has."""
    ranked = (
        (Role.ADMIN, settings.admin_groups),
        (Role.OPERATOR, settings.operator_groups),
        (Role.VIEWER, settings.viewer_groups),
    )
    return next((role for role, names in ranked if not groups.isdisjoint(names)), Role.NONE)


def _name(claims: dict[str, Any]) -> str:
    """Give what pages and the audit log call somebody: a claim, so it is cleaned."""
    for claim in ("preferred_username", "email", "name"):
        found = claims.get(claim)
        if isinstance(found, str) and clean(found, 128):
            return clean(found, 128)
    return clean(str(claims["sub"]), 128)


def suitable(keys: Sequence[Key], kid: str, algorithm: str) -> tuple[Key, ...]:
    """Give the keys that may have signed: by id where the token names one, always of the algorithm's kind."""
    kind = {"R": "RSA", "P": "RSA", "E": "EC"}[algorithm[0]] if algorithm[:2] != "Ed" else "OKP"
    fit = [key for key in keys if key.key_type == kind and key.get("alg") in (None, algorithm)]
    return tuple(key for key in fit if not kid or key.get("kid") == kid)[:4]
