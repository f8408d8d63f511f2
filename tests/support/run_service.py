# SPDX-License-Identifier: Apache-2.0
"""`halod run` for tests: `python run_service.py OPTIONS.json`, with accounts that the system does not have.

OPTIONS: {"config": path, "once": bool, "accounts": [{"name", "uid", "gid", "home"}], "console": uid}.
"""

import json
import pwd
import sys

from halod.accounts import Database
from halod.agent.logind import Seats, Session
from halod.roles import watcher
from halod.roles.notify import Notifier
from halod.roles.service import Service


class Accounts(Database):
    """A password database of the test's own."""

    def __init__(self, accounts):
        self._entries = [
            pwd.struct_passwd((one["name"], "x", one["uid"], one["gid"], "", one["home"], "/bin/false"))
            for one in accounts
        ]

    def by_uid(self, uid):
        return next((entry for entry in self._entries if entry.pw_uid == uid), None)

    def by_name(self, name):
        return next((entry for entry in self._entries if entry.pw_name == name), None)

    def all(self):
        return list(self._entries)

    def groups(self, name, gid):
        return (gid,)


def main(path):
    with open(path) as file:
        options = json.load(file)
    notifier = Notifier()
    watchdog = notifier.watchdog
    database = Accounts(options.get("accounts", []))

    at_console = (
        [Session(uid=options["console"], active=True, type="wayland")] if "console" in options else []
    )
    seats = Seats(platform="linux", ask=lambda: at_console, users="/none", records=list)

    def entry(descriptor, supervisor):
        from halod.agent.main import main

        return main(
            descriptor,
            supervisor,
            config=options["config"],
            once=options.get("once", False),
            watchdog=watchdog,
            database=database,
            seats=seats,
        )

    return Service(entry, watcher.load, notifier=notifier).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
