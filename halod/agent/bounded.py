# SPDX-License-Identifier: Apache-2.0
"""Connections that cannot hold anyone: a deadline for a whole request, a budget of bytes, a way to break off.

httpx and httpcore time out each read and each write for itself, so that a server that sends one byte now and
then holds its client for ever. This network backend of httpcore gives every call what is left of the
request's time, counts what arrives, and lets another thread end a request that hangs in any of its phases.

* A name is looked up and a connection made in a thread of its own, which is left behind when time is up: a
  resolver cannot be interrupted. It closes what it still gets.
* To break off, a duplicate of the socket is shut down: it lives as long as the connection, whatever TLS wraps
  around the original, and shutting it down wakes up whoever waits for the original.
"""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any

import httpcore

Clock = Callable[[], float]

_SLICE = 16 * 1024
"""Bytes that are written before the time is looked at again: one TLS record."""


class NotLoopback(Exception):
    """The connection would leave the machine without TLS."""


class TooMuch(Exception):
    """The other side sent more than the request's budget."""


class Limits:
    """What the request under way may still take, and the sockets it holds. One request at a time."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._deadline = 0.0
        self._budget = 0
        self._changed = threading.Condition()
        self._handles: set[socket.socket] = set()
        self._stopped = False

    def stopped(self) -> bool:
        """Tell whether `stop` was called."""
        return self._stopped

    def begin(self, seconds: float, budget: int) -> None:
        """Start a request: it has `seconds` for everything and may receive `budget` bytes."""
        self._deadline = self._clock() + seconds
        self._budget = budget

    def left(self, timeout: float | None, late: type[Exception]) -> float:
        """Give the seconds a call may take: `timeout`, or what is left. Raises `late` when nothing is."""
        seconds = self._deadline - self._clock()
        if seconds <= 0:
            raise late("deadline")
        return seconds if timeout is None else min(seconds, timeout)

    def took(self, count: int) -> None:
        """Count bytes that arrived. Raises TooMuch beyond the budget."""
        self._budget -= count
        if self._budget < 0:
            raise TooMuch("budget")

    def stop(self) -> None:
        """Break off from another thread, and for ever: every call under way fails, and so does any later one."""
        with self._changed:
            self._stopped = True
            for handle in self._handles:
                _shut(handle)
            self._changed.notify_all()

    def hold(self, handle: socket.socket) -> None:
        """Know a connection, so that it can be broken off."""
        with self._changed:
            self._handles.add(handle)
            if self._stopped:
                _shut(handle)

    def release(self, handle: socket.socket) -> None:
        """Forget a connection that is closed."""
        with self._changed:
            self._handles.discard(handle)
            handle.close()

    def notify(self) -> None:
        """Wake up `wait`."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until `done` or `stop`, at most `seconds`; tell whether it is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or done(), seconds)
            return done() and not self._stopped


def _shut(handle: socket.socket) -> None:
    with contextlib.suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)


class _Dial:
    """One connection in the making, in a thread of its own."""

    def __init__(self, limits: Limits, host: str, port: int, seconds: float) -> None:
        self._limits = limits
        self._target = (host, port, seconds)
        self._lock = threading.Lock()
        self._given_up = False
        self.done = False
        self.stream: httpcore.NetworkStream | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        host, port, seconds = self._target
        stream: httpcore.NetworkStream | None = None
        error: Exception | None = None
        try:
            stream = httpcore.SyncBackend().connect_tcp(host, port, timeout=seconds)
        except (OSError, httpcore.NetworkError, httpcore.TimeoutException, UnicodeError) as exc:
            error = exc
        with self._lock:
            if self._given_up:
                if stream is not None:
                    stream.close()
                return
            self.stream, self.error, self.done = stream, error, True
        self._limits.notify()

    def give_up(self) -> None:
        """Leave the thread behind; whatever it gets it closes itself."""
        with self._lock:
            self._given_up = True
            if self.stream is not None:
                self.stream.close()


class Backend(httpcore.NetworkBackend):
    """Makes bounded connections. With `loopback_only` none that leaves this machine."""

    def __init__(self, limits: Limits, *, loopback_only: bool = False) -> None:
        self._limits = limits
        self._loopback_only = loopback_only

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - the interface is httpcore's
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the interface is httpcore's
    ) -> httpcore.NetworkStream:
        """Connect within what is left of the request's time.

        Raises:
            httpcore.ConnectError: refused, unreachable, unknown name, or broken off.
            httpcore.ConnectTimeout: time is up.
            NotLoopback: plain http was about to leave the machine.
        """
        seconds = self._limits.left(timeout, httpcore.ConnectTimeout)
        dial = _Dial(self._limits, host, port, seconds)
        threading.Thread(target=dial.run, name="halod-dial", daemon=True).start()
        if not self._limits.wait(lambda: dial.done, seconds):
            dial.give_up()
            raise (httpcore.ConnectError if self._limits.stopped() else httpcore.ConnectTimeout)(
                "not connected"
            )
        if dial.stream is None:
            raise dial.error or httpcore.ConnectError("not connected")
        if self._loopback_only and not _is_loopback(dial.stream):
            dial.stream.close()
            raise NotLoopback("plain http")
        raw: socket.socket = dial.stream.get_extra_info("socket")
        handle = raw.dup()
        self._limits.hold(handle)
        return _Stream(dial.stream, self._limits, handle)


def _is_loopback(stream: httpcore.NetworkStream) -> bool:
    return ip_address(stream.get_extra_info("server_addr")[0].partition("%")[0]).is_loopback


class _Stream(httpcore.NetworkStream):
    """A connection whose every call gets what is left of the request's time."""

    def __init__(self, inner: httpcore.NetworkStream, limits: Limits, handle: socket.socket) -> None:
        self._inner = inner
        self._limits = limits
        self._handle = handle

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._inner.read(max_bytes, self._limits.left(timeout, httpcore.ReadTimeout))
        self._limits.took(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _SLICE):
            seconds = self._limits.left(timeout, httpcore.WriteTimeout)
            self._inner.write(buffer[start : start + _SLICE], seconds)

    def close(self) -> None:
        self._inner.close()
        self._limits.release(self._handle)

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            seconds = self._limits.left(timeout, httpcore.ConnectTimeout)
            inner = self._inner.start_tls(ssl_context, server_hostname, seconds)
        except BaseException:
            self.close()
            raise
        return _Stream(inner, self._limits, self._handle)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - the interface is httpcore's
        return self._inner.get_extra_info(info)
