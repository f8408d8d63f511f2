# SPDX-License-Identifier: Apache-2.0
"""Files that hold one secret line. What they hold is never in a message."""

import os
import stat
from typing import Final

from halod.errors import UsageError

LONGEST: Final = 4096
_OTHERS: Final = 0o007 | stat.S_IWGRP


def private_line(path: str, what: str) -> str:
    """Read the one line of a file with a secret. Its group may read it, as Kubernetes and systemd mount such files.

    Raises:
        UsageError: it cannot be read, holds no line, or every account may read it or the group change it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise UsageError(f"{what} {path} is no regular file")
            data = file.read(LONGEST + 1)
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno or 0) if isinstance(error, OSError) else "no path"
        raise UsageError(f"{what} {path} cannot be read: {why}") from None
    if found.st_mode & _OTHERS:
        raise UsageError(f"{what} {path} is open to other accounts", advice=f"chmod 600 {path}")
    try:
        text = data.decode("utf-8").strip()
    except UnicodeDecodeError:
        text = ""
    if not text or len(data) > LONGEST or not text.isprintable():
        raise UsageError(f"{what} {path} has to hold one line of at most {LONGEST} bytes")
    return text
