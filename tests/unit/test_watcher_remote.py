# SPDX-License-Identifier: Apache-2.0
"""Which file systems are polled."""

import os
import sys

import pytest

from halod.roles.watched import remote


@pytest.fixture
def directory(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("kind", [0x6969, 0xFF534D42, 0xFE534D42, 0x65735546, 0x01021997])
def test_shares_are_remote(kind):
    """NFS, CIFS, SMB2, FUSE and 9p, as linux/magic.h numbers them."""
    assert remote.is_remote(0, lambda _descriptor: kind)


@pytest.mark.parametrize("kind", [0xEF53, 0x9123683E, 0x58465342, 0x01021994, 0x794C7630])
def test_disks_are_not(kind):
    """ext4, btrfs, XFS, tmpfs and overlayfs."""
    assert not remote.is_remote(0, lambda _descriptor: kind)


@pytest.mark.skipif(sys.platform != "linux", reason="statfs of Linux")
def test_the_kernel_is_asked():
    """The type of /proc is PROC_SUPER_MAGIC."""
    descriptor = os.open("/proc", os.O_RDONLY)
    try:
        assert remote.file_system_type(descriptor) == 0x9FA0
        assert not remote.is_remote(descriptor)
    finally:
        os.close(descriptor)


def test_what_cannot_be_told_is_local(directory):
    assert remote.type_reader("darwin")(directory) == 0
    assert remote.type_reader()(-1) == 0
