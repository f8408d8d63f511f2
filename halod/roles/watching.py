# SPDX-License-Identifier: Apache-2.0
"""The supervisor's side of watchers: one process per account, started, read, ended, started again (design 3).

A watcher says frames of three bytes on its pipe: a kind and a location number (big-endian). Invariants:

1. A watcher is hostile once its home has been read: it can say numbers, and nothing it says makes memory grow.
2. One that ends unasked, or says anything else, is started again after FIRST seconds, doubled up to LAST.
   So is one whose home is not there, which is no fault of the watcher and is not told of as one; and one that
   its account has stopped (SIGSTOP): it would see nothing, and seem to watch.
3. Nothing here waits, except `close`, for GRACE seconds at most.
"""

import contextlib
import gc
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal, NoReturn

from halod.home import Home, Refused
from halod.roles import limits
from halod.roles.confine import ANSWER_FD, LIFE_FD, System
from halod.roles.limits import MIB, Limits
from halod.roles.protocol import Changed, Target, Watcher

CHANGED: Final = 1
"""Something about a location changed; the number is that of the location."""
WATCHING: Final = 2
"""Everything that exists is watched; the number is 0, as in the next two."""
LIMITED: Final = 3
"""The system's watch limit is exhausted: the rest is left to the timer."""
OVERFLOW: Final = 4
"""Events were lost: the home must be scanned again."""
UNAVAILABLE: Final = 5
"""The home is not there, or not the one of before: the watcher ends, and another one looks again."""
PARTIAL: Final = 6
"""The kernel confines this watcher in part only: it lacks Landlock or the system call filter."""

LIMITS: Final = Limits(memory=512 * MIB)
"""Address space, not memory: a few MiB are used, the rest is what the supervisor had mapped."""

FIRST: Final = 1.0
LAST: Final = 60.0
GRACE: Final = 0.5
_STARTS: Final = 16  # in one step: a shared host has hundreds of accounts, and a signal must not wait for all
_PAUSE: Final = 0.1  # between reads of one watcher: a flood is folded here
_CHUNK: Final = 3 * 16384
_STATES: Final[dict[int, Literal["watching", "limited", "overflow", "unavailable", "partial"]]] = {
    WATCHING: "watching",
    LIMITED: "limited",
    OVERFLOW: "overflow",
    UNAVAILABLE: "unavailable",
    PARTIAL: "partial",
}

Main = Callable[[Target, bytes, int, int], object]
"""Watch until the end: target, payload (a Plan), the descriptor to write frames to, the one whose hang-up
means that the supervisor is gone. It runs with the account's rights, under Landlock and the filter."""
Load = Callable[[], Main]
"""Give the Main, in the child before it gives its rights away: it imports what watching needs."""


class _Live:
    """A watcher that runs, or that is to be started again at `due`."""

    __slots__ = ("absent", "born", "data", "due", "life", "pid", "pipe", "read_at", "target", "wait")

    def __init__(self, target: Target) -> None:
        self.target = target
        self.pid = 0
        self.pipe = -1
        self.life = -1
        self.due = 0.0
        self.wait = FIRST
        self.born = 0.0
        self.read_at = 0.0
        self.data = b""
        self.absent = False
        """It said that the home is not there, so its end is no loss."""


class Watchers:
    """All watchers of a supervisor. `clock` gives seconds that never go back."""

    def __init__(
        self, load: Load, report: Callable[[int], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`report` is called with the pid of each watcher that was lost."""
        self._load = load
        self._report = report
        self._clock = clock
        self._system = System()
        self._payload = b""
        self._live: list[_Live] = []
        self._ended: list[int] = []

    def watch(self, targets: Sequence[Target], payload: bytes) -> None:
        """Watch exactly these from now on; watchers of the same target and payload go on."""
        kept = {} if payload != self._payload else {live.target: live for live in self._live}
        self._payload = payload
        wanted = [kept[target] if target in kept else _Live(target) for target in targets]
        for live in self._live:
            if live not in wanted:
                self._end(live)
        self._live = wanted

    def pids(self) -> list[int]:
        """Give the processes that run."""
        return [live.pid for live in self._live if live.pid]

    def descriptors(self) -> list[int]:
        """Give the descriptors whose readiness for reading calls for a `step`."""
        now = self._clock()
        return [live.pipe for live in self._live if live.pipe >= 0 and live.read_at <= now]

    def timeout(self) -> float | None:
        """Give the seconds after which a `step` is due without any readiness; None: no such time."""
        now = self._clock()
        due = [live.due - now for live in self._live if not live.pid]
        due += [live.read_at - now for live in self._live if live.pipe >= 0 and live.read_at > now]
        return max(0.0, min(due)) if due else None

    def step(self) -> list[Changed | Watcher]:
        """Read what is there, start what is due, reap what has ended."""
        self._ended = [pid for pid in self._ended if not _reaped(pid)]
        now = self._clock()
        said: list[Changed | Watcher] = []
        starts = 0
        for live in self._live:
            if live.pid and _stopped(live.pid):
                said.append(self._lost(live, now))
            elif live.pid and live.read_at <= now:
                said += self._listen(live, now)
            if not live.pid and live.due <= now and starts < _STARTS:
                starts += 1
                if not self._start(live, now):
                    self._again(live, now)
        return said

    def close(self) -> None:
        """End every watcher."""
        for live in self._live:
            self._end(live)
        self._live = []
        end = time.monotonic() + GRACE
        while self._ended and time.monotonic() < end:
            self._ended = [pid for pid in self._ended if not _reaped(pid)]
            time.sleep(0.002 if self._ended else 0)

    def _listen(self, live: _Live, now: float) -> list[Changed | Watcher]:
        try:
            data = os.read(live.pipe, _CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if data:
            live.read_at = now + _PAUSE
            data = live.data + data
            whole = len(data) // 3 * 3
            live.data = data[whole:]
            said = _frames(live.target.key, data[:whole])
            if said is not None:
                live.absent = live.absent or Watcher(live.target.key, "unavailable") in said
                return said
        elif live.absent:
            self._replace(live, now)
            return []
        return [self._lost(live, now)]

    def _lost(self, live: _Live, now: float) -> Watcher:
        if live.wait == FIRST or now - live.born > LAST:  # one that never lives long is told of once
            self._report(live.pid)
        self._replace(live, now)
        return Watcher(live.target.key, "lost")

    def _replace(self, live: _Live, now: float) -> None:
        """End a watcher, and plan the next one."""
        if now - live.born > LAST:
            live.wait = FIRST
        self._end(live)
        self._again(live, now)

    def _again(self, live: _Live, now: float) -> None:
        live.due = now + live.wait
        live.wait = min(live.wait * 2, LAST)

    def _end(self, live: _Live) -> None:
        """End a process. It is not reaped yet, so the number is still its own."""
        if live.pid:
            for kill in (os.kill, os.killpg):
                with contextlib.suppress(OSError):
                    kill(live.pid, signal.SIGKILL)
            self._ended.append(live.pid)
            os.close(live.pipe)
            os.close(live.life)
        live.pid, live.pipe, live.life, live.data, live.absent = 0, -1, -1, b"", False

    def _start(self, live: _Live, now: float) -> bool:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        ends: list[int] = []
        gc.freeze()
        try:
            ends += os.pipe()
            ends += os.pipe()
            supervisor = os.getpid()
            pid = os.fork()
            if pid == 0:
                self._child(live.target, ends[1], ends[2], supervisor)
        except OSError:
            for end in ends:
                os.close(end)
            return False
        finally:
            gc.unfreeze()
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(ends[1])
        os.close(ends[2])
        os.set_blocking(ends[0], False)
        live.pid, live.pipe, live.life, live.born, live.read_at = pid, ends[0], ends[3], now, now
        return True

    def _child(self, target: Target, write: int, life: int, supervisor: int) -> NoReturn:
        code = 70
        try:
            become(self._system, self._load, target, self._payload, (write, life, supervisor))
            code = 0
        except BaseException:  # noqa: BLE001, S110 - whatever went wrong, the exit code is all that may be said
            pass
        finally:
            os._exit(code)


def become(system: System, load: Load, target: Target, payload: bytes, started: tuple[int, int, int]) -> None:
    """Turn a forked child into a watcher and watch: the order of a worker, with imports in between.

    `started` is the pipe to write to, the one to hold, and the supervisor's process id.
    """
    write, life, supervisor = started
    system.detach()
    system.descriptors(write, life)
    main = load()
    limit(LIMITS)
    system.identity(target.uid, target.gid, target.groups)
    system.undebuggable()
    system.no_new_privileges()
    system.follow(supervisor)
    try:
        with Home.open(target.home, uid=target.uid) as home:  # closed again: a held home cannot be unmounted
            locked = system.landlock(home)
    except Refused:
        _tell(UNAVAILABLE)
        return
    if not locked and system.was_root and not target.known:
        _tell(UNAVAILABLE)
        return
    filtered = system.seccomp()
    if not (locked and filtered):
        _tell(PARTIAL)
    main(target, payload, ANSWER_FD, LIFE_FD)


def limit(wanted: Limits) -> None:
    """Put a worker's limits into force but that of processor time. Raises OSError, ValueError."""
    for kind, soft, hard in limits.kernel_limits(wanted):
        if kind != resource.RLIMIT_CPU:
            ceiling = limits.lowered(hard, resource.getrlimit(kind)[1])
            resource.setrlimit(kind, (min(soft, ceiling), ceiling))


def _tell(kind: int) -> None:
    os.write(ANSWER_FD, bytes((kind, 0, 0)))


def _frames(key: int, data: bytes) -> list[Changed | Watcher] | None:
    """Read frames; None when there is one of no known kind."""
    locations: set[int] = set()
    states: dict[int, None] = {}
    for at in range(0, len(data), 3):
        kind, number = data[at], int.from_bytes(data[at + 1 : at + 3], "big")
        if kind == CHANGED:
            locations.add(number)
        elif kind in _STATES:
            states[kind] = None
        else:
            return None
    said: list[Changed | Watcher] = [Watcher(key, _STATES[kind]) for kind in states]
    if locations:
        said.append(Changed(key, tuple(sorted(locations))))
    return said


def _stopped(pid: int) -> bool:
    """Tell whether a child was stopped since it was last asked about; one that has ended is not reaped by this."""
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None
    except (AttributeError, OSError):  # macOS has no waitid in Python
        return False


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True
