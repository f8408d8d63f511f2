# SPDX-License-Identifier: Apache-2.0
"""The work of a watcher: one account's files, watched by a forked child that has only the account's rights.

`halod.roles.watching` forks it and gives its rights away by the steps of a worker; `load` is called before
that, `main` after. Invariants:

1. It opens no file of the home, only directories, and holds none of them while it waits, so that a home can
   be unmounted. One that is gone is said, and ends it.
2. It says kinds and locations' numbers (`watched.frames`) and nothing else; it logs nothing.
3. It ends with the supervisor: by PR_SET_PDEATHSIG, and by the hang-up of its life pipe.
4. It has one thread, so the worker's system call filter, which is in force before `main`, fits it. The limits
   are a worker's but for time: it lives as long as the service, and `watched.loop` bounds what it takes of a
   processor.
5. watchdog is loaded by `load` alone: no other process of halod has it.
"""

import contextlib
import sys
from collections.abc import Callable

from halod.harnesses.table import LOCATIONS
from halod.home.home import open_anchor
from halod.roles import order
from halod.roles.protocol import Target
from halod.roles.watched.frames import Outbox
from halod.roles.watched.interest import tree
from halod.roles.watched.loop import HomeGone, Loop, Source
from halod.roles.watching import UNAVAILABLE, Main

Sources = Callable[[], tuple[Source | None, bool]]
"""Make what tells of events, after the change of uid; None where files must be polled. The second value says
that it is so because a limit is exhausted."""


def load(platform: str = sys.platform) -> Main:
    """Import and prepare what watching needs, before the rights are gone, and give what then watches."""
    events = load_events(platform)
    return lambda target, payload, frames, life: watch(target, payload, events, (frames, life))


def load_events(platform: str = sys.platform) -> Sources:
    """Load what tells of events on this system: inotify on Linux; elsewhere nothing does (design 3)."""
    if platform != "linux":
        return lambda: (None, False)
    try:
        from halod.roles.watched.inotify import Exhausted, Inotify
    except Exception:  # noqa: BLE001 - a C library without inotify, a watchdog of another form: poll instead
        return lambda: (None, False)

    def make() -> tuple[Source | None, bool]:
        try:
            return Inotify(), False
        except Exhausted:
            return None, True
        except OSError:
            return None, False

    return make


def watch(target: Target, payload: bytes, events: Sources, pipes: tuple[int, int]) -> None:
    """Watch a home as the Plan in `payload` says, until the supervisor hangs up or the home is gone.

    `pipes` are the one to write frames to and the one that hangs up. The supervisor starts another watcher
    for a home that is gone, and another, as long as it is.
    """
    plan = order.decode(payload)
    source, limited = events()
    out = Outbox(pipes[0])
    loop = Loop(
        lambda: open_anchor(target.home, owned_links=True),
        tree((*LOCATIONS, *plan.extra)),
        out,
        pipes[1],
        source=source,
        follow="~" in plan.link_roots,
        limited=limited,
    )
    try:
        loop.run()
    except HomeGone:
        out.put(UNAVAILABLE)
        with contextlib.suppress(BrokenPipeError):
            out.flush()
