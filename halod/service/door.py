# SPDX-License-Identifier: Apache-2.0
"""The only place of halod that starts programs: those of the service manager, for `halod service`.

They are looked for in the system's own directories, never in PATH, run without a shell, with an environment of
their own and without standard input, for at most a minute and a half.
"""

import os
import posixpath
import subprocess
from typing import Final

from halod.errors import EnvironmentFault

DIRECTORIES: Final = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
_ENVIRONMENT: Final = {"PATH": ":".join(DIRECTORIES), "LC_ALL": "C"}
_SECONDS: Final = 90
_SHOWN: Final = 200


def find(name: str, directories: tuple[str, ...] = DIRECTORIES) -> str:
    """Give the path of a program of the system. Raises EnvironmentFault when there is none."""
    for directory in directories:
        path = posixpath.join(directory, name)
        if os.access(path, os.X_OK):
            return path
    raise EnvironmentFault(f"{name} is not installed on this machine")


def run(words: tuple[str, ...], directories: tuple[str, ...] = DIRECTORIES) -> str:
    """Run a program of the system to its end; give what it says went wrong, "" when it went well.

    Raises:
        EnvironmentFault: it is not there, or does not end.
    """
    command = [find(words[0], directories), *words[1:]]
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, a path of the system's, no shell
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=_ENVIRONMENT,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise EnvironmentFault(f"{words[0]} did not come to an end") from None
    if done.returncode == 0:
        return ""
    said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
    return (said[-1] if said else f"exit code {done.returncode}")[:_SHOWN]
