# SPDX-License-Identifier: Apache-2.0
"""The seccomp filter of a worker: a deny-list in classic BPF, built before the fork (seccomp(2)).

A deny-list, because the interpreter and its libraries move between system calls from release to release: a
missing one in an allow-list would cost the account's answer. What is refused fails with EPERM, so that
library code takes its ordinary error path; a call through another calling convention (32-bit, x32) ends the
process, since the numbers below would not mean what they say.

The filter also stands where Landlock is missing: no file can be opened for writing, nothing
renamed or removed.
"""

import ctypes
import errno
import struct
from collections.abc import Callable
from typing import Final

import msgspec

from halod.roles import libc, syscalls

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EPERM  # SECCOMP_RET_ERRNO
_KILL: Final = 0x80000000  # the whole process; kernels before 4.14 end the thread, which is the same here

# struct seccomp_data: number, architecture, instruction pointer, six 64-bit arguments. Both architectures are
# little-endian: the low half of an argument comes first.
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_ARGUMENTS: Final = 16

_X32_BIT: Final = 0x40000000
_MODE_FILTER: Final = 2

# O_WRONLY, O_RDWR, O_CREAT, O_TRUNC: the same on both architectures. O_TMPFILE needs one of the first two.
_WRITING: Final = 0o3 | 0o100 | 0o1000
_ANY: Final = 0xFFFFFFFF
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15  # would send any signal to any process of the account
_FIOSETOWN, _TIOCSTI = 0x8901, 0x5412


class Machine(msgspec.Struct, frozen=True):
    """One architecture: its AUDIT_ARCH value and its column in the table of numbers."""

    audit: int
    column: int
    x32: bool


_MACHINES: Final = {
    "x86_64": Machine(audit=0xC000003E, column=0, x32=True),
    "aarch64": Machine(audit=0xC00000B7, column=1, x32=False),
}

# (call, argument, test, values): refused when the argument passes one of the tests.
_CONDITIONS: Final = (
    (syscalls.OPEN, 1, _ANY_BIT, (_WRITING,)),
    (syscalls.OPENAT, 2, _ANY_BIT, (_WRITING,)),
    (syscalls.FCNTL, 1, _EQUAL, (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX)),
    (syscalls.IOCTL, 1, _EQUAL, (_FIOSETOWN, _TIOCSTI)),
    (syscalls.PRLIMIT64, 0, _ANY_BIT, (_ANY,)),  # pid 0 is the worker itself
)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Pack struct sock_filter."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _conditional(number: int, argument: int, test: int, values: tuple[int, ...]) -> list[bytes]:
    """Refuse one call when one of its arguments passes a test; otherwise allow it."""
    body = [_instruction(_LOAD, _ARGUMENTS + 8 * argument)]
    for value in values:
        body += [_instruction(test, value, 0, 1), _instruction(_RETURN, _REFUSE)]
    body.append(_instruction(_RETURN, _ALLOW))
    return [_instruction(_EQUAL, number, 0, len(body)), *body]


def build(machine: str) -> bytes:
    """Give the filter for an architecture as `os.uname` names it; empty when it is not known here."""
    here = _MACHINES.get(machine)
    if here is None:
        return b""
    code = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, here.audit, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
    ]
    if here.x32:
        code += [_instruction(_AT_LEAST, _X32_BIT, 0, 1), _instruction(_RETURN, _KILL)]
    for numbers in syscalls.DENIED.values():
        if numbers[here.column] >= 0:
            code += [_instruction(_EQUAL, numbers[here.column], 0, 1), _instruction(_RETURN, _REFUSE)]
    for numbers, argument, test, values in _CONDITIONS:
        if numbers[here.column] >= 0:
            code += _conditional(numbers[here.column], argument, test, values)
    code.append(_instruction(_RETURN, _ALLOW))
    return b"".join(code)


def install(program: bytes, prctl: Callable[..., int] = libc.prctl) -> bool:
    """Put the filter into force for this process, for good. Needs no_new_privs.

    False when there is no filter for this machine or the kernel was built without seccomp (EINVAL,
    prctl(2)); raises OSError for anything else.
    """
    if not program:
        return False
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a 16-bit count, padding, a pointer.
    header = ctypes.create_string_buffer(
        struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    )
    try:
        prctl(libc.PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(header))
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOSYS):
            return False
        raise
    return True
