# SPDX-License-Identifier: Apache-2.0
"""Headers of every answer. A page may do nothing but show itself, load our own files and send our own forms. Pure.

A Content-Security-Policy of an endpoint stands beside ours: browsers hold a page to both, so it can only be stricter.

`Referrer-Policy: no-referrer` makes browsers send `Origin: null` with our own forms; `csrf` then goes by
`Sec-Fetch-Site`.
"""

from typing import Final

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_PERMISSIONS: Final = ", ".join(
    f"{feature}=()"
    for feature in (
        "camera",
        "display-capture",
        "geolocation",
        "microphone",
        "payment",
        "usb",
        "serial",
        "hid",
    )
)
_ALWAYS: Final = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", _PERMISSIONS.encode()),
)
_HSTS: Final = (b"strict-transport-security", b"max-age=31536000")
_NO_STORE: Final = (b"cache-control", b"no-store")

Headers = list[tuple[bytes, bytes]]


def secured(headers: Headers, *, https: bool) -> Headers:
    """Give an answer's headers with ours. Unless the endpoint says how it may be kept, nobody keeps it."""
    ours = [*_ALWAYS, _HSTS] if https else list(_ALWAYS)
    fixed = {name for name, _ in ours} - {b"content-security-policy"}
    kept = [(name, value) for name, value in headers if name.lower() not in fixed]
    if not any(name.lower() == b"cache-control" for name, _ in kept):
        kept.append(_NO_STORE)
    return kept + ours
