# SPDX-License-Identifier: Apache-2.0
"""Fetch one document over HTTP. The only module of the policy room that touches the network; httpx is loaded late.

Invariants:

1. https, or http to a loopback host. A redirect is followed within the origin only: another host's word is not that of
   the one that was named.
2. It ends: TRIES answers at most, SECONDS for each and everything in it, MAX_BYTES of body.
3. Whatever fails is an ImportRefused in words of ours; no URL beyond its host and no text of a library is in it.
"""

import threading
import time
from collections.abc import Callable
from random import random
from ssl import SSLContext
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

import msgspec

from halod import __version__
from halod.launch.urls import is_loopback, parse_url
from halod.policy.importing.model import ImportRefused
from halod.policy.importing.source import check_url
from halod.policy.importing.strictjson import MAX_BYTES
from halod.retryafter import retry_after

if TYPE_CHECKING:
    import httpx

TRIES: Final = 4
"""Times a request is sent: a server that restarts is back after the third pause."""
SECONDS: Final = 30.0
"""Seconds of one answer, from the look-up of the name to the last byte."""
LONGEST_WAIT: Final = 60.0
"""Seconds that a person is made to wait before a further try; a server that asks for more is left alone."""
REDIRECTS: Final = 5
_FIRST_WAIT: Final = 1.0
_READ: Final = 10.0
"""Seconds without a byte."""


class Answer(msgspec.Struct, frozen=True):
    """What came back: a status and a bounded body; `wait` is the server's Retry-After in seconds, 0 without."""

    status: int = 0
    body: bytes = b""
    location: str = ""
    wait: float = 0.0
    fault: str = ""
    """Why there is no answer: then the rest is empty."""


def fetch(
    url: str,
    tls: SSLContext,
    *,
    wait: Callable[[float], None] = time.sleep,
    say: Callable[[str], None] = lambda _line: None,
) -> bytes:
    """Give the body of a 200 answer. `wait` and `say` are called before a further try.

    Raises:
        ImportRefused: there is no such answer.
    """
    current = check_url(url, "the URL")
    tries = redirects = 0
    while True:
        answer = _bounded(current, tls)
        if answer.location:
            redirects += 1
            if redirects > REDIRECTS:
                raise ImportRefused(f"{_host(current)} redirects again and again")
            current = _next(current, answer.location)
            continue
        if answer.fault:
            raise ImportRefused(f"{_host(current)} {answer.fault}")
        if answer.status != 429 and answer.status < 500:
            return _body(current, answer)
        tries += 1
        what = f"answers HTTP {answer.status}"
        seconds = answer.wait or _FIRST_WAIT * 2.0 ** (tries - 1) * (0.5 + 0.5 * random())  # noqa: S311 - jitter
        if tries >= TRIES:
            raise ImportRefused(f"{_host(current)} {what}, after {tries} tries", advice="try again later")
        if seconds > LONGEST_WAIT:
            raise ImportRefused(f"{_host(current)} {what} and asks to come back in {seconds:.0f} seconds")
        say(f"{_host(current)} {what}; trying again in {seconds:.0f} s")
        wait(seconds)


def _body(url: str, answer: Answer) -> bytes:
    host = _host(url)
    if answer.status == 200:
        return answer.body
    if answer.status in {404, 410}:
        raise ImportRefused(
            f"{host} has no such document (HTTP {answer.status})",
            advice="check name and version; a registry hides what it has deleted",
        )
    if answer.status in {401, 403, 407}:
        raise ImportRefused(
            f"{host} wants a login (HTTP {answer.status})", advice="save the document and import the file"
        )
    raise ImportRefused(f"{host} gives no document (HTTP {answer.status})")


def _host(url: str) -> str:
    parts = parse_url(url)
    if parts is None:
        return "the server"
    return parts.host if parts.port is None else f"{parts.host}:{parts.port}"


def _next(url: str, location: str) -> str:
    """Give where a redirect leads, within the origin of `url`."""
    try:
        target = check_url(urljoin(url, location), "a redirect's target")
    except ValueError:
        raise ImportRefused(f"{_host(url)} redirects to a URL that cannot be read") from None
    here, there = parse_url(url), parse_url(target)
    if here is None or there is None:
        raise ImportRefused(f"{_host(url)} redirects to a URL that cannot be read")
    if (here.scheme, here.host, here.port) != (there.scheme, there.host, there.port):
        raise ImportRefused(
            f"{_host(url)} redirects to another origin, {_host(target)}",
            advice="name that one if you trust it",
        )
    return target


def _bounded(url: str, tls: SSLContext) -> Answer:
    """Ask once, in a thread that is left behind when its time is over: a look-up of a name cannot be interrupted."""
    said: list[Answer] = []
    thread = threading.Thread(target=lambda: said.append(_ask(url, tls)), daemon=True)
    thread.start()
    thread.join(SECONDS)
    return said[0] if said else Answer(fault="does not answer in time")


def _ask(url: str, tls: SSLContext) -> Answer:
    import httpx

    parts = parse_url(url)
    plain = parts is not None and parts.scheme == "http" and is_loopback(parts.host)
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"halo/{__version__}",
    }
    try:
        with (
            httpx.Client(verify=tls, trust_env=not plain, follow_redirects=False, timeout=_READ) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            return _read(url, response)
    except httpx.TimeoutException:
        return Answer(fault="does not answer in time")
    except httpx.ConnectError as error:
        return Answer(fault=_connect_fault(error))
    except httpx.ProxyError:
        return Answer(fault="cannot be reached through the proxy")
    except Exception:  # noqa: BLE001 - whatever the libraries raise may quote the URL; their words go no further
        return Answer(fault="does not speak HTTP as expected")


def _connect_fault(error: BaseException) -> str:
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "shows a certificate that this machine does not trust"
        cause = cause.__cause__ or cause.__context__
    return "cannot be reached"


def _read(url: str, response: "httpx.Response") -> Answer:
    status = response.status_code
    if status in {301, 302, 303, 307, 308}:
        location = response.headers.get("location", "")
        return Answer(status, location=location or url) if location else Answer(status)
    if status != 200:
        headers = response.headers
        wait = retry_after(headers.get("retry-after", ""), date=headers.get("date", ""), now=time.time())
        return Answer(status, wait=wait)
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return Answer(fault="answers compressed, which was not asked for")
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > MAX_BYTES:
            break
    return Answer(status, bytes(body))
