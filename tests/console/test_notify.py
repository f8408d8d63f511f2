# SPDX-License-Identifier: Apache-2.0
"""The console's word to systemd."""

import contextlib
import os
import socket
import threading
import time

import pytest

from halod.console.metrics import Metrics
from halod.console.notify import Notifier


@pytest.fixture
def systemd(tmp_path):
    """A socket as systemd gives it."""
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind(path)
        found.settimeout(30)
        yield found, path


def test_it_says_when_it_is_ready_and_when_it_ends(systemd):
    found, path = systemd
    notifier = Notifier(Metrics(), {"NOTIFY_SOCKET": path})
    notifier.start()
    notifier.stop()
    assert [found.recv(100), found.recv(100)] == [b"READY=1", b"STOPPING=1"]


def test_the_watchdog_is_fed_while_everything_runs(systemd):
    """And starves when a part has died."""
    found, path = systemd
    metrics, alive = Metrics(), threading.Event()
    alive.set()
    metrics.watch("writer", alive.is_set)
    environment = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "30000", "WATCHDOG_PID": str(os.getpid())}
    notifier = Notifier(metrics, environment)
    notifier.start()
    assert [found.recv(100) for _ in range(4)] == [b"READY=1"] + 3 * [b"WATCHDOG=1"]
    alive.clear()
    found.settimeout(0.5)
    deadline = time.monotonic() + 30
    with contextlib.suppress(TimeoutError):
        while time.monotonic() < deadline:
            found.recv(100)
    assert time.monotonic() < deadline
    notifier.stop()


def test_an_abstract_address_is_one(tmp_path):
    name = f"halod-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind(f"\0{name}")
        found.settimeout(30)
        Notifier(Metrics(), {"NOTIFY_SOCKET": f"@{name}"}).start()
        assert found.recv(100) == b"READY=1"


@pytest.mark.parametrize(
    "environment",
    [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/at/all"}, {"NOTIFY_SOCKET": "vsock:2:1"},
     {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "often"},
     {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}],
)  # fmt: skip
def test_without_systemd_nothing_happens(environment):
    notifier = Notifier(Metrics(), environment)
    notifier.start()
    notifier.stop()
    assert notifier._thread is None
