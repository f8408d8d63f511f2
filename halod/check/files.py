# SPDX-License-Identifier: Apache-2.0
"""Who could write what the settings name, and who could read the secrets among it.

Only files of root's or the service's are opened here, never one of a home. The content of a secret is never in
a message; what is told of it is its form.
"""

import os
import stat
from collections.abc import Iterable

from halod.check.model import Check, fault, ok, warning
from halod.roles import trust
from halod.settings import Settings, secret

AS_ROOT = "run halod check as root"


def ownership(name: str, paths: Iterable[str], what: str) -> list[Check]:
    """Check that nobody but root could have written `paths` or replaced something on the way to them."""
    problems = trust.check(paths)
    if not problems:
        return [ok(name, f"only root can write {what}")]
    return [
        fault(
            name,
            problem,
            "root runs or believes this file: make root its owner, and remove others' write right",
        )
        for problem in problems
    ]


def secrets(settings: Settings, *, root: bool) -> list[Check]:
    """Check the files of the token, the enrolment key and the client key."""
    return [_secret(key, path, root=root) for key, path in settings.secret_files()]


def is_out_of_reach(path: str) -> bool:
    """Tell whether this account lacks the right to read a file that may be there: root can look at it."""
    if os.geteuid() == 0:
        return False
    try:
        os.stat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return not os.access(path, os.R_OK)


def _secret(key: str, path: str, *, root: bool) -> Check:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return fault(key, f"{path} does not exist", "place the file, or remove the key from the settings")
    except PermissionError:
        return warning(key, f"{path} cannot be looked at by this account", AS_ROOT)
    except OSError as error:
        return fault(key, f"{path} cannot be looked at: {os.strerror(error.errno or 0)}")
    wrong = _form(key, path, status, root=root)
    if wrong is not None:
        return wrong
    if not key.endswith(("token_file", "enroll_key_file")):
        return ok(key, f"{path} is readable by its owner only")
    return _content(key, path)


def _form(key: str, path: str, status: os.stat_result, *, root: bool) -> Check | None:
    """Say what is wrong with kind, mode and owner of a secret's file, or nothing."""
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return fault(key, f"{path} is no regular file", "name the file that holds the secret")
    if mode & 0o077:
        return fault(key, f"{path} can be read by others (mode {mode:04o})", f"chmod 0600 {path}")
    if root and status.st_uid != 0:
        return fault(key, f"{path} is owned by uid {status.st_uid}, not by root", f"chown root {path}")
    return None


def _content(key: str, path: str) -> Check:
    try:
        text = secret.read(path).text
    except PermissionError:
        return warning(key, f"{path} cannot be read by this account", AS_ROOT)
    except OSError as error:
        return fault(key, f"{path} cannot be read: {os.strerror(error.errno or 0)}")
    if text:
        return ok(key, f"{path} is readable by its owner only and holds one line")
    return fault(
        key,
        f"{path} does not hold one token",
        f"write the token alone into it: one line, no blanks, at most {secret.LONGEST} characters",
    )
