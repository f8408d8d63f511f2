# SPDX-License-Identifier: Apache-2.0
"""What the service manager is told (sd_notify(3)): one datagram for each word, to a path or abstract socket.

Without NOTIFY_SOCKET every call does nothing. Nothing is waited for: a manager that does not read loses words.
"""

import contextlib
import os
import socket
import time
from collections.abc import MutableMapping
from typing import Final

_LONGEST: Final = 512


class Notifier:
    """Speaks to the service manager that started this process."""

    def __init__(self, environment: MutableMapping[str, str] | None = None) -> None:
        """Take the address out of the environment, so that nobody who is forked from here has it."""
        values = os.environ if environment is None else environment
        self._address = values.pop("NOTIFY_SOCKET", "")
        self.watchdog = _watchdog(values)
        """Seconds within which the manager wants a sign of life; 0: it does not."""

    def ready(self) -> None:
        """The service works, be it for the first time or after a reload."""
        self._send("READY=1")

    def alive(self) -> None:
        """The agent's loop turns."""
        if self.watchdog:
            self._send("WATCHDOG=1")

    def words(self, text: str) -> None:
        """Show one line to people."""
        line = "".join(char if char.isprintable() else " " for char in text)
        self._send(f"STATUS={line[:_LONGEST]}")

    def stopping(self) -> None:
        """The service ends."""
        self._send("STOPPING=1")

    def reloading(self) -> None:
        """Settings are read again; MONOTONIC_USEC is CLOCK_MONOTONIC in microseconds (sd_notify(3))."""
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={now}")

    def _send(self, text: str) -> None:
        address = self._address
        if not address.startswith(("/", "@")):
            return
        if address.startswith("@"):
            address = "\0" + address[1:]
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.settimeout(0)
            sock.sendto(text.encode("utf-8", "replace"), address)


def _watchdog(values: MutableMapping[str, str]) -> float:
    """Read WATCHDOG_USEC, when it is meant for this process (sd_watchdog_enabled(3))."""
    text, pid = values.get("WATCHDOG_USEC", ""), values.get("WATCHDOG_PID", "")
    if pid and pid != str(os.getpid()):
        return 0.0
    return int(text) / 1e6 if text.isascii() and text.isdecimal() and len(text) < 16 else 0.0
