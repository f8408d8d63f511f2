# SPDX-License-Identifier: Apache-2.0
"""URLs and hosts of a policy: pins, mirrors, denied hosts, links for people.

Invariants:

1. A pin has a canonical form (registry.md part D): https, or http on a loopback host; no userinfo,
   fragment or variable. Two URLs are equal only if their canonical strings are.
2. A URL that may carry a credential (userinfo, query) is never quoted in a message.
"""

import re

from halod.launch.model import UrlParts
from halod.launch.urls import canonical_url, is_loopback, parse_url
from halod.launch.words import has_placeholder
from halod.policy.check import Checker
from halod.policy.yamlpos import Node, shown

_AUTHORITY = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]*)")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")


def read_url(c: Checker, node: Node, what: str = "url") -> tuple[str, str] | None:
    """Read a URL that definitions are compared with; gives it as written and in canonical form."""
    text = c.text(node, what, limit=2048)
    if text is None:
        return None
    parts = parse_url(text)
    fault = _fault(text, parts)
    if fault:
        c.add(node, f"{what}: {fault}")
        return None
    canonical = canonical_url(parts) if parts is not None else None
    if canonical is None:
        c.add(node, f"{what}: programs read this URL differently; write it plainly, as https://host/path")
        return None
    return text, canonical


def read_denied_url(c: Checker, node: Node) -> str | None:
    """Read a URL that is denied: any scheme a client speaks; gives it in normal form."""
    text = c.text(node, "url", limit=2048)
    if text is None:
        return None
    parts = parse_url(text)
    if parts is None or parts.userinfo or parts.fragment is not None or has_placeholder(text):
        c.add(node, "url: expected a plain URL without userinfo, fragment and variables; or deny its host")
        return None
    query = "" if parts.query is None else f"?{parts.query}"
    return f"{parts.scheme}://{_authority(parts)}{parts.path}{query}"


def read_link(c: Checker, node: Node, what: str) -> str | None:
    """Read a link for people (`helpURL`): https, without userinfo; a query or fragment is fine."""
    text = c.text(node, what, limit=2048)
    if text is None:
        return None
    parts = parse_url(text)
    if parts is None or parts.userinfo or parts.scheme != "https":
        c.add(node, f"{what}: expected an https URL without userinfo")
        return None
    return text


def read_host(c: Checker, node: Node, what: str = "host") -> str | None:
    """Read `host` or `host:port`, without scheme, path or wildcard; gives it as URLs are compared."""
    text = c.text(node, what, limit=253)
    if text is None:
        return None
    if "*" in text:
        c.add(node, f"{what}: {shown(text)} holds a wildcard; a host is matched whole, list each one")
        return None
    parts = parse_url(f"https://{text}/") if _HOST.fullmatch(text) else None
    if parts is None:
        c.add(
            node,
            f"{what}: expected a host alone, such as mcp.evil.example (IPv6 in brackets, IDN as xn--)",
        )
        return None
    return _authority(parts)


def _authority(parts: UrlParts) -> str:
    return parts.host if parts.port is None else f"{parts.host}:{parts.port}"


def _fault(text: str, parts: UrlParts | None) -> str:
    """Say what a pin must not have, in the author's terms, or nothing."""
    authority = _AUTHORITY.match(text)
    if has_placeholder(text):
        return "must not hold a variable or placeholder"
    if authority is None:
        return "expected an https URL, such as https://mcp.acme.example/mcp"
    if "#" in text:
        return "must not have a fragment"
    return _authority_fault(authority[1], parts) or _scheme_fault(text.split(":", 1)[0].lower(), parts)


def _authority_fault(authority: str, parts: UrlParts | None) -> str:
    if "@" in authority:
        return "must not carry userinfo (a user name or password)"
    if not authority.isascii():
        return "write the host in ASCII (its xn-- form)" + (f": {parts.host}" if parts is not None else "")
    return ""


def _scheme_fault(scheme: str, parts: UrlParts | None) -> str:
    if scheme == "http":
        beyond = parts is not None and not is_loopback(parts.host)
        return "must be https; http is for a loopback host only" if beyond else ""
    return "" if scheme == "https" else f"must be https, not {shown(scheme)}"
