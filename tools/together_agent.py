# SPDX-License-Identifier: Apache-2.0
"""`halod run` for `make run`, where the command itself would have no home to scan: `together_agent.py OPTIONS.json`.

The service takes homes from the password database and never scans root's. So for root, and for an account that the
database does not know (in a container), it is told of one account more. As root, in this order:

1. in a user namespace in which root is an ordinary account: what is scanned is root's own home, with root's rights
   to files and none beyond;
2. where that is not permitted: as root does it, with the bundled demonstration home, which is then said.

OPTIONS: {"config", "name", "home", "copy"}; `copy` is a demonstration home that `nobody` can read.
"""

import contextlib
import ctypes
import json
import os
import pwd
import sys

from halod.accounts import Database
from halod.roles import identity, watcher
from halod.roles.notify import Notifier
from halod.roles.service import Service

_NEW_USER_NAMESPACE = 0x10000000
_INSIDE = 64000  # any number that is no account's of the system
_NOBODY = 65534


class _Accounts(Database):
    """The system's accounts and one more."""

    def __init__(self, name: str, uid: int, gid: int, home: str) -> None:
        self._entry = pwd.struct_passwd((name, "x", uid, gid, "", home, "/bin/false"))

    def by_name(self, name: str) -> pwd.struct_passwd | None:
        return self._entry if name == self._entry.pw_name else super().by_name(name)

    def by_uid(self, uid: int) -> pwd.struct_passwd | None:
        return self._entry if uid == self._entry.pw_uid else super().by_uid(uid)

    def groups(self, name: str, gid: int) -> tuple[int, ...]:
        return (gid,) if name == self._entry.pw_name else super().groups(name, gid)


def _ordinary() -> bool:
    """Become, as root, uid and gid `_INSIDE` of a user namespace that maps them to root; tell whether it went."""
    if sys.platform != "linux":
        return False
    child_ready, child_asks = os.pipe()
    parent_done, parent_says = os.pipe()
    parent = os.getpid()
    helper = os.fork()
    if helper == 0:  # it has to be somebody outside who writes the maps
        code = 1
        with contextlib.suppress(OSError):
            os.close(child_asks)
            if os.read(child_ready, 1):
                for name in ("gid_map", "uid_map"):
                    with open(f"/proc/{parent}/{name}", "w", encoding="ascii") as file:
                        # Somebody has to be 0 inside: a worker tries that it cannot become that.
                        file.write(f"{_INSIDE} 0 1\n0 {_NOBODY} 1\n")
                os.write(parent_says, b"x")
                code = 0
        os._exit(code)
    os.close(child_ready)
    os.close(parent_says)
    went = ctypes.CDLL(None, use_errno=True).unshare(_NEW_USER_NAMESPACE) == 0
    if went:
        os.write(child_asks, b"x")
        went = bool(os.read(parent_done, 1))
    os.close(child_asks)
    os.close(parent_done)
    os.waitpid(helper, 0)
    if not went or os.geteuid() != _INSIDE:
        return False
    identity.drop_capabilities()  # who makes a namespace has all of them in it
    return True


def _could_be_ordinary() -> bool:
    """Try it in a child: half way there is no way back."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(Exception):
            code = 0 if _ordinary() else 1
        os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def main(path: str) -> int:
    """Be the supervisor of `halod run`."""
    with open(path, encoding="utf-8") as file:
        options = json.load(file)
    uid, gid, home = os.geteuid(), os.getegid(), options["home"]
    if uid == 0:
        if _could_be_ordinary() and _ordinary():
            uid = gid = _INSIDE
        else:
            nobody = pwd.getpwnam("nobody")
            uid, gid, home = nobody.pw_uid, nobody.pw_gid, options["copy"]
            print(
                "DEMONSTRATION: the service never scans root's home; this is packaging/demo-home",
                file=sys.stderr,
            )
    database = _Accounts(options["name"], uid, gid, home)
    notifier = Notifier()

    def entry(descriptor: int, supervisor: int) -> int:
        from halod.agent.main import main

        return main(
            descriptor, supervisor, config=options["config"], once=False, watchdog=0.0, database=database
        )

    return Service(entry, watcher.load, notifier=notifier).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
