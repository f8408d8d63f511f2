# SPDX-License-Identifier: Apache-2.0
"""An agent as the supervisor sees it: a forked child and one end of a connection."""

import contextlib
import gc
import os
import signal
import socket
from collections.abc import Callable
from typing import Final, NoReturn

from halod.roles.channel import Channel
from halod.roles.confine import highest_descriptor, reset_signals

AGENT_FD: Final = 3
"""Where the agent finds its connection, right behind stdio; everything above is closed."""
CRASHED: Final = 70

Entry = Callable[[int, int], int]
"""What an agent does: its connection's descriptor and the supervisor's process id in, its exit code out."""


class AgentProcess:
    """A forked agent. The public fields are notes of the supervisor."""

    def __init__(self, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel
        self.status: int | None = None
        self.loaded = False
        self.left = False
        self.told_to_stop = False
        self.killed = False
        self.silent_until = 0.0
        """By when an agent that closed its connection must have ended; 0 while it is open."""

    def over(self) -> bool:
        """Tell whether the process has ended; reaps it."""
        if self.status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = self.pid, CRASHED << 8
            if pid:
                self.status = status
        return self.status is not None

    def exit_code(self) -> int:
        """Give the exit code of a process that is over; a signal counts as a crash."""
        status = self.status
        return CRASHED if status is None or os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def kill(self) -> None:
        """Send SIGKILL; nothing when it was reaped."""
        self.killed = True
        if self.status is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)


def start(entry: Entry) -> AgentProcess:
    """Fork an agent. Raises OSError with nothing left open."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    supervisor = os.getpid()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    gc.freeze()  # a collection in the child must not copy the pages of every inherited object
    try:
        pid = os.fork()
        if pid == 0:
            _live(entry, theirs.detach(), supervisor)
    except OSError:
        ours.close()
        raise
    finally:
        gc.unfreeze()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if theirs.fileno() >= 0:
            theirs.close()
    return AgentProcess(pid, Channel(ours, "supervisor"))


def _live(entry: Entry, descriptor: int, supervisor: int) -> NoReturn:
    code = CRASHED
    try:
        # Not the supervisor's signals: it alone decides when the agent ends, and a terminal's Ctrl-C or a
        # service manager's SIGTERM reaches every process of the group.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        reset_signals()
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(null, 0)
        if descriptor != AGENT_FD:
            os.dup2(descriptor, AGENT_FD, inheritable=False)
        os.closerange(AGENT_FD + 1, highest_descriptor() + 1)
        code = entry(AGENT_FD, supervisor)
    except BaseException:  # noqa: BLE001, S110 - the entry reports its own faults; a traceback reaches nobody
        pass
    finally:
        os._exit(code)
