# SPDX-License-Identifier: Apache-2.0
"""Whether `deny` takes back an entry, as `drift` would find it on a machine: generously.

Invariant: what counts is what a rendered server runs, not how its entry is pinned. So its command line is identified
like any definition's, and what a bridge or wrapper in it carries counts like the entry itself.
"""

from collections.abc import Iterator
from typing import Final

from halod.definition import stdio_sha256, url_sha256
from halod.launch import canonical_url, identify, parse_url
from halod.policy.model import Entry, Package
from halod.policy.packages import PACKAGE_TYPES
from halod.policy.rendering.servers import command_line
from halod.policy.warn import Denials

_LAYERS: Final = 8
"""Wrappers in wrappers; more are not looked through, as nobody writes them."""


def is_denied(entry: Entry, denials: Denials) -> bool:
    """Tell whether one of the denials fits the entry, its command line, or what that carries."""
    return any(denials.take_back(face) for face in _faces(entry))


def _faces(entry: Entry) -> Iterator[Entry]:
    """Give the entry, and entries that pin the same server in other ways."""
    yield entry
    if entry.url:
        yield Entry(entry.id, definition_sha256=url_sha256(entry.url))
    words = command_line(entry)
    for _ in range(_LAYERS):
        if not words:
            return
        yield Entry(entry.id, definition_sha256=stdio_sha256(words[0], words[1:]))
        launch = identify(words[0], words[1:])
        for kind in PACKAGE_TYPES:
            if launch.ecosystem == kind and launch.identifier:
                digest = (launch.digest or "").removeprefix("sha256:")
                version = launch.version or launch.requested or ""
                yield Entry(entry.id, package=Package(kind, launch.identifier, version, digest))
        nested = launch.nested
        if nested is None:
            return
        parts = parse_url(nested.url) if nested.url else None
        if parts is not None and nested.url:
            yield Entry(entry.id, url=nested.url, canonical_url=canonical_url(parts) or nested.url)
        words = nested.argv or ()
