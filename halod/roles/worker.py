# SPDX-License-Identifier: Apache-2.0
"""The life of a worker: one account, one scan, in a forked child (design 3).

Invariants:

1. It never execs. After a fork and a change of uid the kernel keeps a process undebuggable by the account;
   after an exec the account could attach and forge a clean answer.
2. Rights go in the order of `_work`, before the first byte of the home is read.
3. It says its answer on one pipe and why it failed by its exit code; nothing else comes out. It ends by
   `os._exit`: no exit handler runs and no buffer that was inherited is flushed.
4. An account with uid 0, and one without a password entry, is read under Landlock or not at all: root's
   files answer to uid 0 even without a capability, and nobody vouches for an unknown uid.
"""

import os
from collections.abc import Callable
from typing import NoReturn

import msgspec

from halod.accounts import Account
from halod.home import Absent, Home, Refused
from halod.roles.answer import Answer
from halod.roles.confine import System
from halod.roles.limits import MIB, Limits

# Exit codes, read by the supervisor.
DONE = 0
CRASHED = 70
HOME_UNAVAILABLE = 73


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One home to scan, as numbers: nothing is looked up after the fork.

    `payload` is what the scan needs beside the home; the child inherits it, it is never serialised.
    """

    name: str = ""
    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    home: str
    listed: bool = True
    max_file_bytes: int = 128 * MIB
    link_roots: tuple[str, ...] = ()
    trusted_links: bool = True
    payload: object = None

    @classmethod
    def of(
        cls,
        account: Account,
        payload: object = None,
        *,
        max_file_bytes: int = 128 * MIB,
        link_roots: tuple[str, ...] = (),
        trusted_links: bool = True,
    ) -> "Job":
        """Make the job that scans an account's home; the last three are those of `Home.open`."""
        return cls(
            name=account.name,
            uid=account.uid,
            gid=account.gid,
            groups=account.groups,
            home=account.home,
            listed=account.listed,
            max_file_bytes=max_file_bytes,
            link_roots=link_roots,
            trusted_links=trusted_links,
            payload=payload,
        )

    def open(self) -> Home:
        """Open the home, in the worker. Raises Refused; PermissionError when it may not be searched.

        A home that cannot be searched is one row, not one for each file that might be in it. One that is no
        absolute path (an account without a home) is none: the caller's folder is nobody's home.
        """
        if not self.home.startswith("/"):
            raise Refused("home-unavailable")
        home = Home.open(
            self.home,
            uid=self.uid,
            max_file_bytes=self.max_file_bytes,
            link_roots=self.link_roots,
            trusted_links=self.trusted_links,
        )
        os.lstat(".", dir_fd=home.fd)
        return home

    @property
    def needs_landlock(self) -> bool:
        """Whether root may read this home under Landlock only."""
        return self.uid == 0 or not self.listed

    def __repr__(self) -> str:
        """Give the type's name only: a payload may hold anything."""
        return "<Job>"


Scan = Callable[[Home, Job], Answer]


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor gives to a worker.

    `answer` is the write end of one pipe, `life` the read end of the other, whose hang-up means that the
    supervisor (a process id) is gone.
    """

    scan: Scan
    limits: Limits
    system: System
    answer: int
    life: int
    supervisor: int


def live(job: Job, start: Start, leave: Callable[[int], NoReturn] = os._exit) -> NoReturn:
    """Run a worker in the child of a fork, and end the process by `leave`; only tests hand in another."""
    code = CRASHED
    try:
        code = _work(job, start)
    except BaseException:  # noqa: BLE001, S110 - whatever went wrong, the exit code is all that may be said
        pass
    finally:
        leave(code)


def _work(job: Job, start: Start) -> int:
    """Give the rights away, scan, answer. The order is the contract (design 3)."""
    system = start.system
    system.detach()
    system.descriptors(start.answer, start.life)
    system.limits(start.limits)
    system.identity(job.uid, job.gid, job.groups)
    system.undebuggable()
    system.no_new_privileges()
    system.follow(start.supervisor)
    try:
        home = job.open()
    except (Absent, Refused, OSError):
        return HOME_UNAVAILABLE
    locked = system.landlock(home)
    if not locked and system.was_root and job.needs_landlock:
        return HOME_UNAVAILABLE
    filtered = system.seccomp()
    answer = start.scan(home, job)
    sandbox = "full" if locked and filtered else "partial"
    system.answer(msgspec.msgpack.encode(msgspec.structs.replace(answer, sandbox=sandbox)))
    return DONE
