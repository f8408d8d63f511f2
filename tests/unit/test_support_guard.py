# SPDX-License-Identifier: Apache-2.0
"""Where tests put what a slow disk must not hold up."""

import os
import tempfile

import pytest

from tests.support import guard


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_only_a_file_system_in_memory_is_taken(tmp_path, monkeypatch, kind):
    """What the mount table calls tmpfs, and nothing else."""
    monkeypatch.setattr(guard, "ROOM", 0)
    mounts = tmp_path / "mounts"
    mounts.write_text(f"proc /proc proc rw 0 0\nshm {tmp_path} {kind} rw 0 0\n")
    expected = str(tmp_path) if kind == "tmpfs" else tempfile.gettempdir()
    assert guard.memory_directory(str(tmp_path), str(mounts)) == expected


def test_one_that_is_nearly_full_is_not_taken(tmp_path, monkeypatch):
    """Containers give it little room."""
    monkeypatch.setattr(guard, "ROOM", 2**80)
    mounts = tmp_path / "mounts"
    mounts.write_text(f"shm {tmp_path} tmpfs rw 0 0\n")
    assert guard.memory_directory(str(tmp_path), str(mounts)) == tempfile.gettempdir()


def test_without_any_the_temporary_directory_is_taken():
    """Neither the place nor a mount table is there, as on macOS."""
    assert guard.memory_directory("/no/such/place", "/no/such/table") == tempfile.gettempdir()
    assert os.path.isdir(guard.memory_directory())
