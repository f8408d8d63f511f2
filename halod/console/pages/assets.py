# SPDX-License-Identifier: Apache-2.0
"""Static files: read once, served under an address that names their content, so they may be kept for ever."""

import hashlib
import os
from typing import Final

import msgspec
from starlette.responses import Response

from halod.console.access import Access, Route
from halod.console.call import Call
from halod.console.problem import Problem

_HERE: Final = os.path.join(os.path.dirname(__file__), "static")
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_DIGITS: Final = 16


class _Asset(msgspec.Struct, frozen=True):
    body: bytes
    media_type: str
    digest: str


def _read() -> dict[str, _Asset]:
    found = {}
    for name in sorted(os.listdir(_HERE)):
        kind = _TYPES.get(os.path.splitext(name)[1])
        if kind is None:
            continue
        with open(os.path.join(_HERE, name), "rb") as file:
            body = file.read()
        found[name] = _Asset(body, kind, hashlib.sha256(body).hexdigest()[:_DIGITS])
    return found


_ASSETS: Final = _read()


def address(name: str) -> str:
    """Give the address of a static file.

    Raises:
        KeyError: there is no such file.
    """
    return f"/static/{_ASSETS[name].digest}/{name}"


def serve(call: Call) -> Response:
    """Give a static file. An address with another digest is not found: what is kept for ever may not change."""
    asset = _ASSETS.get(call.request.path_params["name"])
    if asset is None or call.request.path_params["digest"] != asset.digest:
        raise Problem(404)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(asset.body, headers=headers, media_type=asset.media_type)


def icon(_call: Call) -> Response:
    """Give the icon at the address that browsers try by themselves."""
    asset = _ASSETS["icon.svg"]
    headers = {"Cache-Control": "public, max-age=86400", "X-Content-Type-Options": "nosniff"}
    return Response(asset.body, headers=headers, media_type=asset.media_type)


ROUTES: Final = (
    Route(method="GET", path="/static/{digest}/{name}", name="static", access=Access.PUBLIC, endpoint=serve),
    Route(method="GET", path="/favicon.ico", name="favicon", access=Access.PUBLIC, endpoint=icon),
)
