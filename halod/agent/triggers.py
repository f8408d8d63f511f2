# SPDX-License-Identifier: Apache-2.0
"""When to scan what (design 9). Pure: the clock is an argument, in seconds that never go back.

* Everything: at start, every `interval` give or take a tenth, and when asked for.
* One account: QUIET seconds after the last event of its watcher, PATIENCE after the first at most.
* A location whose changes keep bringing nothing new waits: 1, 2, 4, 8, then LONGEST seconds from one scan
  that it causes to the next. Others of the same account are not delayed by it.
"""

import random
from collections.abc import Callable, Iterable
from typing import Final

QUIET: Final = 1.0
PATIENCE: Final = 3.0
LONGEST: Final = 10.0
JITTER: Final = 0.1
_FIRST_WAIT: Final = 1.0

Key = int
Moved = frozenset[int] | None
"""Locations whose answer differs from the one before; None: any may."""


class _Pending:
    """Events of one location since its account was last scanned."""

    __slots__ = ("first", "last")

    def __init__(self, now: float) -> None:
        self.first = now
        self.last = now


class _Account:
    """What is waited for in one account."""

    __slots__ = ("covered", "hold", "pending", "rescan", "wait")

    def __init__(self) -> None:
        self.pending: dict[int, _Pending] = {}
        self.covered: frozenset[int] = frozenset()
        """The locations that the scan under way was, among others, made for."""
        self.wait: dict[int, float] = {}
        self.hold: dict[int, float] = {}
        """When a location may cause the next scan at the earliest."""
        self.rescan: float | None = None

    def due(self) -> float | None:
        """Give the time of the next scan, or None."""
        times = [
            max(min(event.last + QUIET, event.first + PATIENCE), self.hold.get(location, 0.0))
            for location, event in self.pending.items()
        ]
        if self.rescan is not None:
            times.append(self.rescan)
        return min(times, default=None)


class Triggers:
    """The state of all triggers. `draw` gives numbers from 0 up to 1."""

    def __init__(self, interval: float, *, draw: Callable[[], float] = random.random) -> None:
        self._interval = interval
        self._draw = draw
        self._everything: float = 0.0
        self._word = "start"
        self._accounts: dict[Key, _Account] = {}

    def changed(self, key: Key, locations: Iterable[int], now: float) -> None:
        """Note events of a watcher."""
        account = self._accounts.setdefault(key, _Account())
        for location in locations:
            event = account.pending.get(location)
            if event is None:
                account.pending[location] = _Pending(now)
            else:
                event.last = now

    def rescan(self, key: Key, now: float) -> None:
        """Events of an account were lost: scan it soon, once for many such notes."""
        account = self._accounts.setdefault(key, _Account())
        if account.rescan is None:
            account.rescan = now + QUIET

    def ask(self, now: float, word: str) -> None:
        """Scan everything now; `word` says why."""
        self._everything, self._word = now, word

    def everything(self, now: float) -> str:
        """Say why everything is to be scanned now; "" when it is not."""
        return self._word if now >= self._everything else ""

    def accounts(self, now: float) -> frozenset[Key]:
        """Give the accounts that are to be scanned now."""
        due = ((key, account.due()) for key, account in self._accounts.items())
        return frozenset(key for key, time in due if time is not None and now >= time)

    def timeout(self, now: float) -> float:
        """Give the seconds until something is due."""
        times = [self._everything]
        times += [time for account in self._accounts.values() if (time := account.due()) is not None]
        return max(0.0, min(times) - now)

    def began_everything(self, now: float) -> None:
        """Plan the next scan of everything."""
        spread = 1 + JITTER * (2 * self._draw() - 1)
        self._everything, self._word = now + self._interval * spread, "timer"

    def began(self, keys: Iterable[Key], now: float) -> None:
        """A scan of these accounts begins: later events are for the next one."""
        for key in keys:
            account = self._accounts.get(key)
            if account is None:
                continue
            account.covered = frozenset(account.pending)
            for location in account.covered:
                account.hold[location] = now + account.wait.get(location, 0.0)
            account.pending = {}
            account.rescan = None

    def ended(self, key: Key, moved: Moved) -> None:
        """A scan of an account is over: locations that brought nothing new wait longer, others not at all."""
        account = self._accounts.get(key)
        if account is None:
            return
        for location in account.covered:
            if moved is None or location in moved:
                account.wait.pop(location, None)
                account.hold.pop(location, None)
            else:
                before = account.wait.get(location, 0.0)
                wait = min(max(2 * before, _FIRST_WAIT), LONGEST)
                account.wait[location] = wait
                account.hold[location] = account.hold.get(location, 0.0) - before + wait
        account.covered = frozenset()

    def keep(self, keys: Iterable[Key]) -> None:
        """Forget accounts that are not among these."""
        wanted = set(keys)
        self._accounts = {key: account for key, account in self._accounts.items() if key in wanted}
