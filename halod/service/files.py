# SPDX-License-Identifier: Apache-2.0
"""The files of the service, and how they name the installation that they start.

The texts are those of `systemd/`, `launchd/` and `packaging/sysusers.d/`, which the packages install as they are;
only the command, and on Linux the directories that programs may be run from, are put in their places. Invariants:

1. The command is an absolute path, and a Python is started isolated (`-I`): nothing of the environment or of a
   working directory decides what root runs.
2. A path that cannot be written in a unit or property list is refused, never escaped into something else.
"""

import os
import posixpath
import re
import sys
from typing import Final

import msgspec

from halod.errors import EnvironmentFault

LABEL: Final = "dev.halos.halod"
"""The job's label on macOS; also the domain of managed preferences."""
UNIT: Final = "halod.service"
PACKAGED: Final = "/opt/halod"
"""Where the packages install the self-contained build."""

_COMMAND: Final = re.compile(r"^ExecStart=.*$", re.MULTILINE)
_EXECUTABLE: Final = re.compile(r"^ExecPaths=.*$", re.MULTILINE)
_ARGUMENTS: Final = re.compile(r"(<key>ProgramArguments</key>\s*<array>)(.*?)(\s*</array>)", re.DOTALL)
_PLAIN: Final = re.compile(r"/[A-Za-z0-9/._+@:~ -]*\Z")
_EVERYWHERE: Final = "/usr"
_LIBRARIES: Final = ("-/lib", "-/lib64")


class Program(msgspec.Struct, frozen=True):
    """How this installation is started.

    `command` is the program with its arguments up to `run`; `directories` are those it maps code from.
    """

    command: tuple[str, ...]
    directories: tuple[str, ...]

    @property
    def packaged(self) -> bool:
        """Whether this is the installation of the packages, whose files are there as they should be."""
        return self.command[0] == f"{PACKAGED}/halod"


class Sources(msgspec.Struct, frozen=True):
    """The texts of the files, and the paths they were read from."""

    unit: str
    sysusers: str
    job: str
    rotation: str
    paths: tuple[str, ...] = ()


def this_program() -> Program:
    """Say how this very installation is started.

    Raises:
        EnvironmentFault: its paths are none that a unit or property list can hold.
    """
    executable = posixpath.abspath(sys.executable)
    if getattr(sys, "frozen", False):
        real = posixpath.realpath(executable)
        return _checked(Program((real, "run"), (posixpath.dirname(real),)))
    real = posixpath.realpath(executable)
    prefixes = (sys.prefix, sys.base_prefix, posixpath.dirname(real))
    return _checked(Program((executable, "-I", "-m", "halod", "run"), tuple(dict.fromkeys(prefixes))))


def _checked(program: Program) -> Program:
    for path in (program.command[0], *program.directories):
        if not _PLAIN.match(path):
            raise EnvironmentFault(
                "the path of this installation has characters that the service manager's files cannot hold",
                advice="install halod in a directory such as /opt/halod",
            )
    return program


def read_sources() -> Sources:
    """Read the files that come with the package, or, in a source tree, those beside it.

    Raises:
        EnvironmentFault: they are not there.
    """
    package = posixpath.dirname(posixpath.dirname(posixpath.abspath(__file__)))
    names = {
        "unit": "systemd/halod.service",
        "sysusers": "packaging/sysusers.d/halod.conf",
        "job": f"launchd/{LABEL}.plist",
        "rotation": f"launchd/{LABEL}.conf",
    }
    read: dict[str, str] = {}
    paths = []
    for field, name in names.items():
        path = posixpath.join(package, "data", name)
        if not os.path.exists(path):
            path = posixpath.join(posixpath.dirname(package), name)
        try:
            with open(path, encoding="utf-8") as file:
                read[field] = file.read()
        except OSError:
            raise EnvironmentFault(
                f"the file {name} of this installation is missing", advice="install halod again"
            ) from None
        paths.append(path)
    return Sources(**read, paths=tuple(paths))


def unit_for(program: Program, text: str) -> str:
    """Give the systemd unit that starts this installation; for the packages' own it is the text as it is."""
    if program.packaged:
        return text
    directories = [path for path in program.directories if not _covered(path)]
    allowed = [_EVERYWHERE, *(_quoted(path) for path in directories), *_LIBRARIES]
    command = " ".join(_quoted(word) for word in program.command)
    text = _COMMAND.sub(lambda _: f"ExecStart={command}", text, count=1)
    return _EXECUTABLE.sub(lambda _: f"ExecPaths={' '.join(allowed)}", text, count=1)


def _covered(path: str) -> bool:
    return path == _EVERYWHERE or path.startswith(_EVERYWHERE + "/")


def _quoted(word: str) -> str:
    """Quote a word for a unit (systemd.syntax(7)): only a blank needs it among the characters let through."""
    return f'"{word}"' if " " in word else word


def job_for(program: Program, text: str) -> str:
    """Give the launchd job that starts this installation; for the packages' own it is the text as it is."""
    if program.packaged:
        return text
    words = "".join(f"\n\t\t<string>{word}</string>" for word in program.command)
    return _ARGUMENTS.sub(lambda found: f"{found[1]}{words}{found[3]}", text, count=1)
