# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests that need another account's eyes."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def shared_tmp():
    """Give a temporary directory whose ancestors every account may pass (pytest's own are 0700)."""
    path = Path(tempfile.mkdtemp()).resolve()
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def account():
    """Give a context in which this process, run by root, has an account's rights to files."""

    @contextlib.contextmanager
    def become(uid: int):
        groups = os.getgroups()
        os.setgroups([])
        os.setegid(uid)
        os.seteuid(uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)

    return become
