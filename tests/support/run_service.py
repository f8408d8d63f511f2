# SPDX-License-Identifier: Apache-2.0
"""`halod run` for tests: `python run_service.py OPTIONS.json`, with accounts that the system does not have.

OPTIONS: {"config": path, "once": bool, "accounts": [{"name", "uid", "gid", "home"}], "console": uid}.

Agents, workers, watchers and callers have more seconds than in earnest: what these tests are about is how all of
them end and answer by themselves, also on a machine that stands still in between. test_service has the real ones.
"""

import functools
import json
import pwd
import sys

from halod.accounts import Database
from halod.agent.logind import Seats, Session
from halod.roles import service, watcher, watching
from halod.roles.notify import Notifier
from halod.roles.service import Service
from halod.roles.supervisor import Pool
from tests.support.guard import LONG
from tests.support.roles import UNHURRIED


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


def unhurried():
    """Give everybody LONG seconds instead of a few: a test that waits for that to pass fails."""
    service.PATIENCE = service.CLOSING = service.LOADING = watching.GRACE = LONG
    service.Pool = functools.partial(Pool, limits=UNHURRIED)


def main(path):
    unhurried()
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
        from halod.agent import control, courier, fetch, http, loop
        from halod.agent.main import main

        control.SECONDS = loop._SCAN_SPARE = courier._JOIN = fetch._JOIN = LONG
        http.Client.__init__.__kwdefaults__["total"] = LONG
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
