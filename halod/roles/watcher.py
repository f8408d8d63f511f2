# SPDX-License-Identifier: Apache-2.0
"""The life of a watcher: one account's files, watched by a forked child that has only the account's rights.

Like a worker (`halod.roles.worker`), and by the same steps: it never execs, reads beneath the home only, has
no network and writes nothing but its pipe. What differs: it lives as long as the service, so nothing limits
its time; and it loads watchdog, which no other process of halod does, before it gives its rights away.

Invariants:

1. It opens no file of the home, only directories, and holds none of them while it waits.
2. It says locations' numbers (`watched.frames`) and why it ended by its exit code; it logs nothing.
3. It ends with the supervisor: by PR_SET_PDEATHSIG, and by the hang-up of its life pipe.
4. It has one thread, so the worker's system call filter fits it.
"""

import os
import resource
import sys
from collections.abc import Callable
from typing import NoReturn

import msgspec

from halod.harnesses.table import LOCATIONS
from halod.home import Absent, Refused
from halod.home.home import open_anchor
from halod.roles import confine
from halod.roles import limits as limiting
from halod.roles.limits import MIB, Limits
from halod.roles.order import Sealed
from halod.roles.watched.frames import Outbox
from halod.roles.watched.interest import Node, tree
from halod.roles.watched.loop import HomeGone, Loop, Source
from halod.roles.worker import CRASHED, DONE, HOME_UNAVAILABLE, Job

MEMORY = 512 * MIB  # address space: a few MiB are used; the rest is what the supervisor had mapped


class System(confine.System):
    """The steps of a worker's confinement, but for limits of time."""

    def limits(self, wanted: Limits) -> None:
        """Put the resource limits into force; a watcher's processor time is bounded by `watched.loop`."""
        for kind, soft, hard in limiting.kernel_limits(wanted):
            if kind != resource.RLIMIT_CPU:
                ceiling = limiting.lowered(hard, resource.getrlimit(kind)[1])
                resource.setrlimit(kind, (min(soft, ceiling), ceiling))


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor gives to a watcher.

    `frames` is the write end of one pipe, `life` the read end of the other, whose hang-up means that the
    watcher is to end or the supervisor (a process id) is gone. `system` is made before the fork.
    """

    system: System
    frames: int
    life: int
    supervisor: int


Sources = Callable[[], tuple[Source | None, bool]]


def main(job: Job, start: Start, leave: Callable[[int], NoReturn] = os._exit) -> NoReturn:
    """Run a watcher in the child of a fork, and end the process by `leave`; only tests hand in another.

    `job` is an `order.Ordered`, as for a worker. Exit codes: DONE when told to end; HOME_UNAVAILABLE when
    the home is not there, or not the directory any more that it was: start another one after a while.
    """
    code = CRASHED
    try:
        code = _live(job, start)
    except BaseException:  # noqa: BLE001, S110 - whatever went wrong, the exit code is all that may be said
        pass
    finally:
        leave(code)


def _live(job: Job, start: Start, load: Callable[[], Sources] | None = None) -> int:
    """Give the rights away and watch. The order is that of a worker (design 3)."""
    system = start.system
    system.detach()
    system.descriptors(start.frames, start.life)
    events = (load or load_events)()
    system.limits(Limits(memory=MEMORY))
    system.identity(job.uid, job.gid, job.groups)
    system.undebuggable()
    system.no_new_privileges()
    system.follow(start.supervisor)
    try:
        home = job.open()
    except (Absent, Refused, OSError):
        return HOME_UNAVAILABLE
    with home:
        locked = system.landlock(home)
    if not locked and system.was_root and job.needs_landlock:
        return HOME_UNAVAILABLE
    system.seccomp()
    return watch(job, events, confine.ANSWER_FD, confine.LIFE_FD)


def watch(job: Job, events: Sources, frames: int, life: int) -> int:
    """Watch a home until the supervisor hangs up; give the exit code."""
    nodes, follow = _interest(job)
    source, limited = events()
    loop = Loop(
        lambda: open_anchor(job.home, owned_links=job.trusted_links),
        nodes,
        Outbox(frames),
        life,
        source=source,
        follow=follow,
        limited=limited,
    )
    try:
        loop.run()
    except HomeGone:
        return HOME_UNAVAILABLE
    return DONE


def _interest(job: Job) -> tuple[Node, bool]:
    """Give what to watch, and whether a file may be a link into the home."""
    if isinstance(job.payload, Sealed):
        plan = job.payload.plan()
        return tree((*LOCATIONS, *plan.extra)), "~" in plan.link_roots
    return tree(LOCATIONS), "~" in job.link_roots


def load_events(platform: str = sys.platform) -> Sources:
    """Load what tells of events; what it gives makes the source, after the change of uid.

    That gives (None, limited) where files must be polled: not Linux, no inotify, or no more instances.
    """
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
