# SPDX-License-Identifier: Apache-2.0
"""Where the console stands: its names, its scheme, and whose word about a client's address counts. Pure.

Invariants:

1. A request is answered only under a name that the settings allow, so a web page whose name was rebound to this
   machine's address reaches nothing.
2. Whether the console is reached by https is said by the settings, never by a request's header.
3. Without TLS of its own, a console behind a proxy hears that proxy and this machine only.
4. `X-Forwarded-For` counts from a declared proxy only, read from the right, up to the first hop that is no such
   proxy. No other forwarding header counts.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from halod.console.settings import Settings, is_loopback, split_listen

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_FORWARDED_LIMIT: Final = 20
"""Hops of X-Forwarded-For that are looked at."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """The console's place. `hosts` are values of the Host header, in lower case."""

    scheme: str
    hosts: frozenset[str]
    proxies: tuple[Network, ...] = ()
    only_proxies: bool = False
    """Whether nobody but a declared proxy and this machine is heard: there is no TLS but the proxy's."""

    @property
    def https(self) -> bool:
        """Whether browsers reach the console by https."""
        return self.scheme == "https"

    def allows(self, host: str) -> bool:
        """Tell whether a request with this Host header is for this console."""
        return host.lower() in self.hosts

    def hears(self, peer: str) -> bool:
        """Tell whether a connection from this address is answered."""
        address = _address(peer)
        return not self.only_proxies or address is None or address.is_loopback or self._is_proxy(address)

    def origin(self, host: str) -> str:
        """Give the origin of pages that this console serves under an allowed host."""
        return f"{self.scheme}://{host.lower()}"

    def address(self, peer: str, forwarded: Sequence[str]) -> str:
        """Give the client's address; `forwarded` are the X-Forwarded-For headers in their order."""
        current = _address(peer)
        if current is None:
            return ""
        hops = [hop.strip() for line in forwarded for hop in line.split(",")][-_FORWARDED_LIMIT:]
        while hops and self._is_proxy(current):
            hop = _address(hops.pop())
            if hop is None:
                break
            current = hop
        return str(current)

    def _is_proxy(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        return any(address in network for network in self.proxies)


def site(settings: Settings) -> Site:
    """Give the place that the settings describe; they have been checked."""
    host, port = split_listen(settings.listen)
    proxies = tuple(ipaddress.ip_network(text, strict=False) for text in settings.proxies)
    if settings.public_url:
        parts = urlsplit(settings.public_url)
        names = [parts.netloc.lower(), *settings.hosts]
        return Site(
            scheme=parts.scheme,
            hosts=frozenset(_with_ports(names, parts.scheme)),
            proxies=proxies,
            only_proxies=bool(proxies) and not settings.tls_cert,
        )
    scheme = "https" if settings.tls_cert else "http"
    shown = f"[{host}]" if ":" in host else host
    names = [f"{shown}:{port}", *settings.hosts]
    if is_loopback(host):
        names += [f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"]
    return Site(scheme=scheme, hosts=frozenset(_with_ports(names, scheme)), proxies=proxies)


def _with_ports(names: Iterable[str], scheme: str) -> Iterable[str]:
    """Give each name as browsers write it, with and without the scheme's own port."""
    default = f":{_DEFAULT_PORTS[scheme]}"
    for name in names:
        lower = name.lower()
        yield lower
        if lower.endswith(default):
            yield lower.removesuffix(default)
        elif ":" not in lower.rpartition("]")[2]:
            yield lower + default


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read an address as proxies write it: bare, in brackets, with a port; IPv4 in IPv6 is IPv4."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
