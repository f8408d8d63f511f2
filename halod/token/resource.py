# SPDX-License-Identifier: Apache-2.0
"""Addresses of the token room: an MCP server as a resource (RFC 8707 section 2), and an endpoint of a server. Pure."""

from halod.launch.urls import canonical_url, is_loopback, parse_url
from halod.token.model import TokenRefused


def canonical_resource(text: str) -> str:
    """Give the canonical form of a resource: a host alone without a slash, everything else as it is.

    That is how the MCP specification (2025-11-25, "Canonical Server URI") has servers name themselves.

    Raises:
        TokenRefused: it is not https (http on a loopback host), or has userinfo, a fragment or a placeholder.
            The text is not quoted: it may hold a secret.
    """
    found = canonical(text)
    if not found:
        raise TokenRefused(
            "--resource must be the https URL of an MCP server, without user name, fragment and placeholders",
            advice="http is for a loopback host only",
        )
    return found


def canonical(text: str) -> str:
    """Give the canonical form of a resource or audience, or "" when it is none."""
    parts = parse_url(text)
    url = canonical_url(parts) if parts is not None else None
    if parts is None or url is None or parts.fragment is not None:
        return ""
    return url.removesuffix("/") if parts.path == "/" and parts.query is None else url


def is_endpoint(url: object, issuer: str) -> bool:
    """Tell whether a URL that a server names can be one of its endpoints: https, or http as its issuer on loopback."""
    parts = parse_url(url) if isinstance(url, str) else None
    if parts is None or not parts.comparable or parts.fragment is not None:
        return False
    return parts.scheme == "https" or (is_loopback(parts.host) and issuer.startswith("http://"))


def host_of(url: str) -> str:
    """Give the host, with its port, of a URL, for messages."""
    parts = parse_url(url)
    if parts is None:
        return "the authorization server"
    return parts.host if parts.port is None else f"{parts.host}:{parts.port}"
