# SPDX-License-Identifier: Apache-2.0
"""One request to the authorization server; httpx is loaded when it is sent.

Invariants:

1. https, or http to a loopback host. A GET follows redirects within the origin; a POST, which carries a code or a
   token, follows none.
2. It ends: SECONDS for everything in it, MAX_BYTES of body.
3. What fails is words of ours: no URL, form or text of a library or server is in them, and nothing is logged.
"""

import threading
from ssl import SSLContext
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from halod import __version__
from halod.launch.urls import canonical_url, is_loopback, parse_url
from halod.token.model import Answer

if TYPE_CHECKING:
    import httpx

SECONDS: Final = 30.0
"""Of one request, from the look-up of the name to the last byte."""
MAX_BYTES: Final = 256 * 1024
"""Metadata are some 4 KiB, an answer with two tokens some 10 KiB."""
REDIRECTS: Final = 3
_READ: Final = 10.0
"""Seconds without a byte."""
_MOVED: Final = frozenset({301, 302, 303, 307, 308})


def send(url: str, form: dict[str, str] | None, tls: SSLContext, seconds: float = SECONDS) -> Answer:
    """Ask once: GET without `form`, POST with it. What is no answer has a `fault`; nothing is raised."""
    said: list[Answer] = []
    # A look-up of a name cannot be interrupted: the thread is left behind when its time is over.
    thread = threading.Thread(target=lambda: said.append(_follow(url, form, tls)), daemon=True)
    thread.start()
    thread.join(seconds)
    return said[0] if said else Answer(fault="does not answer in time")


def _follow(url: str, form: dict[str, str] | None, tls: SSLContext) -> Answer:
    current = url
    for _ in range(REDIRECTS + 1):
        answer, location = _ask(current, form, tls)
        if answer.status not in _MOVED:
            return answer
        if form is not None:
            return Answer(fault="redirects what must not be sent elsewhere")
        target = _within(current, location)
        if not target:
            return Answer(fault="redirects to another origin")
        current = target
    return Answer(fault="redirects again and again")


def _within(url: str, location: str) -> str:
    """Give where a redirect leads when that is the same origin, else ""."""
    try:
        here, there = parse_url(url), parse_url(urljoin(url, location))
    except ValueError:
        return ""
    if here is None or there is None or not location:
        return ""
    same = (here.scheme, here.host, here.port) == (there.scheme, there.host, there.port)
    return (canonical_url(there) or "") if same else ""


def _ask(url: str, form: dict[str, str] | None, tls: SSLContext) -> tuple[Answer, str]:
    import httpx

    parts = parse_url(url)
    plain = parts is not None and parts.scheme == "http"
    if parts is None or not (parts.scheme == "https" or (plain and is_loopback(parts.host))):
        return Answer(fault="is not asked without TLS"), ""
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"halo/{__version__}",
    }
    try:
        with (
            httpx.Client(verify=tls, trust_env=not plain, follow_redirects=False, timeout=_READ) as client,
            client.stream("GET" if form is None else "POST", url, headers=headers, data=form) as response,
        ):
            return _read(response), response.headers.get("location", "")
    except httpx.TimeoutException:
        return Answer(fault="does not answer in time"), ""
    except httpx.ConnectError as error:
        return Answer(fault=_connect_fault(error)), ""
    except httpx.ProxyError:
        return Answer(fault="cannot be reached through the proxy"), ""
    except Exception:  # noqa: BLE001 - what the libraries raise may quote the form; their words go no further
        return Answer(fault="does not speak HTTP as expected"), ""


def _connect_fault(error: BaseException) -> str:
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "shows a certificate that this machine does not trust"
        cause = cause.__cause__ or cause.__context__
    return "cannot be reached"


def _read(response: "httpx.Response") -> Answer:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return Answer(fault="answers compressed, which was not asked for")
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > MAX_BYTES:
            return Answer(fault=f"answers with more than {MAX_BYTES // 1024} KiB")
    return Answer(response.status_code, bytes(body))
