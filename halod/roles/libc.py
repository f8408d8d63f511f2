# SPDX-License-Identifier: Apache-2.0
"""The few Linux calls that Python does not offer, through ctypes.

Everything is bound when this module is imported, that is before any fork: a worker loads nothing. Off Linux
every call raises OSError with ENOSYS, which callers take as "this system has no such thing".
"""

import ctypes
import errno
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

Call = Callable[..., int]


def _missing(*_arguments: object) -> int:
    """Stand in for a call that this system lacks."""
    ctypes.set_errno(errno.ENOSYS)
    return -1


def bind(platform: str = sys.platform) -> tuple[Call, Call, Call, Call]:
    """Give libc's prctl, syscall, capget and capset."""
    if platform != "linux":
        return _missing, _missing, _missing, _missing
    libc = ctypes.CDLL(None, use_errno=True)
    word = ctypes.c_ulong
    libc.prctl.argtypes = (ctypes.c_int, word, word, word, word)
    libc.syscall.argtypes = (ctypes.c_long, word, word, word, word)
    libc.syscall.restype = ctypes.c_long
    return libc.prctl, libc.syscall, libc.capget, libc.capset


_prctl, _syscall, _capget, _capset = bind()

# Version 3 of the capability interface: two 32-bit halves, each effective, permitted, inheritable
# (capget(2), linux/capability.h).
_CAPABILITY_VERSION = 0x20080522
_HEADER = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
_Sets = ctypes.c_uint32 * 6


def _checked(name: str, result: int) -> int:
    """Turn -1 into OSError. The text is the call's name: no look-up in a message catalogue after a fork."""
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result


def prctl(option: int, first: int = 0, second: int = 0, third: int = 0, fourth: int = 0) -> int:
    """Steer this process, as the manual page of prctl says. Raises OSError."""
    return _checked("prctl", _prctl(option, first, second, third, fourth))


def syscall(number: int, first: int = 0, second: int = 0, third: int = 0, fourth: int = 0) -> int:
    """Make a system call by its number. Pointers are passed as addresses. Raises OSError."""
    return _checked("syscall", _syscall(number, first, second, third, fourth))


def capabilities() -> bool:
    """Whether this process holds any capability: effective, permitted or inheritable. Raises OSError."""
    sets = _Sets()
    _checked("capget", _capget(_HEADER, sets))
    return any(sets)


def drop_capabilities() -> None:
    """Empty the effective, permitted and inheritable sets. Raises OSError."""
    _checked("capset", _capset(_HEADER, _Sets()))
