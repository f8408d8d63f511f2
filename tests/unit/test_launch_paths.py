# SPDX-License-Identifier: Apache-2.0
"""Whose word a path is: the directories of launchers.md 1, spelled exactly."""

import pytest

from halod.launch.paths import program


@pytest.mark.parametrize(
    ("command", "trusted"),
    [
        ("npx", True),
        ("/usr/bin/npx", True),
        ("/opt/homebrew/bin/uvx.exe", True),
        ("C:\\Program Files\\nodejs\\npx.cmd", True),
        ("/Users/jos\u00e9/.local/bin/uvx", True),
        ("/home/d\ufeffev/.local/bin/uvx", False),
        ("/home/\u00addev/.local/bin/npx", False),
        ("/home/d\uff45v/.local/bin/uvx", False),
        ("/home/:dev/.local/bin/uvx", False),
        ("/usr/bin//npx", False),
        ("//usr/bin/npx", False),
        ("/usr/bin/./npx", False),
        ("/usr/bin/../bin/npx", False),
        ("C:\\Program Files\\nodejs\\\\npx.cmd", False),
        ("/npx", False),
        ("./npx", False),
        ("/tmp/x/npx", False),
    ],
)
def test_only_the_known_directories_are_believed(command, trusted):
    """A doubled slash or a dot is a spelling that no installer writes: in doubt, not approved."""
    assert program(command)[2] is trusted
