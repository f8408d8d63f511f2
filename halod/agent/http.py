# SPDX-License-Identifier: Apache-2.0
"""The one door for HTTP: what is sent, how long it may take, and what is said when it fails.

httpx and httpcore lie behind it and nowhere else. Invariants:

1. https only, or http to the loopback address itself (not only to a name that is said to be it).
2. No redirect is followed: a token sent to one server is not carried to another.
3. A request ends: TOTAL seconds for everything, a bounded answer, and `abort` from any thread.
4. What fails is a Fault out of a closed set of words. No URL, token, header or text of a server or library is
   in it, nor in any log line; neither cookies nor compressed bodies are accepted.
"""

import logging
import ssl
from collections.abc import Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address, ip_network
from typing import Final, Literal
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment

import httpcore
import httpx
import msgspec

from halod import __version__
from halod.agent.bounded import Backend, Limits
from halod.agent.faults import Fault, Kind, kind_of
from halod.errors import UsageError

TOTAL: Final = 30.0
"""Seconds a request may take, from the look-up of the name to the last byte of the answer (design 9)."""
BODY_LIMIT: Final = 64 * 1024
"""Bytes of an answer's body that are read; what follows is not."""
_HEAD_LIMIT: Final = 256 * 1024
"""Bytes of everything else that arrives: status lines, headers, chunk marks, a proxy's answer."""
_KEPT: Final = ("content-type", "date", "etag", "last-modified", "retry-after", "www-authenticate")
_USER_AGENT: Final = f"halod/{__version__}"

# Their INFO lines hold URLs, their DEBUG lines headers.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class Answer(msgspec.Struct, frozen=True):
    """What a server said. All of it is untrusted text: never log it.

    `headers` holds the few that halod reads, in lower case. `whole` is false when the body went on beyond the
    limit.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool

    def __repr__(self) -> str:
        """Tell the status and the size: the body may hold a token."""
        return f"Answer({self.status}, {len(self.body)} bytes)"


def check_url(url: str) -> None:
    """Check a URL of the settings.

    Raises:
        UsageError: it is no https URL (or http to loopback), has no host, or carries userinfo or a fragment.
            The message does not quote it.
    """
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise UsageError("the URL is malformed") from None
    if not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError("the URL holds characters that a URL cannot hold")
    if parts.scheme not in {"https", "http"} or not host:
        raise UsageError("the URL must begin with https:// and name a host")
    if "@" in parts.netloc or parts.fragment:
        raise UsageError("the URL may hold neither a user name nor a fragment", advice="use token_file")
    if parts.scheme == "http" and not is_loopback(host):
        raise UsageError("plain http is allowed to this machine only", advice="use https://")


def is_loopback(host: str) -> bool:
    """Tell whether a host as written is this machine: `localhost`, 127.0.0.0/8 or ::1."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Client:
    """Speaks to one origin. One request at a time, from one thread; only `abort` may come from another."""

    def __init__(self, url: str, tls: ssl.SSLContext, *, total: float = TOTAL) -> None:
        """Prepare; nothing is sent, nothing is looked up.

        Args:
            url: Any URL of the origin. A proxy of the environment is used when it applies to its host.
            tls: From `halod.agent.tls.tls_context`.
            total: Seconds for a whole request.

        Raises:
            UsageError: `url` is not allowed, or the environment names a proxy that cannot be used.
        """
        check_url(url)
        self._origin = _origin(url)
        self._total = total
        self._limits = Limits()
        parts = urlsplit(url)
        plain = parts.scheme == "http"
        backend = Backend(self._limits, loopback_only=plain)
        proxy = _proxy_for(parts.hostname or "", parts.port)
        self._proxied = proxy is not None
        pool = _pool(tls, backend) if proxy is None else _proxy_pool(proxy, tls, backend)
        self._http = httpx.Client(
            transport=_Transport(pool),
            trust_env=False,
            follow_redirects=False,
            timeout=total,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    def __repr__(self) -> str:
        """Tell nothing of where it speaks to."""
        return "Client()"

    def send(
        self,
        method: Literal["GET", "POST"],
        url: str,
        *,
        bearer: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        limit: int = BODY_LIMIT,
    ) -> Answer:
        """Send one request and read its answer, at most `limit` bytes of its body.

        `body` is JSON. `bearer` must have passed `is_token`. Any status but a redirect is an Answer (304 is one).

        Raises:
            Fault: there is no answer, or it is a redirect.
        """
        if _origin(url) != self._origin:
            raise ValueError("a client speaks to one origin")
        if self._limits.stopped():
            raise Fault("stopped")
        self._limits.begin(self._total, limit + _HEAD_LIMIT)
        fault: Fault
        try:
            answer = self._exchange(
                _request(method, url, _headers(bearer, body, headers or {}), body, self._total), limit
            )
        except Exception as exc:  # noqa: BLE001 - whatever the libraries raise may quote a URL or a header
            fault = Fault("stopped") if self._limits.stopped() else Fault(self._kind(exc))
        else:
            if not 300 <= answer.status < 400 or answer.status == 304:
                return answer
            fault = Fault("redirect", answer.status)
        raise fault

    def _kind(self, exc: Exception) -> Kind:
        kind = kind_of(exc)
        if (
            self._proxied
            and isinstance(exc, httpcore.ConnectError)
            and kind in {"dns", "connection-refused", "unreachable"}
        ):
            # Behind a proxy it is the proxy alone whose name is looked up and to which a connection is made.
            return "proxy"
        return kind

    def _exchange(self, request: httpx.Request, limit: int) -> Answer:
        response = self._http.send(request, stream=True)
        try:
            if response.status_code < 200:
                raise httpcore.RemoteProtocolError("switch of protocols")
            body = bytearray()
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > limit:
                    break
            kept = {name: response.headers[name] for name in _KEPT if name in response.headers}
            return Answer(response.status_code, kept, bytes(body[:limit]), len(body) <= limit)
        finally:
            response.close()

    def abort(self) -> None:
        """End the request under way, from any thread, and refuse any later one with `stopped`."""
        self._limits.stop()

    def close(self) -> None:
        """Close the connections; call it from the thread that sends."""
        self._http.close()


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return (parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))


def _request(method: str, url: str, headers: Mapping[str, str], body: bytes, total: float) -> httpx.Request:
    timeout = httpx.Timeout(total).as_dict()
    return httpx.Request(method, url, headers=headers, content=body or None, extensions={"timeout": timeout})


def _headers(bearer: str, body: bytes, extra: Mapping[str, str]) -> dict[str, str]:
    headers = {
        "User-Agent": _USER_AGENT,
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        **extra,
    }
    if bearer:
        headers["Authorization"] = f"Bearer {bearer}"
    if body:
        headers["Content-Type"] = "application/json"
    return headers


def _proxy_for(host: str, port: int | None) -> str | None:
    """Give the proxy that the environment names for a host, or None. Loopback is never proxied."""
    if is_loopback(host):
        return None
    proxies = getproxies_environment()
    proxy = proxies.get("https") or proxies.get("all")
    if not proxy or _excepted(host.lower(), port, proxies.get("no", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _excepted(host: str, port: int | None, no_proxy: str) -> bool:
    """Tell whether NO_PROXY names a host: `*`, a name and what is below it, an address, or a network."""
    for entry in (part.strip().lower() for part in no_proxy.split(",")):
        name, colon, entry_port = entry.rpartition(":")
        if colon and entry_port.isdecimal() and ":" not in name:
            if int(entry_port) != (port or 443):
                continue
            entry = name  # noqa: PLW2901 - the rest of the loop is about the name
        name = entry.removeprefix("*").removeprefix(".")
        if entry == "*" or (name and (host == name or host.endswith("." + name))):
            return True
        if "/" in entry and _in_network(host, entry):
            return True
    return False


def _in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


def _pool(tls: ssl.SSLContext, backend: Backend) -> httpcore.ConnectionPool:
    return httpcore.ConnectionPool(
        ssl_context=tls, max_connections=1, keepalive_expiry=5.0, network_backend=backend
    )


def _proxy_pool(proxy: str, tls: ssl.SSLContext, backend: Backend) -> httpcore.ConnectionPool:
    wrong = UsageError(
        "the proxy of the environment cannot be used",
        advice="HTTPS_PROXY must be http://HOST:PORT or https://HOST:PORT",
    )
    try:
        parts = urlsplit(proxy)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise wrong from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or not proxy.isascii():
        raise wrong
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    auth = None
    if parts.username is not None:
        auth = (unquote(parts.username).encode(), unquote(parts.password or "").encode())
    return httpcore.HTTPProxy(
        proxy_url=f"{parts.scheme}://{host}:{port}",
        proxy_auth=auth,
        ssl_context=tls,
        proxy_ssl_context=tls if parts.scheme == "https" else None,
        max_connections=1,
        keepalive_expiry=5.0,
        network_backend=backend,
    )


class _Transport(httpx.BaseTransport):
    """Carries httpx's requests over a pool of httpcore's, which alone takes a network backend."""

    def __init__(self, pool: httpcore.ConnectionPool) -> None:
        self._pool = pool

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        response = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response))

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """A body as it arrives; closing it gives the connection back, or ends it when it was not read to its end."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return self._response.iter_stream()

    def close(self) -> None:
        self._response.close()
