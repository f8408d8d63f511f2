# SPDX-License-Identifier: Apache-2.0
"""Where the console may listen. Pure."""

import ipaddress

from halod.console.settings.model import Settings
from halod.errors import UsageError


def split_listen(listen: str) -> tuple[str, int]:
    """Give host and port of `127.0.0.1:8640` or `[::1]:8640`. Raises ValueError when it is neither."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ValueError("no port")
    bracketed = host.startswith("[") and host.endswith("]")
    if (":" in host) != bracketed:
        raise ValueError("an IPv6 address stands in brackets")
    bare = host[1:-1] if bracketed else host
    return str(ipaddress.ip_address("127.0.0.1" if bare == "localhost" else bare)), int(port)


def is_loopback(host: str) -> bool:
    """Tell whether an address to listen on is reached from this machine only."""
    return ipaddress.ip_address(host).is_loopback


def check_listen(settings: Settings) -> None:
    """Refuse to listen where passwords and reports would cross a network in the clear.

    Raises:
        UsageError: the address is none; or it is reached from elsewhere and there is neither TLS nor a proxy that
            does it, or no name under which browsers find it.
    """
    try:
        host, _ = split_listen(settings.listen)
    except ValueError:
        raise UsageError(
            f"listen: {settings.listen} is no address to listen on",
            advice="write 127.0.0.1:8640 or [::1]:8640",
        ) from None
    if is_loopback(host):
        return
    if not settings.tls_cert and not settings.proxies:
        raise UsageError(
            f"listening on {settings.listen} without TLS would send tokens in the clear",
            advice="set tls_cert and tls_key, or proxies and public_url for a proxy that does TLS, or use 127.0.0.1",
        )
    if ipaddress.ip_address(host).is_unspecified and not settings.public_url and not settings.hosts:
        raise UsageError(
            f"listening on {settings.listen} needs public_url",
            advice="say how browsers reach the console, such as https://halo.acme.example",
        )
