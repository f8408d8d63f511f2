# SPDX-License-Identifier: Apache-2.0
"""The supervisor: forks workers, holds them to their limits, reaps them (design 3).

Invariants:

1. It parses nothing and knows no path below a home: an answer is bytes here. `run`, which is for a
   supervisor that is its own reader (`halod scan`), decodes after the worker is gone.
2. One thread, one loop, no blocking call: every step takes what is there and returns. A worker that does not
   even die of SIGKILL (stuck in the kernel) is abandoned after `Limits.grace` and never waited for.
3. Every job gives exactly one result, whatever its worker does, and leaves no descriptor behind.

A long-lived supervisor waits on `Pool.descriptors` and `Pool.timeout` in its own loop and calls `Pool.step`.
"""

import contextlib
import gc
import math
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from halod.roles import limits as limiting
from halod.roles import worker
from halod.roles.answer import Answer
from halod.roles.confine import System
from halod.roles.limits import Limits
from halod.roles.worker import Job, Scan

Failure = Literal["worker-crashed", "worker-timeout", "worker-invalid", "home-unavailable"]
Clock = Callable[[], float]
Wait = Callable[[int, int], tuple[int, int]]

_CHUNK = 65536
_TICK = 0.001  # without a pidfd: between the end of an answer and that of its process
_WATCH = 0.1  # between looks at a worker's resident memory


class Ended(msgspec.Struct, frozen=True):
    """A job that is over: the worker's raw answer, or why there is none."""

    job: Job
    answer: bytes = b""
    failure: Failure | None = None


class Outcome(msgspec.Struct, frozen=True):
    """A job that is over: the decoded answer, or why there is none."""

    job: Job
    answer: Answer | None = None
    failure: Failure | None = None


class _Live:
    """A worker that was forked and not yet reaped or abandoned."""

    __slots__ = ("answer", "data", "deadline", "exit", "failure", "job", "killed", "life", "pid")

    def __init__(self, job: Job, pid: int, answer: int, life: int, deadline: float) -> None:
        self.job = job
        self.pid = pid
        self.answer = answer  # read end of its pipe; -1 when closed
        self.life = life  # write end; its hang-up tells the worker that nobody waits any more
        self.exit = _exit_descriptor(pid)
        self.deadline = deadline
        self.data = bytearray()
        self.failure: Failure | None = None
        self.killed: float | None = None

    def close(self) -> None:
        """Close what belongs to this worker."""
        self.hang_up()
        os.close(self.life)
        if self.exit >= 0:
            os.close(self.exit)

    def hang_up(self) -> None:
        """Stop listening to the answer."""
        if self.answer >= 0:
            os.close(self.answer)
            self.answer = -1


class Pool:
    """At most `Limits.workers` workers at once, and the jobs that wait for a place.

    `clock` gives seconds that never go back; `wait` is waitpid, for tests. Raises nothing in normal work.
    """

    def __init__(
        self,
        scan: Scan,
        *,
        limits: Limits | None = None,
        clock: Clock = time.monotonic,
        wait: Wait = os.waitpid,
    ) -> None:
        self._scan = scan
        self._limits = limits or Limits()
        self._clock = clock
        self._wait = wait
        self._system = System()
        self._resident = limiting.resident_reader()
        self._queue: deque[Job] = deque()
        self._live: list[_Live] = []
        self._stuck: dict[int, str] = {}
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            # Inherited over an exec: the kernel would reap our workers and drop their exit codes.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    @property
    def busy(self) -> bool:
        """Whether a job is not over yet."""
        return bool(self._queue or self._live)

    def submit(self, job: Job) -> None:
        """Queue a job."""
        self._queue.append(job)

    def descriptors(self) -> list[int]:
        """Give the descriptors whose readiness for reading calls for a `step`."""
        return [fd for live in self._live for fd in (live.answer, live.exit) if fd >= 0]

    def timeout(self) -> float | None:
        """Give the seconds after which a `step` is due without any readiness; None: no such time."""
        now = self._clock()
        due = [self._due(live, now) for live in self._live]
        if self._queue and len(self._live) < self._limits.workers:
            due.append(0.0)
        return max(0.0, min(due)) if due else None

    def _due(self, live: _Live, now: float) -> float:
        """Give the seconds until a worker must be looked at."""
        end = live.deadline if live.killed is None else live.killed + self._limits.grace
        left = end - now
        if live.exit < 0 and (live.answer < 0 or live.killed is not None):
            return min(left, _TICK)
        return min(left, _WATCH) if self._limits.watch_memory or live.exit < 0 else left

    def step(self) -> list[Ended]:
        """Start what may start, read what is there, end what is over. Gives the jobs that ended."""
        self._bury()
        ended = []
        for live in tuple(self._live):
            self._read(live)
            over = self._settle(live)
            if over is None:
                self._police(live)
                continue
            self._live.remove(live)
            live.close()
            ended.append(over)
        while self._queue and len(self._live) < self._limits.workers:
            refused = self._start(self._queue.popleft())
            if refused is not None:
                ended.append(refused)
        return ended

    def close(self) -> None:
        """Forget waiting jobs and end every worker; those that do not die within the grace are abandoned."""
        self._queue.clear()
        for live in self._live:
            self._kill(live)
        end = self._clock() + self._limits.grace
        while self._live and self._clock() < end:
            pause(self)
            self.step()
        for live in self._live:
            self._stuck[live.pid] = live.job.home
            live.close()
        self._live.clear()

    # -- one worker ------------------------------------------------------------------------------

    def _start(self, job: Job) -> Ended | None:
        """Fork a worker; a job that cannot start is over at once."""
        if job.home in self._stuck.values():
            return Ended(job, failure="worker-timeout")  # its last worker still hangs in the kernel there
        # No handler of ours may run in the child before the child has reset them, nor come here between the
        # fork and the note of it.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._live.append(self._fork(job))
        except OSError:
            return Ended(job, failure="worker-crashed")
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        return None

    def _fork(self, job: Job) -> _Live:
        """Fork one worker. Raises OSError with nothing left open."""
        with contextlib.ExitStack() as undo:
            answer, answer_end = _pipe(undo)
            life_end, life = _pipe(undo)
            start = worker.Start(
                scan=self._scan,
                limits=self._limits,
                system=self._system,
                answer=answer_end,
                life=life_end,
                supervisor=os.getpid(),
            )
            gc.freeze()  # a collection in the child must not copy the pages of every inherited object
            try:
                pid = os.fork()
                if pid == 0:
                    worker.live(job, start)
            finally:
                gc.unfreeze()
            undo.pop_all()
        os.close(answer_end)
        os.close(life_end)
        os.set_blocking(answer, False)
        return _Live(job, pid, answer, life, self._clock() + self._limits.wall)

    def _read(self, live: _Live) -> None:
        """Take what a worker has written; more than an answer may be ends it."""
        while live.answer >= 0:
            try:
                chunk = os.read(live.answer, _CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                live.hang_up()
                return
            live.data += chunk
            if len(live.data) > self._limits.answer:
                self._fail(live, "worker-invalid")

    def _police(self, live: _Live) -> None:
        """End a worker that took too long or, where the kernel does not see to it, too much memory."""
        if live.killed is not None:
            return
        if self._clock() >= live.deadline:
            self._fail(live, "worker-timeout")
        elif self._limits.watch_memory and self._resident(live.pid) > self._limits.memory:
            self._fail(live, "worker-crashed")

    def _fail(self, live: _Live, failure: Failure) -> None:
        """Note why a worker fails, and end it."""
        live.failure = failure
        live.data.clear()
        live.hang_up()
        self._kill(live)

    def _kill(self, live: _Live) -> None:
        """Send SIGKILL to a worker and its group. It is not reaped yet, so the number is still its own."""
        live.killed = self._clock()
        with contextlib.suppress(OSError):
            os.kill(live.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.killpg(live.pid, signal.SIGKILL)

    def _settle(self, live: _Live) -> Ended | None:
        """Reap a worker if it is over, or abandon it when it should be; None while it works."""
        try:
            pid, status = self._wait(live.pid, os.WNOHANG)
        except ChildProcessError:
            return Ended(live.job, failure=live.failure or "worker-crashed")
        if pid == 0:
            if live.killed is None or self._clock() < live.killed + self._limits.grace:
                return None
            self._stuck[live.pid] = live.job.home
            return Ended(live.job, failure=live.failure or "worker-timeout")
        self._read(live)  # what it wrote between the last read and its end
        failure = live.failure or failure_of(status)
        return Ended(live.job, failure=failure) if failure else Ended(live.job, bytes(live.data))

    def _bury(self) -> None:
        """Reap abandoned workers that died after all, so that a long-lived supervisor keeps no zombie."""
        for pid in tuple(self._stuck):
            try:
                gone = self._wait(pid, os.WNOHANG)[0] != 0
            except ChildProcessError:
                gone = True
            if gone:
                del self._stuck[pid]


def failure_of(status: int) -> Failure | None:
    """Say what a wait status means; None for a worker that ended well."""
    if os.WIFSIGNALED(status):
        return "worker-timeout" if os.WTERMSIG(status) == signal.SIGXCPU else "worker-crashed"
    code = os.WEXITSTATUS(status)
    if code == worker.DONE:
        return None
    return "home-unavailable" if code == worker.HOME_UNAVAILABLE else "worker-crashed"


def _pipe(undo: contextlib.ExitStack) -> tuple[int, int]:
    """Make a pipe whose ends are closed when the caller fails. Raises OSError."""
    ends = os.pipe()
    for end in ends:
        undo.callback(os.close, end)
    return ends


def _exit_descriptor(pid: int) -> int:
    """Give a descriptor that becomes readable when a child ends (pidfd_open(2)); -1 where there is none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def pause(pool: Pool) -> None:
    """Wait until a step of the pool is due; not at all when it has nothing to do."""
    if not pool.busy:
        return
    poll = select.poll()
    for descriptor in pool.descriptors():
        poll.register(descriptor, select.POLLIN)
    timeout = pool.timeout()
    poll.poll(None if timeout is None else math.ceil(timeout * 1000))


# Strict: unknown fields, missing fields, other types and trailing bytes are errors.
_decoder = msgspec.msgpack.Decoder(Answer)


def decode(ended: Ended) -> Outcome:
    """Decode what a worker answered; anything but one whole Answer is `worker-invalid`.

    The caller must still check every string of it (design 8).
    """
    if ended.failure is not None:
        return Outcome(ended.job, failure=ended.failure)
    try:
        return Outcome(ended.job, answer=_decoder.decode(ended.answer))
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return Outcome(ended.job, failure="worker-invalid")


def run(
    jobs: Iterable[Job], scan: Scan, *, limits: Limits | None = None, clock: Clock = time.monotonic
) -> Iterator[Outcome]:
    """Scan every job, and give the outcomes as they end: one per job, in no promised order.

    Closing the iterator early ends the workers.
    """
    pool = Pool(scan, limits=limits, clock=clock)
    try:
        for job in jobs:
            pool.submit(job)
        while pool.busy:
            pause(pool)
            for ended in pool.step():
                yield decode(ended)
    finally:
        pool.close()
