# SPDX-License-Identifier: Apache-2.0
"""The steps by which a forked worker gives its rights away; `worker` says in which order (design 3).

One method is one step, so that tests can see the order and let single steps fail. What a step needs is
prepared before the fork (`System`'s constructor): the Landlock version, the compiled filter, every import.
"""

import fcntl
import math
import os
import signal
import sys

from halod.home import Home
from halod.roles import identity, landlock, libc, limits, seccomp

# Where a worker's pipes lie, right behind stdio. Fixed, so that everything above can be closed.
ANSWER_FD = 3
LIFE_FD = 4

_MOST_DESCRIPTORS = 1 << 16  # closed blindly when the open ones cannot be listed
_ALARM_GRACE = 5


class System:
    """The real system. `was_root` is about the supervisor: only root can change ids."""

    def __init__(self, platform: str = sys.platform) -> None:
        self.was_root = os.geteuid() == 0
        self._linux = platform == "linux"
        self._landlock = landlock.abi() if self._linux else 0
        # A 32-bit interpreter on a 64-bit kernel calls by other numbers than the machine's name says.
        wide = sys.maxsize > 1 << 32
        self._filter = seccomp.build(os.uname().machine) if self._linux and wide else b""

    def detach(self) -> None:
        """Leave the supervisor's session and forget its signal handlers."""
        os.setsid()
        reset_signals()

    def descriptors(self, answer: int, life: int) -> None:
        """Keep the two pipes, as ANSWER_FD and LIFE_FD; stdio is /dev/null; everything else is closed."""
        answer = fcntl.fcntl(answer, fcntl.F_DUPFD_CLOEXEC, LIFE_FD + 1)
        life = fcntl.fcntl(life, fcntl.F_DUPFD_CLOEXEC, LIFE_FD + 1)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for number in (0, 1, 2):
            os.dup2(null, number, inheritable=False)
        os.dup2(answer, ANSWER_FD, inheritable=False)
        os.dup2(life, LIFE_FD, inheritable=False)
        os.closerange(LIFE_FD + 1, highest_descriptor() + 1)

    def limits(self, wanted: limits.Limits) -> None:
        """Put the resource limits into force, and an alarm clock for the case that the supervisor is gone."""
        limits.apply(wanted)
        signal.alarm(math.ceil(wanted.wall) + _ALARM_GRACE)

    def identity(self, uid: int, gid: int, groups: tuple[int, ...]) -> None:
        """Become the account when root, else stay the caller; lose every capability; see that it is so."""
        if self.was_root:
            identity.drop_bounding_set()
            identity.assume(uid, gid, groups)
        else:
            identity.keep()
        identity.drop_capabilities()
        identity.refuse_return()

    def undebuggable(self) -> None:
        """Let no process of the account attach, read memory or the environment (prctl(2), ptrace(2))."""
        if self._linux:
            libc.prctl(libc.PR_SET_DUMPABLE, 0)

    def no_new_privileges(self) -> None:
        """Gain nothing from set-user-id files; Landlock and seccomp need it of an ordinary user."""
        if self._linux:
            libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)

    def follow(self, supervisor: int) -> None:
        """End when the supervisor (a process id) ends. Raises OSError; ProcessLookupError: gone already.

        A change of ids clears the parent-death signal, so this comes after it.
        """
        if self._linux:
            libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
        else:
            end_with_pipe(LIFE_FD)
        if os.getppid() != supervisor:
            raise ProcessLookupError

    def landlock(self, home: Home) -> bool:
        """Confine to reading beneath the home (and the link roots); False when the kernel has no Landlock.

        Raises OSError.
        """
        return landlock.restrict(self._landlock, home.fds)

    def seccomp(self) -> bool:
        """Install the system call filter; False when there is none for this system. Raises OSError."""
        return seccomp.install(self._filter)

    def answer(self, data: bytes) -> None:
        """Write all of an answer. Raises OSError."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(ANSWER_FD, rest) :]


def reset_signals() -> None:
    """Give every signal that has a Python handler its default action, and unblock all."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def highest_descriptor() -> int:
    """Give the highest open descriptor; a generous guess where they cannot be listed (no /dev/fd)."""
    try:
        return max(int(name) for name in os.listdir("/dev/fd"))
    except (OSError, ValueError):
        return _MOST_DESCRIPTORS


def end_with_pipe(descriptor: int) -> None:
    """End this process when the other end of a pipe is closed: SIGIO at its hang-up (fcntl(2), O_ASYNC)."""
    signal.signal(signal.SIGIO, lambda _number, _frame: os._exit(1))
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC)
