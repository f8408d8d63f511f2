# SPDX-License-Identifier: Apache-2.0
"""Every limit of a worker (design 3), and how each is put into force.

The kernel holds a worker to what setrlimit(2) can say; the supervisor holds it to the wall clock, to the
length of its answer and, where the kernel does not enforce RLIMIT_AS, to its resident memory.
"""

import ctypes
import resource
import sys
from collections.abc import Callable

import msgspec

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker may use; times in seconds, sizes in bytes."""

    wall: float = 20.0  # from the fork; a home on a dead network mount must not hold up the others
    grace: float = 1.0  # from SIGKILL until a worker counts as stuck in the kernel and is abandoned
    workers: int = 2  # at once; a laptop has other things to do
    answer: int = MIB  # some thousand rows
    cpu: int = 15
    memory: int = 1024 * MIB  # a 128 MiB file, its decoded form and the interpreter fit several times
    descriptors: int = 128  # a home's directories are held open while a path is walked
    watch_memory: bool = sys.platform != "linux"  # macOS accepts RLIMIT_AS and does not enforce it


def kernel_limits(limits: Limits) -> list[tuple[int, int, int]]:
    """Give (resource, soft limit, hard limit) for setrlimit.

    The soft limit of CPU time lies one second below the hard one, so that the end by SIGXCPU can be told
    from an unrelated SIGKILL. No process can be created (RLIMIT_NPROC, which does not bind uid 0: there the
    seccomp filter does).
    """
    rows = [
        (resource.RLIMIT_CPU, limits.cpu, limits.cpu + 1),
        (resource.RLIMIT_NOFILE, limits.descriptors, limits.descriptors),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NPROC, 0, 0),
    ]
    if not limits.watch_memory:
        rows.append((resource.RLIMIT_AS, limits.memory, limits.memory))
    return rows


def lowered(wanted: int, present: int) -> int:
    """Give the lower of two limits, where RLIM_INFINITY means none: a hard limit is never raised."""
    return wanted if present == resource.RLIM_INFINITY else min(wanted, present)


def apply(limits: Limits) -> None:
    """Put the kernel's limits into force for this process, for good. Raises OSError, ValueError."""
    for kind, soft, hard in kernel_limits(limits):
        ceiling = lowered(hard, resource.getrlimit(kind)[1])
        resource.setrlimit(kind, (min(soft, ceiling), ceiling))


def _linux_resident(pid: int) -> int:
    """Read the resident size from /proc: second field of statm, in pages (proc(5))."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


# proc_pidinfo(PROC_PIDTASKINFO) of macOS fills struct proc_taskinfo: 96 bytes that begin with the virtual
# and the resident size, 64 bits each (sys/proc_info.h).
_PROC_PIDTASKINFO = 4
_TASKINFO_BYTES = 96


def _darwin_resident(pid: int) -> int:  # pragma: no cover - macOS only
    """Ask the kernel for the resident size of a child."""
    info = (ctypes.c_uint64 * (_TASKINFO_BYTES // 8))()
    filled: int = ctypes.CDLL(None).proc_pidinfo(
        pid, _PROC_PIDTASKINFO, ctypes.c_uint64(0), ctypes.byref(info), _TASKINFO_BYTES
    )
    return int(info[1]) if filled == _TASKINFO_BYTES else 0


def _unknown_resident(_pid: int) -> int:
    """Say that the resident size cannot be told here."""
    return 0


def resident_reader(platform: str = sys.platform) -> Callable[[int], int]:
    """Give the function that tells a child's resident memory in bytes; 0 when it cannot be told."""
    readers = {"linux": _linux_resident, "darwin": _darwin_resident}
    return readers.get(platform, _unknown_resident)
