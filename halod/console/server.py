# SPDX-License-Identifier: Apache-2.0
"""The HTTP server: uvicorn with limits that it does not have by itself.

A client that sends slowly or without end costs one connection for a bounded time and bounded memory:

* the head of a request has to be there within HEAD_SECONDS and in HEAD_BYTES and HEAD_FIELDS;
* bodies are bounded by the gate (the route's limit, `front.BODY_SECONDS`);
* CONNECTIONS at the same time; one that waits for a next request is closed after KEEP_ALIVE seconds.
"""

import contextlib
import errno
import gc
import os
import resource
import socket
import ssl
import sys
from asyncio import TimerHandle, Transport
from collections.abc import Iterator
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from halod.console.settings import Settings, split_listen
from halod.errors import EnvironmentFault, UsageError

SWITCH: Final = 0.0005
"""Seconds that a thread computes before another one may: the writer comes back from the database many times a group,
and with Python's own 5 ms would wait for the event loop each time."""
HEAD_SECONDS: Final = 10
HEAD_BYTES: Final = 32 * 1024
HEAD_FIELDS: Final = 100
FRAMING_BYTES: Final = 1024 * 1024
"""Of one request, beside its body: what chunks and trailers may cost."""
KEEP_ALIVE: Final = 10
PROXY_KEEP_ALIVE: Final = 75
"""Behind a proxy: longer than a load balancer's usual 60 s, so that it, not we, closes an idle connection."""
CONNECTIONS: Final = 2048
SPARE_FILES: Final = 128
"""Descriptors for the database, files and webhooks."""
BACKLOG: Final = 1024
GRACE: Final = 10
"""Seconds that running requests have after SIGTERM."""


class Bounded(HttpToolsProtocol):
    """uvicorn's protocol; a head that is too long, too large or too slow ends the connection."""

    _timer: TimerHandle | None = None
    _bytes = 0
    _fields = 0
    _overhead = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin to wait for the head of a request on a connection that was kept."""
        super().on_message_begin()
        self._bytes = self._fields = 0
        if self._timer is None:
            self._wait()

    def on_url(self, url: bytes) -> None:
        """Count."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count."""
        self._fields += 1
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop waiting: the head is there."""
        self._stop()
        super().on_headers_complete()

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > HEAD_BYTES or self._fields > HEAD_FIELDS:
            raise ValueError("the head of the request is too large")  # the parser makes it a 400

    def _wait(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        self.transport.abort()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def data_received(self, data: bytes) -> None:
        """Count what is no body: heads, the framing of chunks, trailers."""
        self._overhead += len(data)
        super().data_received(data)
        most = HEAD_BYTES if self._timer is not None else FRAMING_BYTES
        if self._overhead > most:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        """Leave out of the count what the gate counts."""
        self._overhead -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Begin to count anew."""
        self._overhead = 0
        super().on_message_complete()


class _Server(uvicorn.Server):
    """uvicorn's server; a signal that ended it is not raised again, so that what it left is closed in order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM."""
        with super().capture_signals():
            try:
                yield
            finally:
                self._captured_signals.clear()


def bind(listen: str) -> socket.socket:
    """Open the socket to listen on; port 0 takes a free one.

    Raises:
        EnvironmentFault: the address is taken, is not this machine's, or is not permitted.
    """
    host, port = split_listen(listen)
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if bound.family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        why = os.strerror(error.errno or errno.EIO)
        raise EnvironmentFault(
            f"cannot listen on {listen}: {why}", advice="choose another --listen"
        ) from None
    bound.set_inheritable(False)
    return bound


def make(app: ASGIApp, settings: Settings) -> uvicorn.Server:
    """Make the server; its `run([socket])` serves until SIGINT, SIGTERM or `should_exit`."""
    config = uvicorn.Config(
        app,
        http=Bounded,
        loop="uvloop",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_connections(),
        backlog=BACKLOG,
        timeout_keep_alive=PROXY_KEEP_ALIVE if settings.proxies else KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )
    if settings.tls_cert:
        config.load()
        config.ssl = tls_context(settings)
    return _Server(config)


def run(app: ASGIApp, settings: Settings, bound: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; running requests then have GRACE seconds.

    Raises:
        EnvironmentFault: the application did not start; its log says why.
    """
    sys.setswitchinterval(SWITCH)
    gc.freeze()  # what is loaded stays: no collection has to look at it
    try:
        make(app, settings).run([bound])
    except SystemExit:
        raise EnvironmentFault("the console did not start") from None


def tls_context(settings: Settings) -> ssl.SSLContext:
    """Load certificate and key: TLS 1.2 or later.

    Raises:
        UsageError: they cannot be read, do not belong together, or the key has a passphrase.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2

    def refuse() -> str:
        raise UsageError("tls_key has a passphrase, which nobody is there to type")

    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key or None, refuse)
    except (OSError, ssl.SSLError) as error:
        why = (
            os.strerror(error.errno) if error.errno and not isinstance(error, ssl.SSLError) else "no PEM pair"
        )
        raise UsageError(f"tls_cert and tls_key cannot be used: {why}") from None
    return context


def _connections() -> int:
    """Allow this process its descriptors, and give how many connections they carry."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(16, min(CONNECTIONS, soft - SPARE_FILES))
