# SPDX-License-Identifier: Apache-2.0
"""Help for tests of watchers: one forked as the supervisor does it, with pipes to hear and to end it."""

import gc
import os
import select
import signal
import time

from halod.harnesses.table import LOCATIONS
from halod.roles import watcher
from halod.roles.watched.frames import Reader
from halod.roles.worker import Job
from tests.support.roles import GID, UID


def number(path):
    """Give the number of the first location with this path."""
    return next(at for at, location in enumerate(LOCATIONS) if location.path == path)


class Watcher:
    """A real watcher in a child of this process. As root it runs as a throw-away account."""

    def __init__(self, home, *, uid=None, system=None, **job):
        uid = uid if uid is not None else (UID if os.geteuid() == 0 else os.getuid())
        gid = GID if os.geteuid() == 0 else os.getgid()
        self.job = Job(uid=uid, gid=gid, home=home, **job)
        self.heard = []
        self._reader = Reader()
        self.frames, frames_end = os.pipe()
        life_end, self.life = os.pipe()
        start = watcher.Start(
            system=system or watcher.System(), frames=frames_end, life=life_end, supervisor=os.getpid()
        )
        gc.freeze()
        self.pid = os.fork()
        if self.pid == 0:
            watcher.main(self.job, start)
        gc.unfreeze()
        os.close(frames_end)
        os.close(life_end)
        os.set_blocking(self.frames, False)
        self.code = None

    def listen(self, seconds):
        """Hear what comes within some seconds; at once when something came."""
        if select.select([self.frames], [], [], seconds)[0]:
            self.heard += self._reader.feed(os.read(self.frames, 65536))

    def until(self, kind, location=0, seconds=10.0):
        """Wait for one frame; forget what was heard until then."""
        end = time.monotonic() + seconds
        while (kind, location) not in self.heard:
            assert time.monotonic() < end, f"not heard: {kind} {location}, but {self.heard}"
            self.listen(0.05)
        heard = self.heard[: self.heard.index((kind, location)) + 1]
        del self.heard[: len(heard)]
        return heard

    def hear_all(self, marker):
        """Give every frame until all events so far were taken: `marker()` makes one that is heard last."""
        location = marker()
        return self.until("changed", location)

    def wait(self, seconds=10.0):
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
