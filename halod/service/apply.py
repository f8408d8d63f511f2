# SPDX-License-Identifier: Apache-2.0
"""A plan carried out, or shown without doing anything.

A file is written beside its place and renamed, so that the service manager never reads half of one; one that has
the right content and mode is left alone. What stands in the way (a link, a directory) is refused, not followed.
"""

import contextlib
import os
import posixpath
import shlex
import stat
from collections.abc import Callable, Iterator
from typing import Final

from halod.errors import EnvironmentFault
from halod.service import door
from halod.service.plan import Command, File, Plan

_MODE: Final = 0o644

Run = Callable[[tuple[str, ...]], str]


def carry_out(plan: Plan, run: Run = door.run) -> Iterator[str]:
    """Do what a plan says; give one line for each thing that was done or was as it should be.

    Raises:
        EnvironmentFault: a file cannot be written or removed, or a program fails; what came before stays done, and
            doing it all again is safe.
    """
    for path in (*(file.path for file in plan.files), *plan.removals):
        _demand_inside(plan.prefix, path)
    yield from _programs(plan.before, run)
    for file in plan.files:
        yield _written(file)
    for path in plan.removals:
        yield _removed(path)
    yield from _programs(plan.after, run)


def _programs(commands: tuple[Command, ...], run: Run) -> Iterator[str]:
    for command in commands:
        wrong = run(command.words)
        if wrong and not command.may_fail:
            raise EnvironmentFault(f"{shlex.join(command.words)} failed: {wrong}")
        yield f"{'nothing to do' if wrong else 'ran'}: {shlex.join(command.words)}"


def _demand_inside(prefix: str, path: str) -> None:
    """Refuse a place that a link of an image leads out of it, to this machine's own. Raises EnvironmentFault."""
    root = posixpath.realpath(prefix).rstrip("/") + "/"
    if not (posixpath.realpath(posixpath.dirname(path)) + "/").startswith(root):
        raise EnvironmentFault(
            f"{path} lies outside {prefix}: a link leads there", advice="make the links of the image relative"
        )


def _written(file: File) -> str:
    data = file.text.encode()
    try:
        if _same(file.path, data):
            return f"unchanged: {file.path}"
        os.makedirs(posixpath.dirname(file.path), mode=0o755, exist_ok=True)
        _replace(file.path, data)
    except OSError as error:
        raise EnvironmentFault(f"cannot write {file.path}: {error.strerror}") from None
    return f"wrote: {file.path}"


def _same(path: str, data: bytes) -> bool:
    """Whether a regular file has this content and our mode. Raises OSError when something else stands there."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        raise FileExistsError(0, "something other than a file stands there")
    if stat.S_IMODE(found.st_mode) != _MODE or found.st_uid != os.geteuid() or found.st_size != len(data):
        return False
    with open(path, "rb") as file:
        return file.read() == data


def _replace(path: str, data: bytes) -> None:
    beside = f"{path}.{os.getpid()}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, _MODE)
            os.fsync(descriptor)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _removed(path: str) -> str:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return f"not there: {path}"
    except OSError as error:
        raise EnvironmentFault(f"cannot remove {path}: {error.strerror}") from None
    return f"removed: {path}"


def show(plan: Plan) -> Iterator[str]:
    """Give the lines that tell what a plan would do, with the files as they would be written."""
    for command in plan.before:
        yield f"# would run: {shlex.join(command.words)}"
    for file in plan.files:
        yield f"# would write: {file.path} (mode 0644)"
        yield file.text
    for path in plan.removals:
        yield f"# would remove: {path}"
    for command in plan.after:
        yield f"# would run: {shlex.join(command.words)}"
