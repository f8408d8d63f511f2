# SPDX-License-Identifier: Apache-2.0
"""Become an account, for good: groups, group ids, user ids, capabilities (setresuid(2), capabilities(7)).

Invariants:

1. All three user and group ids are set and read back.
2. Afterwards the process holds no capability and its bounding set is empty, whatever its uid is.
3. A way back to root is tried, and finding one is an error.

`system` is the module `os`, `kernel` the module `libc`; tests hand in recorders.
"""

import errno
import os
from collections.abc import Sequence
from types import ModuleType

import msgspec

from halod.roles import libc

_CAPABILITIES = 64  # two 32-bit words; the kernel says EINVAL after the last one that it knows


class Ids(msgspec.Struct, frozen=True):
    """An account as the kernel knows it."""

    uid: int
    gid: int
    groups: tuple[int, ...]


class StillPrivileged(Exception):
    """The process kept, or could regain, a right that it should have lost."""


def assume(uid: int, gid: int, groups: Sequence[int], system: ModuleType = os) -> None:
    """Become `uid` with `gid` and supplementary `groups`; the process must run as root.

    macOS has no setresuid: there setuid by root sets all three ids (setuid(2)), and takes at most 16 groups.
    Raises OSError.
    """
    same = system.geteuid() == uid
    try:
        system.setgroups(list(groups)[: system.sysconf("SC_NGROUPS_MAX")])
    except PermissionError:
        # A container's root without CAP_SETGID may still read its own home: nothing is gained by staying.
        if not same:
            raise
    _set(uid, gid, system)


def keep(system: ModuleType = os) -> None:
    """Stay who the process is, and give up a saved id that differs. Raises OSError."""
    _set(system.geteuid(), system.getegid(), system)


def _set(uid: int, gid: int, system: ModuleType) -> None:
    """Set every user and group id, and read them back."""
    if hasattr(system, "setresuid"):
        system.setresgid(gid, gid, gid)
        system.setresuid(uid, uid, uid)
        now = {*system.getresgid()}, {*system.getresuid()}
    else:
        system.setgid(gid)
        system.setuid(uid)
        now = {system.getgid(), system.getegid()}, {system.getuid(), system.geteuid()}
    if now != ({gid}, {uid}):
        raise StillPrivileged("ids")


def drop_bounding_set(kernel: ModuleType = libc) -> None:
    """Drop every capability from the bounding set. Raises OSError.

    EPERM (a container's root without CAP_SETPCAP) is let pass: the set counts at an exec only, and a worker
    neither execs nor may gain privileges by it.
    """
    for capability in range(_CAPABILITIES):
        try:
            kernel.prctl(libc.PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EPERM, errno.ENOSYS):
                return
            raise


def drop_capabilities(kernel: ModuleType = libc) -> None:
    """Empty every capability set of this process and read back. Nothing to do where there are none."""
    try:
        kernel.prctl(libc.PR_CAP_AMBIENT, libc.PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError as error:
        if error.errno == errno.ENOSYS:
            return
        if error.errno != errno.EINVAL:  # kernels before 4.3 have no ambient set
            raise
    kernel.drop_capabilities()
    if kernel.capabilities():
        raise StillPrivileged("capabilities")


def refuse_return(system: ModuleType = os) -> None:
    """Try to become root again. Raises StillPrivileged when that works; uid 0 has nowhere to return to."""
    if system.geteuid() == 0:
        return
    for attempt in (system.setuid, system.seteuid):
        try:
            attempt(0)
        except OSError as refused:
            if refused.errno in {errno.EPERM, errno.EINVAL}:  # EINVAL: a user namespace that has no root
                continue
            raise
        raise StillPrivileged("root regained")
