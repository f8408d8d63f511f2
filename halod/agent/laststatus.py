# SPDX-License-Identifier: Apache-2.0
"""The last status as a file at a stable path, for osquery, Fleet and Jamf extension attributes (design 9).

It is the whole document, not cut to what a report may hold. Mode 0600: for the agent's account and root.
"""

import os
from typing import Final

from halod.agent.files import read_small, replace
from halod.status import Status, encode

FILE_NAME: Final = "last-status.json"
MOST: Final = 64 * 1024 * 1024
"""Bytes of a status that a reader takes: an answer is at most 1 MiB an account."""


def path_in(directory: str) -> str:
    """Give the path of the file in a state directory."""
    return os.path.join(directory, FILE_NAME)


def write(directory: str, status: Status) -> None:
    """Put a status in place of the one before.

    Raises:
        NotRegular: something other than a regular file stands there.
        OSError: it cannot be written; the one before is still there, whole.
    """
    replace(path_in(directory), encode(status) + b"\n")


def read(directory: str) -> bytes | None:
    """Give the file's bytes, or None when no status was written yet. Raises OSError."""
    return read_small(path_in(directory), MOST)
