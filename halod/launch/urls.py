# SPDX-License-Identifier: Apache-2.0
"""URLs: one strict grammar for comparing, and the host that a WHATWG client would connect to (registry.md D).

Invariants:

1. `parse_url` answers only for a URL that every parser reads alike: the grammar is ASCII (a host may have
   plain letters of other scripts), and `urllib.parse` must agree on scheme, host, port and path.
2. Two URLs are equal only if `canonical_url` gives the same text for both. What it cannot give has no equal.
3. `whatwg_host` is for people and for `deny`; nothing is approved by it.
"""

import re
from urllib.parse import urlsplit

from halod.launch.hosts import canonical_ipv4, ends_in_number, ipv6, whatwg_ipv4
from halod.launch.model import UrlParts
from halod.launch.uts46 import plain_alabel, whatwg_alabel
from halod.launch.words import has_placeholder

MAX_URL = 32 * 1024
"""A longer URL is not taken apart; real ones end at 2 KiB, and work stays bounded."""

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_URL = re.compile(
    r"(?P<scheme>https?|wss?)://"
    r"(?:(?P<userinfo>(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*)@)?"
    r"(?:(?P<ip6>\[[0-9A-Fa-f:.]+\])|(?P<host>[^\x00-,/:-@\[-^`{-\x7f]+))"
    r"(?P<port>:[0-9]{0,9})?"
    r"(?P<path>(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*)"
    r"(?:\?(?P<query>[^#\x00-\x1f\x7f]*))?"
    r"(?:#(?P<fragment>[^\x00-\x1f\x7f]*))?",
    re.IGNORECASE | re.ASCII,
)
_RFC_TAIL = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DOLLAR = re.compile(r"\$[A-Za-z_({]")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_LOOPBACK_V4 = re.compile(r"127(?:\.[0-9]{1,3}){3}")

_C0_OR_SPACE = "".join(map(chr, range(0x21)))
_DROPPED = str.maketrans("", "", "\t\n\r")
_SPECIAL = re.compile(r"(https?|wss?):[/\\]*([^/\\?#]*)", re.IGNORECASE | re.ASCII)
_FORBIDDEN = re.compile(r"[\x00-\x20#%/:<>?@\[\\\]^|\x7f]")
_PORT = re.compile(r"0*([0-9]{0,5})")


def parse_url(url: str) -> UrlParts | None:
    """Take a URL apart by the strict grammar; None when it has no parts that all parsers agree on.

    Userinfo, a query or fragment with variables, plain http beyond loopback and ws have parts but are not
    `comparable`. A variable anywhere else, controls, backslashes, mapped host characters, unusual IPv4
    spellings, encoded dot segments and malformed escapes have no parts.
    """
    if len(url) > MAX_URL or url != url.strip(_C0_OR_SPACE) or _SURROGATE.search(url):
        return None
    match = _URL.fullmatch(url)
    if match is None:
        return None
    scheme = match["scheme"].lower()
    host = _strict_host(match["ip6"], match["host"])
    path = _strict_path(match["path"])
    if host is None or path is None or not _urlsplit_agrees(url, match):
        return None
    port = int(match["port"][1:] or _DEFAULT_PORTS[scheme]) if match["port"] else _DEFAULT_PORTS[scheme]
    if port > 65535:
        return None
    query, fragment, userinfo = match["query"], match["fragment"], match["userinfo"] is not None
    comparable = (
        not userinfo
        and (scheme == "https" or (scheme == "http" and is_loopback(host)))
        and all(tail is None or _plain_tail(tail) for tail in (query, fragment))
    )
    return UrlParts(
        scheme=scheme,
        host=host,
        port=None if port == _DEFAULT_PORTS[scheme] else port,
        path=path,
        query=_normal_escapes(query) if query is not None and comparable else query,
        fragment=_normal_escapes(fragment) if fragment is not None and comparable else fragment,
        userinfo=userinfo,
        comparable=comparable,
    )


def canonical_url(parts: UrlParts) -> str | None:
    """Write parts as the one text that equal URLs share; None when they must not be compared.

    A query and a fragment stay in it: a URL with a fragment equals no pin, since pins have none.
    """
    if not parts.comparable:
        return None
    port = "" if parts.port is None else f":{parts.port}"
    query = "" if parts.query is None else f"?{parts.query}"
    fragment = "" if parts.fragment is None else f"#{parts.fragment}"
    return f"{parts.scheme}://{parts.host}{port}{parts.path}{query}{fragment}"


def is_loopback(host: str) -> bool:
    """Tell whether a canonical host is this machine by its spelling: nothing is resolved."""
    return host in {"localhost", "[::1]"} or _LOOPBACK_V4.fullmatch(host) is not None


def _strict_host(ip6: str | None, name: str | None) -> str | None:
    if ip6 is not None:
        compressed = ipv6(ip6[1:-1])
        return None if compressed is None else f"[{compressed}]"
    host = plain_alabel(name or "")
    if host is None or len(host) > 254:
        return None
    if ends_in_number(host):
        return host if canonical_ipv4(host) else None
    for label in host.removesuffix(".").split("."):
        if not 0 < len(label) < 64:
            return None
        if label.startswith("xn--") and whatwg_alabel(label) is None:
            return None
    return host


def _strict_path(raw: str) -> str | None:
    if "$" in raw:
        return None  # some harnesses expand `$VAR` too
    out: list[str] = []
    segments = raw.split("/")[1:] or [""]
    last = len(segments) - 1
    for place, segment in enumerate(segments):
        plain = _normal_escapes(segment)
        if plain in {".", ".."}:
            if plain != segment:
                return None  # encoded dots: Node resolves them, others send them
            if plain == ".." and out:
                out.pop()
            if place == last:
                out.append("")
        else:
            out.append(plain)
    return "/" + "/".join(out)


def _normal_escapes(text: str) -> str:
    return _ESCAPE.sub(_normal_escape, text) if "%" in text else text


def _normal_escape(match: re.Match[str]) -> str:
    char = chr(int(match[0][1:], 16))
    return char if char in _UNRESERVED else match[0].upper()


def _plain_tail(tail: str) -> bool:
    return _RFC_TAIL.fullmatch(tail) is not None and _DOLLAR.search(tail) is None


def _urlsplit_agrees(url: str, match: re.Match[str]) -> bool:
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError:
        return False
    own = match["ip6"][1:-1] if match["ip6"] else match["host"]
    own_port = match["port"][1:] if match["port"] else ""
    return (
        split.scheme == match["scheme"].lower()
        and host == own.lower()
        and port == (int(own_port) if own_port else None)
        and split.path == match["path"]
    )


def whatwg_host(url: str) -> str:
    """Give `host[:port]` that Node or Electron would connect to, or "" for a variable or what cannot be told.

    Tabs and newlines are dropped, backslashes are slashes, missing slashes are added, escapes in the host are
    decoded, the host becomes A-labels or a canonical address. The default port is left out.
    """
    match = _SPECIAL.match(url.strip(_C0_OR_SPACE).translate(_DROPPED))
    if match is None or len(match[2]) > MAX_URL:
        return ""
    scheme = match[1].lower()
    authority = match[2].rpartition("@")[2]
    if not authority or has_placeholder(_ESCAPE.sub("", authority)) or "$" in authority:
        return ""
    if _open_variable(match[2]):
        return ""
    if authority[0] == "[":
        inside, closed, tail = authority[1:].partition("]")
        compressed = ipv6(inside)
        host = None if compressed is None else f"[{compressed}]"
        if not closed or tail[:1] not in {"", ":"}:
            return ""
    else:
        name, _, tail = authority.partition(":")
        tail = f":{tail}" if ":" in authority else ""
        host = _whatwg_domain(name)
    port = _PORT.fullmatch(tail[1:]) if tail else None
    if host is None or (tail and (port is None or int(port[1] or 0) > 65535)):
        return ""
    number = int(port[1] or 0) if port is not None and tail[1:] else None
    return host if number is None or number == _DEFAULT_PORTS[scheme] else f"{host}:{number}"


def _open_variable(authority: str) -> bool:
    """Tell whether a `${…}` is cut by what ended the authority: its default may hold a `/` or an `@`."""
    return authority.count("{") != authority.count("}")


def _whatwg_domain(name: str) -> str | None:
    if "%" in name:
        name = _percent_decoded(name)
    host = whatwg_alabel(name)
    if not host or _FORBIDDEN.search(host):
        return None
    if ends_in_number(host):
        return whatwg_ipv4(host)
    return host


def _percent_decoded(text: str) -> str:
    out = bytearray()
    for piece in re.split(r"(%[0-9A-Fa-f]{2})", text):
        if _ESCAPE.fullmatch(piece):
            out.append(int(piece[1:], 16))
        else:
            out += piece.encode("utf-8", "replace")
    return out.decode("utf-8", "replace")
