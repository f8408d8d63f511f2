# SPDX-License-Identifier: Apache-2.0
"""What the agent answers on its control socket: how it is, in values and in words.

Who is not root hears about the service, and of rows and accounts only their own.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Final

import msgspec

from halod import __version__
from halod.agent.cycle import RELOAD, Cycles
from halod.agent.dates import date
from halod.agent.outbox_protocol import WORDS
from halod.agent.reply import (
    Canary,
    Followed,
    Refused,
    Reply,
    Request,
    Said,
    Sandbox,
    Sent,
    Submit,
    Taken,
    Tested,
    Watched,
    WatcherWord,
)
from halod.agent.state import State
from halod.errors import EnvironmentFault
from halod.status import Finding, Status, clean, is_host, is_name

_WAITS: Final = frozenset({"", "accepted", "enrolled"})


class Desk:
    """Answers requests. The agent's loop keeps its public fields up to date."""

    def __init__(self, state: State, cycles: Cycles, *, root: bool, platform: str = sys.platform) -> None:
        """`root` says that the service runs as root: then only root may submit and see everything."""
        self._platform = platform
        self._state = state
        self._cycles = cycles
        self._root = root
        self._started = date(time.time())
        self.newest: Status | None = None
        self.watchers: dict[int, WatcherWord] = {}
        self.partial: set[int] = set()
        """Accounts whose watchers the kernel confines in part only."""
        self.unwritten = ""
        self.next_at = 0.0
        self.followed: Callable[[], Followed | None] = lambda: None
        self.wake: Callable[[], None] = lambda: None
        self.test: Callable[[int], Tested] = lambda number: Tested(number=number, outcome="unavailable")

    def handle(self, request: Request, uid: int) -> Said:
        """Answer a request of the caller `uid`."""
        trusted = uid == 0 or (not self._root and uid == os.geteuid())
        if isinstance(request, Submit):
            return self._submit(request.status) if trusted else Refused(words="only root may submit a status")
        if isinstance(request, Canary):
            return (
                self.test(request.number) if trusted else Refused(words="only root may send a test finding")
            )
        return self._reply(None if trusted else uid)

    def _submit(self, status: Status) -> Said:
        """Take a status of `halod scan --send`: it is delivered, and changes no finding.

        It may be about one account, one tool, another policy: it vouches for nothing, so it is marked as
        truncated, which resolves nothing at the server either (design 8).
        """
        if not _is_presentable(msgspec.to_builtins(status)):
            return Refused(words="the status holds text that no scan gives")
        machinery = self._cycles.machinery
        device = machinery.settings.device
        mine = msgspec.structs.replace(
            status,
            device=machinery.device,
            hostname=machinery.hostname,
            ring=status.ring or device.ring,
            units=status.units or device.units,
            transitions=msgspec.UNSET,
            truncated=True,
        )
        try:
            self._state.submit(mine)
        except EnvironmentFault as error:
            return Refused(words=f"the state cannot be written ({error.code})")
        self.wake()
        return Taken()

    def _reply(self, uid: int | None) -> Reply:
        cycles = self._cycles
        accounts = [one for one in cycles.selection.accounts if uid is None or one.uid == uid]
        watched = tuple(
            Watched(user=one.name, watcher=self.watchers.get(cycles.key(one), "off")) for one in accounts
        )
        delivery, count = self._delivery()
        status = self.newest
        if status is not None and uid is not None:
            status = of_users(status, frozenset(one.name for one in accounts))
        return Reply(
            version=__version__,
            started=self._started,
            now=date(time.time()),
            sandbox=self._sandbox(),
            accounts=watched,
            delivery=delivery,
            problems=tuple(self._problems(delivery, watched)),
            status=status,
            cycles=count,
            next_cycle=max(0, round(self.next_at - time.monotonic())),
            warnings=self._warnings(),
            policy=self.followed(),
        )

    def _sandbox(self) -> Sandbox:
        """Say how workers and watchers are confined: as the weakest of them is."""
        return "partial" if self.partial else self._cycles.sandbox

    def _warnings(self) -> tuple[str, ...]:
        """Say what may be meant. macOS has neither Landlock nor seccomp: there it is as it should be."""
        if self._sandbox() != "partial" or self._platform != "linux":
            return ()
        return ("the kernel confines workers and watchers only in part: it lacks Landlock or seccomp",)

    def _delivery(self) -> tuple[Sent, int]:
        on = bool(self._cycles.machinery.settings.report.url)
        try:
            summary, device = self._state.summary(), self._state.device
        except EnvironmentFault:
            return Sent(outcome="" if on else "off"), 0
        last, counters = summary.delivery, summary.counters
        sent = Sent(
            outcome="off" if not on else "" if last is None else last.outcome,
            time="" if last is None else last.time,
            http=0 if last is None else last.http,
            failures=0 if last is None else last.failures,
            accepted="" if last is None else last.accepted,
            waiting=summary.waiting if on else 0,
            dropped=counters.dropped if on else 0,
            enrolment=device.enrolment,
        )
        return sent, counters.cycles

    def _problems(self, delivery: Sent, watched: tuple[Watched, ...]) -> list[str]:
        found = []
        status = self.newest
        if status is None:
            found.append("the first scan is not over yet")
        elif status.last_error:
            found.append(status.last_error)
        if self._cycles.reload_refused and (status is None or status.error_code != RELOAD[0]):
            found.append(RELOAD[1])
        if status is not None and not self._cycles.selection.accounts:
            found.append(
                "there is no account to scan: nobody is at this machine, or the settings name nobody"
            )
        if self.unwritten:
            found.append(f"the state directory cannot be written ({self.unwritten}); halod check says more")
        words = {one.watcher for one in watched}
        if "lost" in words:
            found.append("a watcher ended and is started again; meanwhile the timer finds changes")
        if "limited" in words:
            found.append("the system's watch limit is exhausted; raise fs.inotify.max_user_watches")
        if delivery.outcome not in _WAITS | {"off"}:
            why = WORDS.get(delivery.outcome, delivery.outcome)
            found.append(f"the last report was not delivered: {why}")
        return found


def _is_presentable(value: object, key: str = "") -> bool:
    """Tell whether every string of a document is what may leave (design 8): clean text, redacted names, hosts."""
    if isinstance(value, str):
        return (is_name if key == "server" else is_host if key == "host" else _is_clean)(value)
    if isinstance(value, dict):
        return all(_is_presentable(held, name) for name, held in value.items())
    return not isinstance(value, list | tuple) or all(_is_presentable(held, key) for held in value)


def _is_clean(text: str) -> bool:
    return clean(text) == text


def of_users(status: Status, names: frozenset[str]) -> Status:
    """Give a status with the rows of these accounts only, and none of another person's name."""

    def kept(rows: tuple[Finding, ...]) -> tuple[Finding, ...]:
        return tuple(row for row in rows if row.user in names)

    drift = kept(status.mcp_drift)
    inventory = kept(status.inventory) if isinstance(status.inventory, tuple) else msgspec.UNSET
    return msgspec.structs.replace(
        status,
        user=status.user if status.user in names else "",
        mcp_drift=drift,
        mcp_drift_total=len(drift),
        mcp_approved=tuple(row for row in status.mcp_approved if row.user in names),
        skipped=tuple(row for row in status.skipped if row.user in names),
        inventory=inventory,
        transitions=msgspec.UNSET,
    )


def summary(status: Status) -> str:
    """Give the line for the service manager: counts only."""
    found = status.mcp_drift_total
    gaps = len(status.skipped)
    accounts = status.coverage.accounts
    parts = [f"{accounts} account{'' if accounts == 1 else 's'}"]
    if status.mode == "inventory":
        rows = len(status.inventory) if isinstance(status.inventory, tuple) else 0
        parts.append(f"{rows} servers listed, no policy")
    else:
        parts.append(f"{found} finding{'' if found == 1 else 's'}")
    if gaps:
        parts.append(f"{gaps} not read")
    if status.error_code:
        parts.append(status.error_code)
    return ", ".join(parts)
