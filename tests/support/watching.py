# SPDX-License-Identifier: Apache-2.0
"""Help for tests of watchers: one forked as the supervisor does it, with pipes to hear and to end it."""

import contextlib
import gc
import os
import select
import signal
import time

import msgspec

from halod.harnesses.table import LOCATIONS
from halod.home.home import open_anchor
from halod.roles import order, watcher, watching
from halod.roles.confine import System
from halod.roles.protocol import Target
from halod.roles.watched.frames import Outbox
from halod.roles.watched.interest import tree
from halod.roles.watched.loop import Loop
from tests.support.roles import GID, UID

NAMES = {
    watching.CHANGED: "changed",
    watching.LIMITED: "limited",
    watching.OVERFLOW: "overflow",
    watching.PARTIAL: "partial",
    watching.UNAVAILABLE: "unavailable",
    watching.WATCHING: "watching",
}
PATIENCE = 60.0
"""Seconds until what should come counts as hanging: no measure of speed, the machine may be busy with others."""
PAYLOAD = order.encode(order.Plan())


def number(path):
    """Give the number of the first location with this path."""
    return next(at for at, location in enumerate(LOCATIONS) if location.path == path)


def frames(data):
    """Read what a watcher wrote: (kind in words, location number) of each frame."""
    return [(NAMES[data[at]], int.from_bytes(data[at + 1 : at + 3], "big")) for at in range(0, len(data), 3)]


def target(home, uid=UID):
    """Make the target of a home: as root a throw-away account's, else the caller's own."""
    if os.geteuid() == 0:
        return Target(key=1, uid=uid, gid=GID, groups=(GID,), home=str(home))
    return Target(key=1, uid=os.getuid(), gid=os.getgid(), groups=(), home=str(home))


def roomy():
    """Give the limits of a watcher with this process's address space on top.

    A supervisor has mapped little. A process that has run thousands of tests has mapped more than a watcher may:
    the C library keeps 64 MiB for each thread there was. Its watcher would die of the next allocation.
    """
    try:
        with open("/proc/self/statm") as statm:
            mapped = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        mapped = 0  # not Linux: nothing holds a process to RLIMIT_AS
    return msgspec.structs.replace(watching.LIMITS, memory=watching.LIMITS.memory + mapped)


class Watcher:
    """A real watcher in a child of this process, become one as the supervisor's children do."""

    def __init__(self, home, *, plan=None, load=watcher.load, uid=UID, system=None):
        payload = PAYLOAD if plan is None else order.encode(plan)
        self.heard = []
        self.code = None
        self.frames, write = os.pipe()
        life, self.life = os.pipe()
        supervisor = os.getpid()
        system = system or System()
        gc.freeze()
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                watching.LIMITS = roomy()
                watching.become(system, load, target(home, uid), payload, (write, life, supervisor))
                code = 0
            finally:
                os._exit(code)
        gc.unfreeze()
        os.close(write)
        os.close(life)
        os.set_blocking(self.frames, False)

    def listen(self, seconds):
        """Hear what comes within some seconds, at once when something came; False when nothing will any more."""
        if select.select([self.frames], [], [], seconds)[0]:
            data = os.read(self.frames, 3 * 16384)
            self.heard += frames(data)
            return bool(data)
        return True

    def until(self, kind, location=0, seconds=PATIENCE):
        """Wait for one frame; forget what was heard until then. A watcher that has ended fails at once."""
        end = time.monotonic() + seconds
        while (kind, location) not in self.heard:
            if not self.listen(0.05) and (kind, location) not in self.heard:
                raise AssertionError(f"ended with {self.wait()}, not {kind} {location}, but {self.heard}")
            assert time.monotonic() < end, f"not heard: {kind} {location}, but {self.heard}"
        heard = self.heard[: self.heard.index((kind, location)) + 1]
        del self.heard[: len(heard)]
        return heard

    def wait(self, seconds=PATIENCE):
        """Wait for the end; give the exit code, negative for a signal."""
        end = time.monotonic() + seconds
        while self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            else:
                assert time.monotonic() < end, "the watcher does not end"
                select.select([], [], [], 0.005)
        return self.code

    def hang_up(self):
        """Close the life pipe, as a supervisor that ends a watcher or dies."""
        if self.life >= 0:
            os.close(self.life)
            self.life = -1

    def close(self):
        self.hang_up()
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        os.close(self.frames)


class Driver:
    """A loop in this process that goes by turns and by a clock of its own, on real files.

    Linux queues an event before the call that causes it returns, so nothing here waits for time.
    """

    def __init__(self, home, *, locations=LOCATIONS, **options):
        self.now = 1000.0
        self.waits = []
        self.life_end, self.life = os.pipe()
        self.frames, self.write = os.pipe()
        os.set_blocking(self.frames, False)
        self.loop = Loop(
            lambda: open_anchor(str(home), owned_links=True),
            tree(locations),
            Outbox(self.write),
            self.life_end,
            clock=lambda: self.now,
            wait=self._wait,
            **options,
        )

    def _wait(self, wanted, seconds):
        self.waits.append(seconds)
        poll = select.poll()
        for descriptor, events in wanted.items():
            poll.register(descriptor, events)
        ready = dict(poll.poll(0))
        self.idle = not ready and seconds is None
        return ready

    def begin(self):
        """Look for the first time; give what it says."""
        self.loop.begin()
        return self.settle()

    def turns(self, count=1, step=0.0):
        """Go some turns; the clock advances before each."""
        for _ in range(count):
            self.now += step
            assert self.loop.turn()

    def settle(self):
        """Go on until everything that has happened so far is said; give it, sorted, each frame once."""
        self.turns(6, step=0.5)
        return self.said()

    def said(self):
        """Give what was said since the last time, sorted, each frame once."""
        try:
            return sorted(set(frames(os.read(self.frames, 65536))))
        except BlockingIOError:
            return []

    def close(self):
        for descriptor in (self.life_end, self.life, self.frames, self.write):
            with contextlib.suppress(OSError):
                os.close(descriptor)
