# SPDX-License-Identifier: Apache-2.0
"""Tells systemd that the console is ready, lives, and ends (sd_notify(3)); without NOTIFY_SOCKET it does nothing.

The watchdog is fed only while every part of the console runs (`Metrics.dead`): a thread that has died is mended by a
restart and by nothing else.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Mapping
from typing import Final

from halod.console.metrics import Metrics

_MOST: Final = 60.0
_JOIN: Final = 5.0


class Notifier:
    """A part of the application; the last that is started, and the first that ends."""

    def __init__(self, metrics: Metrics, environment: Mapping[str, str] = os.environ) -> None:
        self._metrics = metrics
        self._address = environment.get("NOTIFY_SOCKET", "")
        usec = environment.get("WATCHDOG_USEC", "")
        mine = environment.get("WATCHDOG_PID", "") in {"", str(os.getpid())}
        # A third of the time: one datagram that is late or lost ends nothing.
        self._every = min(int(usec) / 3e6, _MOST) if mine and usec.isascii() and usec.isdecimal() else 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Say that the console is ready, and begin to feed the watchdog if there is one."""
        self._say("READY=1")
        if self._address and self._every:
            self._thread = threading.Thread(target=self._feed, name="watchdog", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Say that the console ends."""
        self._say("STOPPING=1")
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_JOIN)

    def _feed(self) -> None:
        while not self._stop.wait(self._every):
            if not self._metrics.dead():
                self._say("WATCHDOG=1")

    def _say(self, state: str) -> None:
        if not self._address.startswith(("/", "@")):
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            to.settimeout(0)  # a manager that does not read loses words
            to.connect(self._address.replace("@", "\0", 1) if self._address[0] == "@" else self._address)
            to.send(state.encode())
