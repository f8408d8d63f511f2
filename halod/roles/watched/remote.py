# SPDX-License-Identifier: Apache-2.0
"""Which file systems send no event for what another machine or process changes: these are polled.

`fstatfs` is bound when this is imported, before any fork. Where it does not work (not Linux) a file system
counts as local: there everything is polled anyway.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Final

# f_type of statfs(2), from linux/magic.h and the sources of the file systems that are built outside of Linux.
REMOTE: Final = frozenset(
    {
        0x6969,  # NFS
        0x517B,  # SMB
        0xFF534D42,  # CIFS
        0xFE534D42,  # SMB2
        0x65735546,  # FUSE: sshfs and others; some are local, which costs a look every two seconds
        0x01021997,  # 9p: shares of virtual machines, WSL
        0x00C36400,  # Ceph
        0x5346414F,  # OpenAFS
        0x6B414653,  # AFS of Linux
        0x73757245,  # Coda
        0x01161970,  # GFS2
        0x7461636F,  # OCFS2
        0x0BD00BD0,  # Lustre
        0x47504653,  # GPFS
        0x19830326,  # BeeGFS
        0x786F4256,  # shared folders of VirtualBox
        0xBACBACBC,  # shared folders of VMware
        0x7C7C6673,  # shared folders of Parallels
    }
)

_STATFS_BYTES: Final = 512  # more than any architecture's struct statfs; f_type is its first word


def _unknown(_descriptor: int) -> int:
    """Stand in where there is no fstatfs of Linux's form."""
    return 0


def type_reader(platform: str = sys.platform) -> Callable[[int], int]:
    """Give the function that tells a descriptor's file system type; 0 when it cannot be told."""
    if platform != "linux":
        return _unknown
    fstatfs = ctypes.CDLL(None, use_errno=True).fstatfs
    fstatfs.argtypes = (ctypes.c_int, ctypes.c_void_p)

    def read(descriptor: int) -> int:
        found = (ctypes.c_ulong * (_STATFS_BYTES // ctypes.sizeof(ctypes.c_ulong)))()
        return int(found[0]) & 0xFFFFFFFF if fstatfs(descriptor, ctypes.addressof(found)) == 0 else 0

    return read


file_system_type: Final = type_reader()


def is_remote(descriptor: int, read: Callable[[int], int] = file_system_type) -> bool:
    """Whether changes in an open directory can happen without an event."""
    return read(descriptor) in REMOTE
