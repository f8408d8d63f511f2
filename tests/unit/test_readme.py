# SPDX-License-Identifier: Apache-2.0
"""The README shows what halod really prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def run(*words: str) -> str:
    """What a halod command prints, at the README's width and without colour."""
    env = {**os.environ, "COLUMNS": "118", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "halod", *words]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False).stdout


def test_the_example_output_is_that_of_a_real_run():
    """The block after `make run` is the scan of the demonstration home, byte for byte."""
    words = re.search(r"^\$ halod (scan .*)$", README, re.MULTILINE).group(1).split()

    assert run(*words).strip() in README


def test_every_command_of_the_help_is_named():
    """A command that `halod --help` lists is in the README's table."""
    listed = re.findall(r"^  ([a-z]+)  +\S", run("--help"), re.MULTILINE)

    assert listed
    assert [name for name in listed if f"`halod {name}" not in README] == []


def test_every_linked_file_exists():
    """No link of the README leads nowhere."""
    targets = re.findall(r"\]\(([^)#]+)\)", README)

    assert targets
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []
