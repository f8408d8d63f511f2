# SPDX-License-Identifier: Apache-2.0
"""Whose homes a cycle scans (design 9, `[device] accounts`), looked up so that no directory can hang the agent.

Invariants:

1. uid 0 and excluded accounts are never selected, whoever is at the console.
2. A look-up that takes too long is abandoned in its thread and not started a second time beside it; the
   accounts of the last one go on.
3. In doubt an account still exists: a directory that does not answer must not resolve anything.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Final, Literal

import msgspec

from halod.accounts import Account, Database, everyone, exists_beside, named, of_uids
from halod.agent.logind import Seats

LATE: Final = 10.0
"""Seconds that a look-up may take."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The accounts of a cycle. `console` is the name of the person at the machine or "". `unknown` are names

    of the settings that no account has. `departed` are names that will not be looked at again.
    """

    accounts: tuple[Account, ...] = ()
    console: str = ""
    unknown: tuple[str, ...] = ()
    departed: frozenset[str] = frozenset()


class People:
    """Selects accounts as the settings say. `select` may block; call it by Lookup."""

    def __init__(
        self,
        accounts: Literal["console", "all"] | tuple[str, ...],
        excluded: Iterable[str],
        *,
        database: Database | None = None,
        seats: Seats | None = None,
        root: bool = True,
    ) -> None:
        """`root` says that workers take on the accounts' ids: then uid 0 is never among them."""
        self._accounts = accounts
        self._excluded = frozenset(excluded)
        self._database = database or Database()
        self._seats = seats or Seats()
        self._root = root

    def select(self, known: Iterable[str]) -> Selection:
        """Select; `known` are the accounts of which findings are kept."""
        console = of_uids(self._seats.people(self._uid), self._database)
        unknown: list[str] = []
        if self._accounts == "console":
            found = console
        elif self._accounts == "all":
            found = everyone(self._database, also=self._seats.logged_in())
        else:
            found, unknown = named(self._accounts, self._database)
        wanted = [one for one in found if one.name not in self._excluded and (one.uid or not self._root)]
        names = {one.name for one in wanted}
        return Selection(
            accounts=tuple(wanted),
            console=next((one.name for one in console), ""),
            unknown=tuple(name for name in unknown if name not in self._excluded),
            departed=frozenset(name for name in known if name not in names and self._departed(name)),
        )

    def _uid(self, name: str) -> int | None:
        entry = self._database.by_name(name)
        return None if entry is None else entry.pw_uid

    def _departed(self, name: str) -> bool:
        """Tell whether an account is excluded, or is gone with its home."""
        if name in self._excluded:
            return True
        entry = self._database.by_name(name)
        if entry is None and name.isdecimal():
            return False  # named by its uid: it never had an entry
        return entry is None and not exists_beside(name, self._database)


class Lookup:
    """Runs look-ups in a thread, one at a time."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called from the thread when a result is there."""
        self._wake = wake
        self._busy = False
        self._result: Selection | None = None
        self._failed = False

    def start(self, select: Callable[[], Selection]) -> bool:
        """Begin a look-up; False when the one before still hangs."""
        if self._busy:
            return False
        self._busy, self._result, self._failed = True, None, False
        threading.Thread(target=self._run, args=(select,), name="look-up", daemon=True).start()
        return True

    def _run(self, select: Callable[[], Selection]) -> None:
        try:
            self._result = select()
        except Exception:  # noqa: BLE001 - whatever a directory service provokes, the last accounts go on
            self._failed = True
        self._busy = False
        self._wake()

    def take(self) -> Selection | Literal["failed"] | None:
        """Give the result once; None while there is none."""
        if self._failed:
            self._failed = False
            return "failed"
        result, self._result = self._result, None
        return result
