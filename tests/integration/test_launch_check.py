# SPDX-License-Identifier: Apache-2.0
"""A small `make launch-check`: the real npx and uvx, where installed, against loopback package servers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(700)
def test_what_the_launchers_run_is_what_is_approved():
    """Every approved definition runs the pinned program; what runs another is not approved (design 5)."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.launchcheck.run", "--mutants", "8", "--insertions", "14"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    if "skipped, no launcher is installed" in done.stdout:
        pytest.skip("neither npx nor uvx is installed: nothing to compare with")
