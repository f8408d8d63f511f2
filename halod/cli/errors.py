# SPDX-License-Identifier: Apache-2.0
"""How a command ends: the one place that turns an error into a line on stderr and an exit code.

The line says what, where and what to do. What a fault inside halod says of itself is never shown: its text
may quote a user's file, so its type has to be enough.
"""

import argparse
import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from halod.errors import EnvironmentFault, HalodError, UsageError

FAULT = 70
"""Exit code of a fault inside halod (EX_SOFTWARE of sysexits.h)."""
INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the number of SIGINT, as shells count."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
CLOSED = 141
"""Exit code when the reader of stdout went away: 128 and the number of SIGPIPE."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as it is written, to the terminal's width (argparse would import shutil to learn it)."""

    def __init__(self, prog: str) -> None:
        from halod.cli.colour import width

        super().__init__(prog, width=width(sys.stdout) - 2)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are ours: one line, and never a value after an unknown option."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError.

        Raises:
            UsageError: always.
        """
        head, found, rest = message.partition("unrecognized arguments: ")
        if found:
            names = [word.partition("=")[0] for word in rest.split() if word.startswith("-") and word != "-"]
            message = f"{head}unknown option {names[0]}" if names else f"{head}too many arguments"
        raise UsageError(message, advice=f"see {self.prog} --help")


def guard(
    command: Callable[[list[str]], int], words: list[str], *, process: bool, program: str = "halod"
) -> int:
    """Run a command and give its exit code, whatever happens in it.

    `process` says that this is the whole process: a closed stdout is then replaced, so that the interpreter
    does not complain about it at its end.
    """
    try:
        if process:
            _standard_streams()
        _plain_output()
        code = command(words)
        sys.stdout.flush()
    except HalodError as error:
        _say(program, f"{error.message}; {error.advice}" if error.advice else error.message)
        code = error.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 2
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = CLOSED
        if process:
            _forget_stdout()
    except OSError as error:
        code = _faulty(error, program)
        if process:
            _forget_stdout()
    except Exception as error:  # noqa: BLE001 - the last resort: its type may be shown, its text may not
        code = _fault(error, program)
    return code


def _fault(error: Exception, program: str) -> int:
    _say(program, f"a fault inside halod ({type(error).__name__}); please report it with the command you ran")
    return FAULT


def _faulty(error: OSError, program: str) -> int:
    """Tell a disk that is full, where the output should go, from a fault of ours."""
    if error.errno not in _FULL:
        return _fault(error, program)
    _say(program, f"the output could not be written ({errno.errorcode[error.errno]})")
    return EnvironmentFault.exit_code


def _forget_stdout() -> None:
    """Replace a stdout that takes nothing: the interpreter would complain about what is left in its buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 1)


def leave(code: int) -> NoReturn:
    """End at once: taking the interpreter apart is a twentieth of a scan, and nothing is left to be done."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # None when it was closed at the start
            stream.flush()
    os._exit(code)


def _standard_streams() -> None:
    """Keep the numbers 0 to 2 from what is opened later: a pipe of a worker must not be taken for stdout.

    Raises:
        EnvironmentFault: stdout is closed, so there is nowhere to print.
    """
    closed = sys.stdout is None
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if closed:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the whole process
        raise EnvironmentFault("stdout is closed", advice="redirect it to a file, a pipe or /dev/null")


def _plain_output() -> None:
    """Never fail on a character that the terminal's encoding does not have."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _say(program: str, text: str) -> None:
    from halod.status import clean

    with suppress(OSError, AttributeError):
        sys.stderr.write(f"{program}: error: {clean(text)}\n")
        sys.stderr.flush()
