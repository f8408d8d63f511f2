# SPDX-License-Identifier: Apache-2.0
"""What else in an entry can run code or redirect: names only (design 4).

A feature keeps a definition from being approved, so a key counts only where its value can change what runs or
whom the harness talks to.
"""

from collections.abc import Mapping
from typing import Final

from halod.definition import Feature

# Objects of an entry that set up how the harness signs in.
_AUTH_OBJECTS: Final = ("oauth", "auth", "oidc", "authorization")
_TLS_OFF: Final = ("ssl_verify", "sslVerify", "verifySsl", "verify_ssl", "tlsVerify", "rejectUnauthorized")
# What Cline keeps of a sign-in that is over.
_NO_ENDPOINT: Final = frozenset({"tokens", "clientinformation", "discoverystate"})
_TLS_OTHER: Final = ("caBundlePath", "ca_bundle", "caCert", "proxy")


_SUBSTITUTION: Final = ("$(", "`")


def features(entry: Mapping[str, object], *, substitutes: bool = False) -> frozenset[Feature]:
    """Name the features of one entry; `entry` may hold more than the harness reads.

    `substitutes` says that the harness gives every value to a shell to expand (Crush).
    """
    found: set[Feature] = set()
    if entry.get("headersHelper"):
        found.add("headers-helper")
    if entry.get("envFile"):
        found.add("env-file")
    if entry.get("sandboxEnabled") is False:
        found.add("sandbox-off")
    if _debugs(entry.get("dev")) or "__proto__" in entry or (substitutes and _substitutes(entry)):
        found.add("inline-code")  # `__proto__`: JavaScript takes it for the keys that are missing
    if _tls_off(entry) or _tls_off(entry.get("requestOptions")) or _rerouted(entry.get("requestOptions")):
        found.add("tls-off")
    if any(_names_endpoint(entry.get(key)) for key in _AUTH_OBJECTS):
        found.add("auth-endpoint")
    return frozenset(found)


def _debugs(dev: object) -> bool:
    """VS Code's `dev.debug` names a debugger, with a path of its own, that starts the server."""
    return isinstance(dev, dict) and bool(dev.get("debug"))


def _substitutes(entry: object) -> bool:
    """Say whether any text of the entry holds a command substitution."""
    pending = [entry]
    while pending:
        value = pending.pop()
        if isinstance(value, str) and any(sign in value for sign in _SUBSTITUTION):
            return True
        pending += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return False


def _tls_off(value: object) -> bool:
    return isinstance(value, dict) and any(value.get(key) is False for key in _TLS_OFF)


def _rerouted(options: object) -> bool:
    """Continue's request options can send everything through a proxy and trust another authority."""
    return isinstance(options, dict) and any(options.get(key) for key in _TLS_OTHER)


def _names_endpoint(value: object) -> bool:
    """Say whether a sign-in object names a server of its own; where the answer comes back to is none."""
    pending = [value]
    while pending:
        inner = pending.pop()
        for key, setting in inner.items() if isinstance(inner, dict) else ():
            word = key.lower()
            if word in _NO_ENDPOINT or "redirect" in word or "callback" in word:
                continue
            if isinstance(setting, str) and setting and ("://" in setting or "issuer" in word):
                return True
            pending.append(setting)
    return False
