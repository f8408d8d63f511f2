# SPDX-License-Identifier: Apache-2.0
"""What the agent does while it may still read what is root's, and how it gives that up (design 2).

Invariants:

1. `prepare` opens no socket and loads no network library; `become` is called before either happens.
2. Secrets are in memory only, and a Prepared cannot be shown.
3. A directory is given to the agent's account only when it was made here or is empty: a slip in the settings
   must not give away /etc.
"""

import contextlib
import os
import pwd
import resource
import signal
import ssl
import stat
import sys

import msgspec

from halod.agent.tls import tls_context
from halod.errors import EnvironmentFault, UsageError
from halod.policy.load import read_file
from halod.roles import identity, libc, trust
from halod.roles.identity import Ids
from halod.settings import Settings, load, secret


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """Settings and what they name, read. `policy` is None when there is none or it cannot be read.

    `ids` is None when not running as root: the agent then stays who it is.
    """

    settings: Settings
    ids: Ids | None = None
    token: str = ""
    enroll_key: str = ""
    tls: ssl.SSLContext | None = None
    policy: bytes | None = None

    def __repr__(self) -> str:
        """Give the type's name only: secrets are inside."""
        return "<Prepared>"


def prepare(config: str | None) -> Prepared:
    """Read settings, secrets and policy, and make the directories.

    Raises:
        UsageError: the settings, a secret's file or a certificate cannot be used.
        EnvironmentFault: others could write what root would read, or there is no account for the agent.
    """
    settings = load(config)
    trust.demand(settings.trusted_files())
    root = os.geteuid() == 0
    ids = _ids(settings.device.agent_account) if root else None
    report = settings.report
    own_directory(settings.state.dir, 0o700, ids)
    own_directory(settings.run_dir, 0o755, ids)
    return Prepared(
        settings=settings,
        ids=ids,
        token=_secret("report.token_file", report.token_file),
        enroll_key=_secret("report.enroll_key_file", report.enroll_key_file),
        tls=(
            tls_context(report.ca_file, report.client_cert, report.client_key)
            if report.url or settings.policy.url
            else None
        ),
        policy=_policy(settings.policy.path),
    )


def _ids(name: str) -> Ids:
    try:
        entry = pwd.getpwnam(name)
    except (KeyError, ValueError):
        raise EnvironmentFault(
            f"there is no account {name} for the networked part of the service",
            advice="install the package, or make it: useradd --system --no-create-home --shell"
            f" /usr/sbin/nologin {name}",
        ) from None
    if entry.pw_uid == 0:
        raise EnvironmentFault(f"device.agent_account: {name} has uid 0", advice="give the agent its own uid")
    return Ids(entry.pw_uid, entry.pw_gid, tuple(os.getgrouplist(name, entry.pw_gid)))


def _secret(key: str, path: str) -> str:
    """Read a token or key, without the line end that editors add. Raises UsageError."""
    if not path:
        return ""
    try:
        found = secret.read(path)
    except OSError as error:
        raise UsageError(f"{key}: cannot read {path}: {os.strerror(error.errno or 0)}") from None
    if found.mode & 0o077:
        raise UsageError(f"{key}: others can read {path}", advice=f"chmod 0600 {path}")
    if not found.text:
        raise UsageError(
            f"{key}: {path} holds no token", advice=f"one line, up to {secret.LONGEST} visible characters"
        )
    return found.text


def _policy(path: str) -> bytes | None:
    """Read the policy as root; what is wrong with it is told by the status, and costs no start."""
    if not path:
        return None
    try:
        return read_file(path)
    except UsageError:
        return None


def own_directory(path: str, mode: int, ids: Ids | None) -> None:
    """Make a directory of the agent's account, or see that it is one. Raises EnvironmentFault."""
    uid = os.geteuid() if ids is None else ids.uid
    try:
        made = _make(path)
        found = os.lstat(path)
        if not made and stat.S_ISDIR(found.st_mode) and found.st_uid == uid:
            return  # not opened: root without CAP_DAC_OVERRIDE (systemd/halod.service) may not
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            status = os.fstat(descriptor)
            made = made and status.st_uid == os.geteuid()
            if made:
                os.fchmod(descriptor, mode)
            if status.st_uid != uid and ids is not None and (made or not os.listdir(descriptor)):
                os.fchown(descriptor, ids.uid, ids.gid)
                status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        words = os.strerror(error.errno or 0)
        raise EnvironmentFault(f"cannot use the directory {path}: {words}", advice=_advice(ids)) from None
    if status.st_uid != uid:
        raise EnvironmentFault(f"{path} belongs to another account than the agent's", advice=_advice(ids))


def _make(path: str) -> bool:
    """Make a directory, and its parents for everybody to pass; tell whether it was not there.

    Its mode is set by descriptor: the one below the state directory lies where the agent may put a link in its
    place meanwhile, and root must not change the mode of what that points to.
    """
    with contextlib.suppress(FileExistsError):
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        os.mkdir(path, 0o700)
        return True
    return False


def _advice(ids: Ids | None) -> str:
    if ids is None:
        return "set state.dir to a directory of your own, or run as root"
    return "install -d -m 0700 -o ACCOUNT DIRECTORY makes it, with the account of device.agent_account"


def may_read_library(ids: Ids) -> bool:
    """Tell whether the agent's account may read Python's own library, as far as modes say."""
    path = os.path.abspath(getattr(sys, "_MEIPASS", os.__file__))  # a self-contained build's own directory
    while True:
        status = os.stat(path)
        mine = status.st_mode >> 6 if status.st_uid == ids.uid else status.st_mode
        if status.st_uid != ids.uid and status.st_gid in (ids.gid, *ids.groups):
            mine = status.st_mode >> 3
        wanted = 0o5 if stat.S_ISDIR(status.st_mode) else 0o4
        if mine & wanted != wanted:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def become(ids: Ids | None, supervisor: int) -> None:
    """Become the agent's account for good, and end with the supervisor (a process id).

    Raises OSError, StillPrivileged; ProcessLookupError: the supervisor is gone already.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if ids is None:
        identity.keep()
    else:
        identity.drop_bounding_set()
        identity.assume(ids.uid, ids.gid, ids.groups)
        identity.drop_capabilities()
        identity.refuse_return()
    if sys.platform == "linux":
        libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
        libc.prctl(libc.PR_SET_DUMPABLE, 0)  # a token is in memory
        libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        raise ProcessLookupError
