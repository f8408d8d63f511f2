# SPDX-License-Identifier: Apache-2.0
"""Landlock: a worker reads beneath the given directories and touches nothing else (landlock(7)).

Invariants:

1. Every access right that the running kernel knows (up to ABI 7, the newest known here) is handled, that is
   refused; only reading files and listing directories beneath the given descriptors is granted.
2. From ABI 4 on no TCP port can be bound or connected to; from ABI 6 on no abstract Unix socket can be
   connected to and no signal sent outside of the worker.
3. "Not there" (an old kernel, or switched off at boot) is told from "failed": the second raises, and the
   worker ends without an answer.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterable

from halod.roles import libc

# The same numbers on every architecture.
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446

_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3

# Rights by the ABI that brought them (landlock(7), "Landlock ABI versions").
_FILESYSTEM = ((1, (1 << 13) - 1), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15))
_NETWORK = ((4, 0b11),)  # bind and connect of TCP
_SCOPE = ((6, 0b11),)  # abstract Unix sockets and signals
_NOT_THERE = frozenset({errno.ENOSYS, errno.EOPNOTSUPP})

SystemCall = Callable[..., int]


def abi(call: SystemCall = libc.syscall) -> int:
    """Give the kernel's Landlock ABI version; 0 when it has none or it is switched off."""
    try:
        return call(_CREATE_RULESET, 0, 0, _VERSION_FLAG)
    except OSError:
        return 0


def _rights(table: Iterable[tuple[int, int]], version: int) -> int:
    """Add up the rights that an ABI version knows."""
    return sum(bits for since, bits in table if version >= since)


def ruleset(version: int) -> bytes:
    """Give struct landlock_ruleset_attr for an ABI version, in the length that this version takes."""
    fields = [_rights(_FILESYSTEM, version)]
    if version >= 4:
        fields.append(_rights(_NETWORK, version))
    if version >= 6:
        fields.append(_rights(_SCOPE, version))
    return struct.pack(f"={len(fields)}Q", *fields)


def restrict(
    version: int,
    directories: Iterable[int],
    call: SystemCall = libc.syscall,
    close: Callable[[int], None] = os.close,
) -> bool:
    """Confine this process, for good, to reading beneath open directories. Needs no_new_privs.

    `version` is what `abi` gave before the fork. False when the kernel has no Landlock; raises OSError when
    it has and refuses.
    """
    if version < 1:
        return False
    attributes = ctypes.create_string_buffer(ruleset(version))
    try:
        # The buffer is one byte longer than the structure: create_string_buffer appends a NUL.
        rules = call(_CREATE_RULESET, ctypes.addressof(attributes), len(attributes) - 1, 0)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return False
        raise
    for directory in directories:
        rule = ctypes.create_string_buffer(struct.pack("=Qi", _READ_FILE | _READ_DIR, directory))
        call(_ADD_RULE, rules, _RULE_PATH_BENEATH, ctypes.addressof(rule), 0)
    call(_RESTRICT_SELF, rules, 0)
    close(rules)
    return True
