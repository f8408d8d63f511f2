# SPDX-License-Identifier: Apache-2.0
"""The supervisor's process id as a file, where log rotation looks for it (launchd/dev.halos.halod.conf).

Only on macOS, where newsyslog(8) ends the service so that launchd opens a new log; systemd needs none. The
file is root's, in a directory of root's: whoever could write it would choose whom newsyslog kills.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Final

PATH: Final = "/var/run/halod.pid"


def wanted(platform: str = sys.platform) -> str:
    """Give where the file belongs, "" when there is to be none: on Linux, and for a service that is not root's."""
    return PATH if platform == "darwin" and os.geteuid() == 0 else ""


@contextlib.contextmanager
def held(path: str) -> Iterator[None]:
    """Keep the file, 0644, while the block runs; with "" do nothing. A file that cannot be made costs rotation only.

    What it is called is never followed or written through: a new file takes the place.
    """
    if path:
        with contextlib.suppress(OSError):
            _write(path)
    try:
        yield
    finally:
        if path:
            with contextlib.suppress(OSError):
                _remove(path)


def _write(path: str) -> None:
    beside = f"{path}.{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        os.fchmod(descriptor, 0o644)
        os.write(descriptor, b"%d\n" % os.getpid())
    finally:
        os.close(descriptor)
    os.replace(beside, path)


def _remove(path: str) -> None:
    """Remove the file, unless it is another supervisor's by now."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        mine = os.read(descriptor, 32) == b"%d\n" % os.getpid()
    finally:
        os.close(descriptor)
    if mine:
        os.unlink(path)
