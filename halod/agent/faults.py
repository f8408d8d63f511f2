# SPDX-License-Identifier: Apache-2.0
"""Why a request got no answer, in a closed set of words.

The words are what status, log and `halod check` show; `WORDS` has a sentence for each, for a person. Nothing
of a URL, a token or a server's text is in either.
"""

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import Final, Literal

import httpcore

from halod.agent.bounded import NotLoopback, TooMuch

Kind = Literal[
    "dns",
    "connection-refused",
    "unreachable",
    "timeout",
    "closed",
    "tls-unknown-ca",
    "tls-expired",
    "tls-hostname",
    "tls-client-certificate",
    "tls-other",
    "proxy",
    "protocol",
    "redirect",
    "plain-http",
    "stopped",
]

WORDS: Final[dict[Kind, str]] = {
    "dns": "the server's name cannot be resolved",
    "connection-refused": "the server refuses connections",
    "unreachable": "there is no route to the server",
    "timeout": "the server did not answer in time",
    "closed": "the connection was closed before the answer was complete",
    "tls-unknown-ca": "the server's certificate was issued by nobody this machine trusts; see report.ca_file",
    "tls-expired": "the server's certificate has expired or is not valid yet, or this machine's clock is wrong",
    "tls-hostname": "the server's certificate is for another host name",
    "tls-client-certificate": "the server wants a client certificate, or does not accept the one it was shown",
    "tls-other": "no TLS connection could be agreed on",
    "proxy": "the proxy of the environment cannot be reached or does not let the connection through",
    "protocol": "what the server sent is no HTTP answer, or too long",
    "redirect": "the server redirects elsewhere, which is not followed: set the final URL",
    "plain-http": "plain http would have left this machine",
    "stopped": "the service is ending",
}


class Fault(Exception):
    """No answer came. `kind` is why; `status` is the HTTP status where there is one (a redirect), or 0."""

    def __init__(self, kind: Kind, status: int = 0) -> None:
        super().__init__(kind)
        self.kind: Kind = kind
        self.status = status


# OpenSSL's X509_V_ERR_*: not yet valid, expired; host name and address mismatch; every break of the chain.
_EXPIRED: Final = {9, 10}
_HOST: Final = {62, 64}
_CHAIN: Final = {2, 18, 19, 20, 21, 22, 24, 27, 28}
_UNREACHABLE: Final = {
    errno.ENETUNREACH,
    errno.EHOSTUNREACH,
    errno.ENETDOWN,
    errno.EHOSTDOWN,
    errno.EADDRNOTAVAIL,
}
_CAUSES: Final[tuple[tuple[tuple[type[BaseException], ...], Kind], ...]] = (
    ((httpcore.ProxyError,), "proxy"),
    ((NotLoopback,), "plain-http"),
    ((TooMuch,), "protocol"),
    ((socket.gaierror, UnicodeError), "dns"),
    ((TimeoutError,), "timeout"),
    ((ConnectionRefusedError,), "connection-refused"),
    ((ConnectionResetError, ConnectionAbortedError, BrokenPipeError), "closed"),
)
_WANTS_CERTIFICATE: Final = (
    "CERTIFICATE_REQUIRED",
    "ALERT_BAD_CERTIFICATE",
    "ALERT_UNKNOWN_CA",
    "ALERT_CERTIFICATE",
    "ALERT_HANDSHAKE_FAILURE",
)


def kind_of(exc: BaseException) -> Kind:
    """Give the word for an exception of httpcore, ssl or socket, by what caused it."""
    chain = list(_chain(exc))
    for link in chain:
        if (kind := _by_cause(link)) is not None:
            return kind
    for link in chain:
        if (kind := _by_library(link)) is not None:
            return kind
    return "protocol"


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while exc is not None and id(exc) not in seen:
        seen.add(id(exc))
        yield exc
        exc = exc.__cause__ or exc.__context__


def _by_cause(exc: BaseException) -> Kind | None:
    """Judge what is sure by itself: TLS, look-up, the operating system's own words."""
    if isinstance(exc, ssl.SSLError):
        return _by_tls(exc)
    for types, kind in _CAUSES:
        if isinstance(exc, types):
            return kind
    return "unreachable" if isinstance(exc, OSError) and exc.errno in _UNREACHABLE else None


def _by_tls(exc: ssl.SSLError) -> Kind:
    if isinstance(exc, ssl.SSLCertVerificationError):
        if exc.verify_code in _EXPIRED:
            return "tls-expired"
        if exc.verify_code in _HOST:
            return "tls-hostname"
        return "tls-unknown-ca" if exc.verify_code in _CHAIN else "tls-other"
    if isinstance(exc, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "closed"
    reason = exc.reason or ""
    return "tls-client-certificate" if any(word in reason for word in _WANTS_CERTIFICATE) else "tls-other"


def _by_library(exc: BaseException) -> Kind | None:
    """Judge by httpcore's own classes, where nothing below says more."""
    if isinstance(exc, httpcore.TimeoutException):
        return "timeout"
    if isinstance(exc, httpcore.RemoteProtocolError):
        # httpcore has one class for both; an answer that ends early is told from one that is none by its text.
        return "closed" if "disconnected" in str(exc) or "closed connection" in str(exc) else "protocol"
    if isinstance(exc, httpcore.ConnectError):
        return "unreachable"
    if isinstance(exc, httpcore.NetworkError):
        return "closed"
    return None
