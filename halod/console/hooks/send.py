# SPDX-License-Identifier: Apache-2.0
"""Sends one webhook: the request, how long it may take, and what came of it.

Invariants:

1. A request ends: TOTAL seconds for everything, from the look-up of the name to the last byte of the answer's head.
2. No redirect is followed, no cookie kept, no credential sent but the signature. Of an answer the status and
   `Retry-After` are read; its body is not.
3. What fails is a word of a closed set. No text of a server or library gets further than this module.
"""

import asyncio
import socket
import ssl
from typing import Final
from urllib.parse import urlsplit

import httpx
import msgspec

from halod import __version__
from halod.console.hooks import target as targets
from halod.console.hooks.target import Target
from halod.retryafter import retry_after

TOTAL: Final = 20.0
"""Seconds that a receiver has: Standard Webhooks recommends 15 to 30."""
GONE: Final = "gone"
"""The receiver wants no more (410)."""
_USER_AGENT: Final = f"halo-server/{__version__}"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an attempt: `error` is "" when it was taken. `wait` is what the receiver asked for, in seconds."""

    error: str = ""
    wait: float = 0.0


def client(target: Target) -> httpx.AsyncClient:
    """Give a client for the requests of one round to one receiver. Raises UsageError (`target.tls`)."""
    host = urlsplit(target.hook.url).hostname or ""
    return httpx.AsyncClient(
        verify=targets.tls(target.hook),
        follow_redirects=False,
        timeout=TOTAL,
        # A proxy of the environment is used as everywhere else; this machine itself is never asked for by one.
        trust_env=not targets.is_loopback(host),
        limits=httpx.Limits(max_connections=1, max_keepalive_connections=0),
    )


async def send(
    http: httpx.AsyncClient, target: Target, identity: str, body: bytes, *, now: int, total: float = TOTAL
) -> Outcome:
    """Send a webhook once. `identity` and `body` are the same at each attempt, the timestamp is not."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": _USER_AGENT,
        "Accept-Encoding": "identity",
        "Connection": "close",
        "webhook-id": identity,
        "webhook-timestamp": str(now),
        "webhook-signature": targets.sign(target.secrets, identity, now, body),
    }
    try:
        async with (
            asyncio.timeout(total),
            http.stream("POST", target.hook.url, content=body, headers=headers) as answer,
        ):
            return _outcome(answer, now)
    except TimeoutError:
        return Outcome(error="timed-out")
    except Exception as error:  # noqa: BLE001 - whatever the libraries raise may quote an address or a header
        return Outcome(error=_word(error))


def _outcome(answer: httpx.Response, now: int) -> Outcome:
    status = answer.status_code
    if 200 <= status < 300:
        return Outcome()
    if status == 410:
        return Outcome(error=GONE)
    wait = retry_after(answer.headers.get("retry-after", ""), date=answer.headers.get("date", ""), now=now)
    return Outcome(error="redirect" if 300 <= status < 400 else f"status-{status}", wait=wait)


def _word(error: BaseException) -> str:
    """Name what went wrong by the kinds of exceptions alone."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    kinds = (
        (ssl.SSLError, "tls"),
        (socket.gaierror, "no-such-host"),
        (ConnectionRefusedError, "refused"),
        ((TimeoutError, httpx.TimeoutException), "timed-out"),
        (httpx.ProxyError, "proxy"),
        (httpx.ConnectError, "unreachable"),
        (httpx.ProtocolError, "garbled"),
        (httpx.NetworkError, "cut-off"),
    )
    for kind, word in kinds:
        if any(isinstance(one, kind) for one in chain):
            return word
    return "failed"
