# SPDX-License-Identifier: Apache-2.0
"""What the words NAME[@VERSION], https URL and FILE mean, and the address of a version in a registry.

What a word is depends on the word alone, never on which files happen to be here: a directory `io.github.acme` in a
checkout must not stand in for the registry.
"""

import re
from typing import Final, Literal
from urllib.parse import quote

import msgspec

from halod.launch.urls import canonical_url, parse_url
from halod.policy.importing.model import ImportRefused, Wanted
from halod.policy.yamlpos import shown

OFFICIAL: Final = "https://registry.modelcontextprotocol.io"
"""The official registry; `/v0.1` is its stable interface (registry.md A)."""

_STABLE: Final = "/v0.1"
_NAME: Final = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
_VERSION: Final = re.compile(r"[!-~]{1,255}")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Source(msgspec.Struct, frozen=True):
    """Where the document comes from; `wanted` is set for a name."""

    kind: Literal["name", "url", "file"]
    text: str
    wanted: Wanted | None = None


def is_name(text: str) -> bool:
    """Tell whether `text` is a server's name: `namespace/name`, 3 to 200 characters (registry.md A)."""
    return 3 <= len(text) <= 200 and _NAME.fullmatch(text) is not None


def wanted(text: str) -> Wanted | None:
    """Read NAME or NAME@VERSION; None when it is neither. `latest` is no version.

    Raises:
        ImportRefused: the name is one and the version is not.
    """
    name, at, version = text.partition("@")
    if not is_name(name):
        return None
    if at and _VERSION.fullmatch(version) is None:
        raise ImportRefused(f"{shown(version)} is not a version")
    return Wanted(name, "" if version == "latest" else version)


def source(text: str) -> Source:
    """Tell what the person named. A word that begins like a path or ends in `.json` is a file, `-` is stdin.

    Raises:
        ImportRefused: a URL that is not https (or http on a loopback host), or has userinfo or a fragment.
    """
    if text == "-" or text.startswith(("/", "./", "../", "~")):
        return Source("file", text)
    if _SCHEME.match(text):
        return Source("url", check_url(text, "the URL"))
    if not text.endswith(".json"):
        found = wanted(text)
        if found is not None:
            return Source("name", text, found)
    return Source("file", text)


def check_url(text: str, what: str) -> str:
    """Give the canonical form of a URL that a document may be fetched from. It is not quoted in the message.

    Raises:
        ImportRefused: it is not plainly an https URL (or http on a loopback host).
    """
    parts = parse_url(text)
    canonical = canonical_url(parts) if parts is not None else None
    if parts is None or canonical is None or parts.fragment is not None:
        raise ImportRefused(
            f"{what} must be a plain https URL, without user name, fragment and placeholders",
            advice="http is for a loopback host only",
        )
    return canonical


def base_url(text: str) -> str:
    """Give the base of a registry as `version_url` takes it; a `/v0.1` at its end is none of it.

    Raises:
        ImportRefused: like `check_url`, or it has a query.
    """
    url = check_url(text, "--registry-url")
    if "?" in url:
        raise ImportRefused("--registry-url must not have a query")
    return url.rstrip("/").removesuffix(_STABLE).rstrip("/")


def version_url(base: str, server: Wanted) -> str:
    """Give the address of one version, or of the latest one, in the registry at `base`.

    Every part is percent-encoded whole, the slash of a name too.
    """
    name, version = quote(server.name, safe=""), quote(server.version or "latest", safe="")
    return f"{base.rstrip('/')}{_STABLE}/servers/{name}/versions/{version}"
