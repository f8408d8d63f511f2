# SPDX-License-Identifier: Apache-2.0
"""How long tests wait, and where files lie that a slow disk must not hold up.

A machine that runs tests may stand still for half a minute: others use its processors, its disk waits for a journal.
So no test takes a duration for a fact. What must come is waited for, up to HANG; what must not wait is held against
something that lasts far longer than HANG. Lower bounds are measured from before the cause, never from its arrival.
"""

import os
import tempfile
import time

HANG = 120.0
"""Seconds until what should come counts as hanging. It ends a test that would never end; it measures nothing."""
LONG = 4 * HANG
"""Seconds of what a test must not wait for: an end within HANG shows that it was not waited for."""
SHARED_MEMORY = "/dev/shm"
ROOM = 32 * 1024 * 1024
"""Free bytes below which it is not used: containers often have 64 MiB, and several workers share them."""


def memory_directory(place=SHARED_MEMORY, mounts="/proc/self/mounts"):
    """Give a writable file system in memory, or the directory for temporary files where there is none."""
    try:
        with open(mounts, encoding="utf-8") as file:
            in_memory = any(line.split()[1:3] == [place, "tmpfs"] for line in file)
        room = os.statvfs(place)
    except OSError:
        return tempfile.gettempdir()
    usable = in_memory and os.access(place, os.W_OK | os.X_OK) and room.f_bavail * room.f_frsize >= ROOM
    return place if usable else tempfile.gettempdir()


def until(condition, what="it", step=0.005):
    """Poll until a condition holds; fail after HANG, with `what` in words or from a function."""
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end, f"did not come true: {what() if callable(what) else what}"
        time.sleep(step)
