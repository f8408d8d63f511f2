# SPDX-License-Identifier: Apache-2.0
"""Why a path was not read: the two answers of the door, and how an errno becomes one of them (design 3.5).

Neither carries a path: what a user named a file is the user's text.
"""

import errno


class Absent(Exception):
    """The path does not exist (ENOENT, or a component that is not a directory): not reported."""


class Refused(Exception):
    """A path that must not or cannot be read.

    `reason` is one of status.Reason; `errno` the errno's name when reason is "error", else "".
    """

    def __init__(self, reason: str, errno: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.errno = errno


_REASONS = {errno.EACCES: "unreadable", errno.EPERM: "denied-by-system"}


def fault(error: OSError) -> Absent | Refused:
    """Give the answer for a failed system call; raise it `from None`, as an OSError names the path."""
    code = error.errno
    if code in (errno.ENOENT, errno.ENOTDIR):
        return Absent()
    if code in _REASONS:
        return Refused(_REASONS[code])
    return Refused("error", errno.errorcode.get(code or 0, "EIO"))
