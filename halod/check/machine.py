# SPDX-License-Identifier: Apache-2.0
"""What the machine has to have: the agent's account, accounts to scan, the state directory, a sandbox."""

import os
import pwd
import stat
import sys

from halod.check.files import AS_ROOT
from halod.check.model import Check, fault, ok, warning
from halod.roles import landlock, libc, seccomp, trust
from halod.settings import Settings

_PR_GET_SECCOMP = 21
_LEAST_FREE = 64 * 1024 * 1024
"""Bytes: the state database with 10,000 transitions takes about a third of it."""


def entry(name: str) -> pwd.struct_passwd | None:
    """Give an account's password entry, None when there is none."""
    try:
        return pwd.getpwnam(name)
    except (KeyError, ValueError):
        return None


def accounts(settings: Settings, *, root: bool) -> list[Check]:
    """Check the agent's account and the accounts that are named."""
    name = settings.device.agent_account
    found = entry(name)
    if found is not None and found.pw_uid == 0:
        agent = fault(
            "device.agent_account", f"{name} has uid 0", "the agent has the network: give it its own uid"
        )
    elif found is not None:
        agent = ok("device.agent_account", f"the account {name} exists (uid {found.pw_uid})")
    elif root:
        agent = fault("device.agent_account", f"there is no account {name}", _make(name))
    else:
        agent = warning(
            "device.agent_account", f"there is no account {name}; as root, the service needs it", _make(name)
        )
    named = settings.device.accounts
    missing = [] if isinstance(named, str) else [other for other in named if entry(other) is None]
    return [
        agent,
        *(
            warning(
                "device.accounts",
                f"there is no account {other} on this machine",
                "it is reported as no-account",
            )
            for other in missing
        ),
    ]


def _make(name: str) -> str:
    if sys.platform == "darwin":
        return f"install the package, or make a hidden account {name} without a shell"
    return f"useradd --system --no-create-home --shell /usr/sbin/nologin {name}"


def state(settings: Settings, *, root: bool) -> list[Check]:
    """Check the directory of the state database: owner, mode, room, and who could replace it."""
    path = settings.state.dir
    name = "state.dir"
    parents = [fault(name, problem, _parent_advice(path)) for problem in _parents(path)] if root else []
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return parents or [ok(name, f"{path} does not exist yet; the service makes it at its first start")]
    except PermissionError:
        return [*parents, warning(name, f"{path} cannot be looked at by this account", AS_ROOT)]
    except OSError as error:
        return [*parents, fault(name, f"{path} cannot be looked at: {os.strerror(error.errno or 0)}")]
    if not stat.S_ISDIR(status.st_mode):
        return [*parents, fault(name, f"{path} is no directory")]
    return [*parents, *_directory(settings, status, root=root)]


def _parents(path: str) -> list[str]:
    return trust.check([os.path.dirname(path)])


def _parent_advice(path: str) -> str:
    return f"others could replace {path}: make root the owner of what it lies in"


def _directory(settings: Settings, status: os.stat_result, *, root: bool) -> list[Check]:
    path, name = settings.state.dir, "state.dir"
    checks = _owner(settings, status.st_uid, root=root)
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o022:
        checks.append(fault(name, f"{path} can be written by others (mode {mode:04o})", f"chmod 0700 {path}"))
    elif mode & 0o055:
        checks.append(warning(name, f"{path} can be read by others (mode {mode:04o})", f"chmod 0700 {path}"))
    room = os.statvfs(path)
    if room.f_bavail * room.f_frsize < _LEAST_FREE:
        checks.append(
            warning(name, f"less than 64 MiB are free in {path}", "make room: a full disk delays reports")
        )
    if checks:
        return checks
    unseen = "" if root else "; who could replace it, and what it holds, was not checked without root"
    return [ok(name, f"{path} belongs to the agent{unseen}")]


def _owner(settings: Settings, uid: int, *, root: bool) -> list[Check]:
    """Hold the owner of the state directory against the account that the agent runs as.

    A service of root's has an agent of its own account; one that somebody else starts is that person's own.
    """
    path, account = settings.state.dir, settings.device.agent_account
    agent = entry(account)
    if agent is not None and uid == agent.pw_uid:
        return []
    if root:
        words = f"{path} is owned by uid {uid}, not by {account}"
        return [] if agent is None else [fault("state.dir", words, f"chown {account} {path}")]
    if uid == os.geteuid():
        return []
    words = f"{path} is owned by uid {uid}, which is neither {account} nor this account"
    return [warning("state.dir", words, AS_ROOT)]


def sandbox() -> Check:
    """Check what confines the workers beside their uid."""
    if sys.platform != "linux":
        return ok(
            "sandbox", "workers run as the account they read; this system has neither Landlock nor seccomp"
        )
    return words_of_sandbox(
        landlock.abi(), filtered=_has_seccomp() and bool(seccomp.build(os.uname().machine))
    )


def words_of_sandbox(abi: int, *, filtered: bool) -> Check:
    """Say what a Landlock ABI (0: none) and the system call filter give."""
    missing = [
        word for word, there in (("Landlock", abi > 0), ("the system call filter", filtered)) if not there
    ]
    if not missing:
        return ok("sandbox", f"workers are confined by Landlock (ABI {abi}) and a system call filter")
    return warning(
        "sandbox",
        f"partial: this kernel lacks {' and '.join(missing)}",
        "workers still run as the account they read, without rights; a newer kernel confines them further",
    )


def _has_seccomp() -> bool:
    try:
        libc.prctl(_PR_GET_SECCOMP, 0)
    except OSError:
        return False
    return True
