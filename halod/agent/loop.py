# SPDX-License-Identifier: Apache-2.0
"""The agent's loop: one thread that waits for the supervisor, callers, look-ups and its timers (design 9).

Delivery runs in a thread of its own (`delivery`), look-ups of accounts in another (`people`); both only wake
this one. Invariants:

1. One cycle at a time. Triggers that come meanwhile are kept and start the next one.
2. The supervisor's Stop, or its end, ends the loop at once: what was committed stays, what was not is scanned
   again after the next start.
3. A state that cannot be written costs the state: scanning goes on, and is told of.
"""

import contextlib
import os
import select
import time
from typing import Final

import msgspec

from halod import logs
from halod.accounts import Database
from halod.agent import laststatus
from halod.agent.answers import Desk, summary
from halod.agent.control import Control
from halod.agent.courier import Post
from halod.agent.cycle import LATE_ACCOUNTS, UNANSWERED, Cycles, Machinery, Outcome
from halod.agent.lock import Lock
from halod.agent.logind import Seats
from halod.agent.people import LATE, Lookup, People
from halod.agent.prepare import Prepared
from halod.agent.sources import Following, source_of
from halod.agent.state import State
from halod.agent.triggers import Triggers
from halod.errors import EnvironmentFault
from halod.harnesses.table import LOCATIONS
from halod.roles.channel import Channel
from halod.roles.protocol import (
    Alive,
    Answered,
    Changed,
    Leaving,
    Ready,
    ReloadRefused,
    Stop,
    Watch,
    Watcher,
    Words,
)
from halod.status import Status, Transition

ALIVE: Final = 20.0
"""Seconds between signs of life when nobody asks for them more often."""
_PER_ACCOUNT: Final = 12.0  # two workers at once, 20 s and a second's grace each
_SCAN_SPARE: Final = 30.0


class Clocks:
    """The system's clocks."""

    def monotonic(self) -> float:
        """Give seconds that never go back."""
        return time.monotonic()

    def wall(self) -> float:
        """Give seconds since the epoch."""
        return time.time()


class Agent:
    """One agent, from `open` to `close`."""

    def __init__(
        self,
        prepared: Prepared,
        channel: Channel,
        *,
        once: bool = False,
        watchdog: float = 0.0,
        database: Database | None = None,
        seats: Seats | None = None,
    ) -> None:
        """Prepare; nothing is opened before `open`."""
        settings = prepared.settings
        self._settings = settings
        self._channel = channel
        self._once = once
        self._log = logs.get("agent")
        self._clock = Clocks()
        self._lock = Lock(settings.state.dir)
        self._state = State(settings.state.dir)
        self._wake, self._wakes = os.pipe()
        for end in (self._wake, self._wakes):
            os.set_blocking(end, False)
        root = prepared.ids is not None
        device, excluded = settings.device, settings.scan.exclude_accounts
        self._people = People(device.accounts, excluded, database=database, seats=seats, root=root)
        self._lookup = Lookup(self._poke)
        source = source_of(settings.policy, prepared.policy, self._state)
        self._cycles = Cycles(Machinery.of(settings, source), self._clock)
        self._triggers = Triggers(settings.scan.interval)
        self._locations = len(LOCATIONS) + len(self._cycles.machinery.extra)
        """A watcher is hostile: numbers beyond these are none of a file, and each would be waited for."""
        self._post = Post(prepared, self._state, self._cycles.machinery, once=once, done=self._poke)
        self._desk = Desk(self._state, self._cycles, root=root)
        self._following = Following(prepared, source, self._poke)
        self._control: Control | None = None
        self._known: frozenset[str] = frozenset()
        self._deadline = 0.0
        self._waits_for = ""
        self._ready = False
        self._stop = False
        self._code = 0
        self._alive_every = min(ALIVE, watchdog / 3) if watchdog else ALIVE
        self._alive_at = 0.0
        self._watched: Watch | None = None
        self._said_limited: set[int] = set()

    def open(self, patience: float) -> None:
        """Take the lock, then the state and the control socket. Raises EnvironmentFault."""
        self._lock.take(patience)
        with contextlib.suppress(EnvironmentFault):
            self._known = frozenset(known.finding.user for known in self._state.findings())
        if not self._once:
            self._control = Control(self._settings.run_dir, self._desk.handle)
            self._desk.wake, self._desk.test = self._post.wake, self._post.test
            self._desk.followed = self._following.followed
        self._log.info("the agent works", accounts=_words(self._settings.device.accounts), once=self._once)

    def close(self) -> None:
        """End delivery, close everything."""
        self._post.stop()
        self._following.stop()
        if self._control is not None:
            self._control.close()
        self._state.close()
        self._lock.release()

    def run(self) -> int:
        """Work until told to stop; give the exit code."""
        if not self._once:
            self._post.start()
        self._following.start()
        if self._once and self._following.waits:
            self._waits_for = "policy"
        while not self._stop:
            self._wait()
            self._turn()
        return self._code

    def _poke(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wakes, b"\0")

    # -- the loop --------------------------------------------------------------------------------

    def _wait(self) -> None:
        now = self._clock.monotonic()
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if not self._channel.ended:
            more = select.POLLOUT if self._channel.waiting else 0
            poll.register(self._channel.fileno(), select.POLLIN | more)
        due = [max(0.0, self._alive_at - now)]
        if self._cycles.under is not None:
            due.append(max(0.0, self._deadline - now))
        elif not self._waits_for:
            due.append(self._triggers.timeout(now))
        if self._control is not None:
            self._control.register(poll)
            left = self._control.timeout()
            due += [left] if left is not None else []
        poll.poll(min(due) * 1000 + 1)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)

    def _turn(self) -> None:
        self._hear()
        now = self._clock.monotonic()
        if now >= self._alive_at:
            self._alive_at = now + self._alive_every
            self._channel.send(Alive())
        if self._control is not None:
            self._control.step()
        if self._stop:
            return
        if self._waits_for == "delivery":
            self._leave_when_delivered()
            return
        if self._waits_for == "policy" and not self._following.waits:
            self._waits_for = ""
        if self._following.news():
            self._triggers.ask(now, "policy")
        if not self._waits_for:
            self._go_on(now)

    def _hear(self) -> None:
        self._channel.flush()
        while True:
            messages = self._channel.receive() if not self._channel.ended else []
            if not messages:
                break
            for message in messages:
                self._take(message, self._clock.monotonic())
        if self._channel.ended:
            self._stop = True

    def _take(self, message: object, now: float) -> None:
        """Do what one message of the supervisor asks."""
        if isinstance(message, Stop):
            self._stop = True
        elif isinstance(message, Answered):
            if self._cycles.answered(message):
                self._finish()
        elif isinstance(message, Changed):
            known = [number for number in message.locations if number < self._locations]
            self._triggers.changed(message.key, known, now)
        elif isinstance(message, Watcher):
            self._watcher(message, now)
        elif isinstance(message, ReloadRefused):
            self._cycles.reload_refused = True
            self._triggers.ask(now, "signal")

    def _watcher(self, message: Watcher, now: float) -> None:
        """Note how an account's watcher is; what it may have missed is scanned."""
        before = self._desk.watchers.get(message.key, "starting")
        if message.state == "overflow":
            self._triggers.rescan(message.key, now)
            self._log.debug("events of a watcher were lost", account=message.key)
            return
        if message.state == "partial":
            self._desk.partial.add(message.key)
            return
        if message.state == "watching":
            # What changed between the scan and the first look of its watcher is nobody's event.
            self._triggers.rescan(message.key, now)
            if before == "limited":
                return
        self._desk.watchers[message.key] = message.state
        if message.state == "limited" and message.key not in self._said_limited:
            self._said_limited.add(message.key)
            self._log.warning("the watch limit of the system is exhausted; the timer does the rest")
        elif message.state == "lost" and before != "lost":
            self._log.warning("a watcher ended and is started again", account=message.key)

    # -- cycles ----------------------------------------------------------------------------------

    def _go_on(self, now: float) -> None:
        """Start the cycle that is due, or go on with the one under way."""
        under = self._cycles.under
        if under is not None:
            if not under.waiting:
                self._looked_up(now)
            elif now >= self._deadline:
                self._cycles.give_up(UNANSWERED)
                self._finish()
            return
        word = self._triggers.everything(now)
        if word:
            self._begin(word, now)
            return
        keys = self._triggers.accounts(now)
        if not keys:
            return
        if self._cycles.refresh():
            self._begin("policy", now)
            return
        self._cycles.begin("change", full=False)
        self._scan(now, keys)

    def _begin(self, word: str, now: float) -> None:
        """Begin a cycle over every account: first see whose homes there are."""
        if not self._lock.holds():
            raise EnvironmentFault("the lock of the state directory was taken away", advice="")
        self._cycles.refresh()
        self._triggers.began_everything(now)
        self._cycles.begin(word, full=True)
        known = self._known
        if not self._lookup.start(lambda: self._people.select(known)):
            self._late(now)
            return
        self._deadline = now + LATE

    def _looked_up(self, now: float) -> None:
        """Take the look-up's result when it is there."""
        selection = self._lookup.take()
        if selection is None:
            if now >= self._deadline:
                self._late(now)
            return
        if selection == "failed":
            self._late(now)
            return
        self._cycles.select(selection)
        self._follow()
        self._scan(now, None)

    def _late(self, now: float) -> None:
        """Go on with the accounts of before."""
        if self._cycles.under is not None:
            self._cycles.under.error = LATE_ACCOUNTS
        self._scan(now, None)

    def _follow(self) -> None:
        """Have the accounts watched, and forget those that are gone."""
        targets = self._cycles.targets()
        keys = {target.key for target in targets}
        self._triggers.keep(keys)
        self._desk.watchers = {key: word for key, word in self._desk.watchers.items() if key in keys}
        self._desk.partial &= keys
        if self._once or not self._settings.scan.watch:
            return
        watch = Watch(targets, self._cycles.watch_payload())
        if watch != self._watched:
            self._watched = watch
            for key in keys:
                self._desk.watchers.setdefault(key, "starting")
            self._channel.send(watch)

    def _scan(self, now: float, keys: frozenset[int] | None) -> None:
        request = self._cycles.request(keys)
        if request is None:
            self._finish()
            return
        self._triggers.began([target.key for target in request.targets], now)
        self._deadline = now + _SCAN_SPARE + _PER_ACCOUNT * len(request.targets)
        self._channel.send(request)

    def _finish(self) -> None:
        """End the cycle: state, last-status file, delivery, words, log."""
        under = self._cycles.under
        if under is None:
            return
        outcome = self._cycles.finish()
        for key, moved in under.moved.items():
            self._triggers.ended(key, moved)
        if outcome.status is None:
            self._log.debug("nothing new", trigger=under.trigger)
            return
        status, new = self._commit(outcome.status, outcome)
        self._desk.newest = status
        self._desk.next_at = self._clock.monotonic() + self._triggers.timeout(self._clock.monotonic())
        self._post.wake()
        milliseconds = round((self._clock.monotonic() - under.began) * 1000)
        told = msgspec.structs.replace(status, transitions=new)
        line = logs.cycle_line(told, trigger=under.trigger, duration_ms=milliseconds)
        self._log.info("cycle", **line)
        self._channel.send(Words(summary(status)))
        if not self._ready:
            self._ready = True
            self._channel.send(Ready())
        if self._once:
            self._deliver_once(status)

    def _commit(self, status: Status, outcome: Outcome) -> tuple[Status, tuple[Transition, ...]]:
        """Keep what a cycle found; give its status with every known finding, and what happened to them."""
        new: tuple[Transition, ...] = ()
        self._desk.unwritten = ""
        try:
            kept = self._state.commit_cycle(status, outcome.seen, departed=outcome.departed)
            status, new = kept.status, kept.transitions
        except EnvironmentFault as error:
            self._desk.unwritten = error.code
            self._log.error("the state cannot be written", code=error.code)
        self._known = frozenset(row.user for row in status.mcp_drift)
        try:
            laststatus.write(self._settings.state.dir, status)
        except OSError as error:
            self._log.error("the last-status file cannot be written", errno=error.errno or 0)
        return status, new

    # -- once ------------------------------------------------------------------------------------

    def _deliver_once(self, status: Status) -> None:
        self._code = 1 if status.error_code or self._desk.unwritten else 0
        self._waits_for = "delivery"
        self._post.start()

    def _leave_when_delivered(self) -> None:
        if self._post.done:
            if not self._post.accepted:
                self._code = 1
            self._stop = True
            self._channel.send(Leaving("done"))


def _words(accounts: str | tuple[str, ...]) -> str:
    return accounts if isinstance(accounts, str) else "named"
