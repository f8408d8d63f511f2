# SPDX-License-Identifier: Apache-2.0
"""A watcher's entry point: what it loads, what it limits, and how it ends."""

import os
import resource
import subprocess
import sys

import msgspec
import pytest

from halod.harnesses.table import LOCATIONS, extra_location
from halod.roles import order, watcher, watching
from halod.roles.limits import Limits
from tests.support.roles import in_child
from tests.support.watching import PAYLOAD, frames, target

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def modules(code):
    """Give the modules that a fresh interpreter has loaded after some code."""
    end = "\nimport sys; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", code + end], check=True, capture_output=True, text=True
        ).stdout.split()
    )


def test_no_other_process_loads_watchdog():
    """Neither the supervisor, which knows the entry point, nor a worker, which it forks."""
    loaded = modules(
        "import halod.roles.service, halod.roles.watcher, halod.roles.watching, halod.roles.scan"
    )
    assert {"halod.roles.service", "halod.roles.watched.loop"} <= loaded
    assert not {"watchdog", "psutil", "httpx", "structlog", "logging", "asyncio"} & loaded


@linux
def test_the_watcher_loads_watchdog_before_its_rights_are_gone():
    loaded = modules("import halod.roles.watcher\nhalod.roles.watcher.load()")
    assert "watchdog.observers.inotify_c" in loaded
    assert not {"psutil", "httpx", "structlog", "asyncio"} & loaded


@linux
def test_watchdog_logs_nothing():
    import logging

    watcher.load_events()
    assert not logging.getLogger("watchdog.observers.inotify_c").isEnabledFor(logging.CRITICAL)


def test_elsewhere_files_are_looked_at():
    assert watcher.load_events("darwin")() == (None, False)
    assert callable(watcher.load("darwin"))


@linux
def test_events_are_linuxs():
    source, limited = watcher.load_events()()
    assert source is not None
    assert not limited
    source.close()


@linux
@pytest.mark.parametrize(("fault", "limited"), [("Exhausted", True), ("OSError", False)])
def test_without_events_files_are_looked_at(monkeypatch, fault, limited):
    from halod.roles.watched import inotify

    def refuse():
        raise inotify.Exhausted if fault == "Exhausted" else OSError(38, "inotify_init")

    monkeypatch.setattr(inotify, "Inotify", refuse)
    assert watcher.load_events()() == (None, limited)


def test_a_watchdog_of_another_form_is_no_end(monkeypatch):
    monkeypatch.setitem(sys.modules, "halod.roles.watched.inotify", None)
    assert watcher.load_events("linux")() == (None, False)


def test_time_is_not_limited_but_everything_else_is():
    def attempt():
        before = resource.getrlimit(resource.RLIMIT_CPU)
        watching.limit(Limits(descriptors=100))
        return (
            resource.getrlimit(resource.RLIMIT_CPU) == before,
            resource.getrlimit(resource.RLIMIT_NOFILE),
            resource.getrlimit(resource.RLIMIT_FSIZE),
            resource.getrlimit(resource.RLIMIT_NPROC),
        )

    assert in_child(attempt) == (True, (100, 100), (0, 0), (0, 0))


@pytest.fixture
def home(tmp_path):
    made = tmp_path / "home"
    made.mkdir()
    return made


@pytest.fixture
def pipes():
    read, write = os.pipe()
    life, hold = os.pipe()
    os.set_blocking(read, False)
    yield read, write, life, hold
    for descriptor in (read, write, life, hold):
        try:
            os.close(descriptor)
        except OSError:
            continue


def test_a_watch_ends_with_its_supervisor(home, pipes):
    read, write, life, hold = pipes
    os.close(hold)
    watcher.watch(target(home), PAYLOAD, lambda: (None, True), (write, life))
    assert frames(os.read(read, 100)) == [("limited", 0), ("watching", 0)]


def test_a_watch_ends_with_its_home(home, pipes):
    """It says that the home is not there, so that its end is no loss."""
    read, write, life, _ = pipes
    watcher.watch(target(home / "none"), PAYLOAD, lambda: (None, False), (write, life))
    assert frames(os.read(read, 100)) == [("unavailable", 0)]


def test_an_order_that_is_none_is_refused(home, pipes):
    _, write, life, _ = pipes
    with pytest.raises(msgspec.MsgspecError):
        watcher.watch(target(home), b"", lambda: (None, False), (write, life))


def test_locations_of_the_settings_are_watched(home, pipes, monkeypatch):
    plan = order.Plan(extra=(extra_location("cursor", "~/work/mcp.json"),), link_roots=("~",))
    seen = {}

    class Noted(watcher.Loop):
        def __init__(self, home, tree, *arguments, **options):
            seen.update(options, tree=tree)
            super().__init__(home, tree, *arguments, **options)

    monkeypatch.setattr(watcher, "Loop", Noted)
    _, write, life, hold = pipes
    os.close(hold)
    watcher.watch(target(home), order.encode(plan), lambda: (None, False), (write, life))
    assert seen["follow"] is True
    assert seen["tree"].exact["work"].exact["mcp.json"].ends == {len(LOCATIONS)}
