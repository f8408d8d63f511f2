# SPDX-License-Identifier: Apache-2.0
"""The supervisor of `halod run`: starts, watches over and ends agent, watchers and workers (design 2, 3, 9).

Invariants:

1. One thread, one loop. It parses neither settings, policy, homes nor answers, opens no network, and knows no
   path below a home. What an agent asks for is checked first (`requests`).
2. No process outlives it: agent gone unasked means everything ends and exit code 1, so that the service
   manager starts everything anew; supervisor gone means that agent, watchers and workers see it and end.
3. SIGTERM and SIGINT: everything has ended within 2 s. SIGHUP: a new agent is started, which reads settings,
   secrets and policy with the rights they need; only when it could use them is the old one told to stop.
"""

import math
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from halod.roles import agent_process, order, requests
from halod.roles.agent_process import AgentProcess, Entry
from halod.roles.notify import Notifier
from halod.roles.protocol import (
    MAX_ACCOUNTS,
    Alive,
    Answered,
    Broken,
    Go,
    Leaving,
    Loaded,
    Ready,
    ReloadRefused,
    Scan,
    Stop,
    Target,
    ToSupervisor,
    Watch,
    Words,
)
from halod.roles.say import say
from halod.roles.supervisor import Ended, Pool
from halod.roles.watching import Load, Watchers

PATIENCE: Final = 1.5
"""Seconds from Stop until an agent is killed: everything ends within 2 s (design 9)."""
LOADING: Final = 60.0
"""Seconds an agent may take to read its settings, secrets and policy."""
CLOSING: Final = 0.5
"""Seconds that what was killed at the end has to be gone and reaped."""
_BACKLOG: Final = 4 * 1024 * 1024  # bytes of answers the agent has not taken, above which no worker starts
_MOST_QUEUED: Final = 4 * MAX_ACCOUNTS
_MOST_SCANS: Final = 8  # an agent asks for one at a time; each holds a payload of up to a frame
_AT_ONCE: Final = 4  # reads of one agent in one turn: one that never stops talking delays nothing else
_LAST_WORDS: Final = 64

Say = Callable[..., None]


class Service:
    """One run of the supervisor.

    `entry` is what an agent does, `load` what a watcher does; `notifier` speaks to the service manager.
    """

    def __init__(
        self, entry: Entry, load: Load, *, notifier: Notifier | None = None, tell: Say = say
    ) -> None:
        self._entry = entry
        self._notifier = notifier or Notifier()
        self._tell = tell
        self._root = os.geteuid() == 0
        self._pool = Pool(order.scan)
        self._watchers = Watchers(load, lambda pid: tell("watcher-lost", pid=pid))
        self._queue: deque[tuple[int, Target, bytes]] = deque()
        self._running = 0
        self._agent: AgentProcess | None = None
        self._next: AgentProcess | None = None
        self._deadline = 0.0
        self._signals: set[int] = set()
        self._reload = False
        self._stopping = False
        self._code: int | None = None

    def run(self) -> int:
        """Serve until a signal or the agent's end; give the exit code. Restores the caller's signals."""
        wake, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()
        before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        old = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        try:
            self._begin()
            while self._code is None:
                self._wait(wake)
                self._turn()
            return self._code
        finally:
            self._end()
            signal.set_wakeup_fd(old)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(wake)
            os.close(wakes)

    def _note(self, number: int, _frame: object) -> None:
        self._signals.add(number)

    # -- the loop --------------------------------------------------------------------------------

    def _wait(self, wake: int) -> None:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        for agent in self._agents():
            if not agent.channel.ended:
                more = select.POLLOUT if agent.channel.waiting else 0
                poll.register(agent.channel.fileno(), select.POLLIN | more)
        for descriptor in (*self._pool.descriptors(), *self._watchers.descriptors()):
            poll.register(descriptor, select.POLLIN)
        due = [left for left in (self._pool.timeout(), self._watchers.timeout()) if left is not None]
        ends = [self._deadline, *(agent.silent_until for agent in self._agents() if not agent.killed)]
        due += [max(0.0, end - time.monotonic()) for end in ends if end]
        if not self._signals:
            poll.poll(math.ceil(min(due) * 1000) if due else None)
        _drain(wake)

    def _turn(self) -> None:
        """Do what is due, each kind of work once."""
        self._obey()
        for agent in self._agents():
            self._hear(agent)
        self._settle()
        if self._code is not None or self._stopping:
            return
        self._feed()
        for ended in self._pool.step():
            self._answer(ended)
        if self._running == 0:
            self._feed()
        for said in self._watchers.step():
            if self._agent is not None and self._agent.channel.waiting < _BACKLOG:
                self._agent.channel.send(said)

    def _agents(self) -> list[AgentProcess]:
        return [agent for agent in (self._agent, self._next) if agent is not None]

    def _obey(self) -> None:
        """Do what signals ask."""
        signals, self._signals = self._signals, set()
        if signals & {signal.SIGTERM, signal.SIGINT} and not self._stopping:
            self._stop()
        if signal.SIGHUP in signals:
            self._reload = True
        if self._reload and not self._stopping and self._next is None:
            self._reload = False
            self._notifier.reloading()
            self._begin()

    def _begin(self) -> None:
        """Start an agent; the one before, if any, goes on until this one has loaded."""
        try:
            self._next = agent_process.start(self._entry)
        except OSError:
            self._tell("fork-failed")
            self._refused(1)
            return
        self._deadline = time.monotonic() + LOADING

    def _refused(self, code: int) -> None:
        """The new agent is of no use: the old one goes on, or there is none and the service ends."""
        self._next = None
        if self._agent is None:
            self._deadline, self._code = 0.0, code
            return
        if not self._agent.told_to_stop:
            self._deadline = 0.0
            self._agent.channel.send(ReloadRefused())
        self._tell("reload-refused")
        self._notifier.ready()

    # -- agents ----------------------------------------------------------------------------------

    def _hear(self, agent: AgentProcess) -> None:
        """Take what an agent says, and see whether it has ended."""
        agent.channel.flush()
        try:
            for _ in range(_AT_ONCE):
                messages = [] if agent.channel.ended else agent.channel.receive()
                if not messages:
                    break
                for message in messages:
                    self._do(agent, cast("ToSupervisor", message))
        except Broken:
            self._broken(agent)
        agent.over()

    def _do(self, agent: AgentProcess, message: ToSupervisor) -> None:
        """Do what an agent asks. Raises Broken: it may not ask for that."""
        if isinstance(message, Loaded):
            agent.loaded = True
        elif isinstance(message, Leaving):
            agent.left = True
        elif agent is not self._agent:
            raise Broken("too early")
        elif isinstance(message, Scan | Watch):
            self._grant(message)
        elif isinstance(message, Words):
            self._notifier.words(message.text)
        elif isinstance(message, Ready):
            self._notifier.ready()
        elif isinstance(message, Alive):
            self._notifier.alive()

    def _grant(self, message: Scan | Watch) -> None:
        """Check a request and do it."""
        requests.check(message.targets, root=self._root)
        if isinstance(message, Scan):
            held = {id(payload) for _, _, payload in self._queue}
            if len(self._queue) + len(message.targets) > _MOST_QUEUED or len(held) >= _MOST_SCANS:
                raise Broken("too many")
            self._queue += [(message.id, target, message.payload) for target in message.targets]
        elif not self._stopping:
            self._watchers.watch(message.targets, message.payload)

    def _broken(self, agent: AgentProcess) -> None:
        agent.kill()
        if agent is self._agent:
            self._tell("agent-broken", pid=agent.pid)
            agent.left = True  # the line was written
            self._code = 1

    def _settle(self) -> None:
        """Move on when an agent has loaded, has ended, or did not in time."""
        late = bool(self._deadline) and time.monotonic() >= self._deadline
        agent = self._agent
        if agent is not None:
            if agent.over():
                self._gone(agent)
            elif late and agent.told_to_stop:
                self._kill_late(agent)
            elif agent.channel.ended and not agent.told_to_stop and not agent.killed:
                self._silence(agent)
        new = self._next
        if new is None or self._code is not None:
            return
        if new.over():
            self._hear_last(new)
            new.channel.close()
            if new.exit_code() == agent_process.CRASHED:
                self._tell("agent-died", pid=new.pid, status=new.status or 0)
            self._refused(new.exit_code() or 1)
        elif new.loaded and not self._stopping:
            self._hand_over(new)
        elif late and not new.loaded:
            self._kill_late(new)

    def _silence(self, agent: AgentProcess) -> None:
        """End an agent that cannot be spoken to, unless it does so by itself; its end is told of when it comes."""
        now = time.monotonic()
        agent.silent_until = agent.silent_until or now + PATIENCE
        if now >= agent.silent_until:
            agent.kill()

    def _kill_late(self, agent: AgentProcess) -> None:
        """Kill an agent that does not end in time; one that does not even die is not waited for at the end."""
        if agent.killed and self._stopping:
            self._code = 0
        elif not agent.killed:
            self._tell("agent-stuck", pid=agent.pid)
            agent.kill()
        self._deadline = time.monotonic() + PATIENCE / 4

    def _hand_over(self, new: AgentProcess) -> None:
        """Tell the old agent to stop, and the new one to go when the old one has ended."""
        if self._agent is None:
            self._agent, self._next, self._deadline = new, None, 0.0
            new.channel.send(Go())
        elif not self._agent.told_to_stop:
            self._ask_to_stop(self._agent)

    def _ask_to_stop(self, agent: AgentProcess) -> None:
        agent.told_to_stop = True
        self._deadline = time.monotonic() + PATIENCE
        agent.channel.send(Stop())

    def _gone(self, agent: AgentProcess) -> None:
        """Handle the end of the agent that served."""
        self._hear_last(agent)
        agent.channel.close()
        self._agent, self._deadline = None, 0.0
        if self._stopping:
            self._code = 0
        elif not agent.told_to_stop:
            if not agent.left:
                self._tell("agent-died", pid=agent.pid, status=agent.status or 0)
            if self._code is None:
                self._code = agent.exit_code() if agent.left else 1
        else:
            self._clear()
            if self._next is not None:
                self._deadline = time.monotonic() + LOADING
            else:
                self._begin()

    def _hear_last(self, agent: AgentProcess) -> None:
        """Take what an agent said before it ended: that it left on purpose."""
        try:
            for _ in range(_LAST_WORDS):  # a child that it left behind may hold the connection, and talk on
                messages = [] if agent.channel.ended else agent.channel.receive()
                agent.left = agent.left or any(isinstance(message, Leaving) for message in messages)
                if not messages:
                    return
        except Broken:
            return

    # -- scans -----------------------------------------------------------------------------------

    def _feed(self) -> None:
        """Give the pool work while the agent takes the answers."""
        agent = self._agent
        while self._queue and agent is not None and agent.channel.waiting < _BACKLOG and self._running < 4:
            self._pool.submit(order.Ordered.to(*self._queue.popleft()))
            self._running += 1

    def _answer(self, ended: Ended) -> None:
        """Pass a worker's bytes on, or why there are none."""
        self._running -= 1
        if self._agent is not None and isinstance(ended.job, order.Ordered):
            self._agent.channel.send(
                Answered(ended.job.scan, ended.job.key, ended.failure or "", ended.answer)
            )

    def _clear(self) -> None:
        """Forget what an agent wanted that is gone."""
        self._queue.clear()
        self._pool.close()
        self._pool = Pool(order.scan)
        self._running = 0
        self._watchers.watch((), b"")

    # -- the end ---------------------------------------------------------------------------------

    def _stop(self) -> None:
        self._stopping = True
        self._notifier.stopping()
        if self._next is not None:
            self._next.kill()
        if self._agent is None:
            self._code = 0
        else:
            self._ask_to_stop(self._agent)
        self._queue.clear()
        self._watchers.watch((), b"")

    def _end(self) -> None:
        """End whatever is left, and reap it."""
        agents = self._agents()
        for agent in agents:
            agent.kill()
        self._watchers.close()
        self._pool.close()
        end = time.monotonic() + CLOSING
        while sum(agent.over() for agent in agents) < len(agents) and time.monotonic() < end:
            time.sleep(0.002)
        for agent in agents:
            agent.channel.close()


_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        return
