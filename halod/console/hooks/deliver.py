# SPDX-License-Identifier: Apache-2.0
"""Delivers what is queued for webhooks: at least once, with the same id each time, until it is taken or dead.

Invariants:

1. A delivery is claimed before it is sent: a transaction counts the attempt and puts `next_try` CLAIM seconds off. So
   nobody else sends it meanwhile, and one that was claimed by a process that died is sent again, with the same id.
2. An outcome is written only by whoever holds the newest claim (`tries` is the fence).
3. A receiver that does not take anything is left alone for a while, and costs the others nothing: each hook has a
   round of its own, all at the same time, and the first failure ends it.
4. After MOST_TRIES attempts over about three days, or a 410, a delivery is dead: it stays in the list until somebody
   retries or discards it, or its time is over (`retention.deliveries`).
"""

import asyncio
import contextlib
import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select, update

from halod.console import logs
from halod.console.hooks import send, target
from halod.console.hooks.send import GONE, Outcome
from halod.console.metrics import Metrics
from halod.console.settings import Hook
from halod.console.store.engine import Store
from halod.console.store.schema import DELIVERIES, META
from halod.errors import UsageError

DELAYS: Final = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Seconds from one attempt to the next, as Standard Webhooks proposes; a fifth more or less by chance."""
MOST_TRIES: Final = len(DELAYS) + 1
CLAIM: Final = 120
"""Seconds after which an attempt that nobody told the end of is made again; more than an attempt can take."""
FOREIGN: Final = 3_600
"""Seconds for which a delivery waits whose hook is not in these settings: another replica may have newer ones."""
PER_ROUND: Final = 200
_JITTER: Final = 0.2
_PAUSES: Final = (5, 15, 60, 120, 300)
"""Seconds for which a hook is left alone after the first, second, … round in a row that failed."""
_GONE_KEY: Final = "webhook.gone/"

_log = logs.get("webhooks")


class _Claimed(msgspec.Struct, frozen=True):
    seq: int
    event: str
    body: bytes
    tries: int


class Deliverer:
    """Sends what is due. One thread calls `turn`; `stop` may come from any."""

    def __init__(
        self,
        store: Store,
        hooks: Sequence[Hook],
        metrics: Metrics,
        *,
        clock: Callable[[], int],
        draw: Callable[[], float] = random.random,
        total: float = send.TOTAL,
    ) -> None:
        """Prepare; nothing is sent before `turn`.

        Args:
            store: the database.
            hooks: the webhooks of the settings.
            metrics: counts attempts.
            clock: seconds since the epoch.
            draw: gives numbers from 0 to 1.
            total: seconds that a receiver has.
        """
        self._store = store
        self._hooks = tuple(hooks)
        self._metrics = metrics
        self._clock = clock
        self._draw = draw
        self._total = total
        self._stopped = False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._paused: dict[str, tuple[int, int]] = {}  # hook: rounds in a row that failed, until when

    def turn(self, now: int) -> bool:
        """Send what is due at `now`, to every hook at the same time; returns False when every round has ended."""
        due = self._due(now)
        if due and not self._stopped:
            with contextlib.suppress(asyncio.CancelledError):
                asyncio.run(self._rounds(due))
        return False

    def stop(self) -> None:
        """End a turn, out of a request too; what was being sent is sent again by whoever is next."""
        self._stopped = True
        running = self._running
        if running is not None:
            loop, task = running
            with contextlib.suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(task.cancel)

    def _due(self, now: int) -> list[Hook]:
        """Give the hooks for which something is due, after what can never be sent is put aside."""
        with self._store.read() as c:
            due = [hook for hook in self._hooks if self._next(c, hook.name, now) is not None]
            gone = _gone(c)
            foreign = and_(
                DELIVERIES.c.hook.not_in([hook.name for hook in self._hooks]),
                DELIVERIES.c.created < now - FOREIGN,
            )
            lost = c.scalar(select(DELIVERIES.c.seq).where(DELIVERIES.c.state == "due", foreign).limit(1))
        if lost is not None:
            self._bury(foreign, "no-such-webhook")
        for hook in [one for one in due if gone.get(one.name) == _fingerprint(one)]:
            self._bury(DELIVERIES.c.hook == hook.name, GONE)
            due.remove(hook)
        return [hook for hook in due if self._paused.get(hook.name, (0, 0))[1] <= now]

    async def _rounds(self, hooks: Sequence[Hook]) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("no task")
        self._running = (asyncio.get_running_loop(), task)
        try:
            if not self._stopped:
                ended = await asyncio.gather(*map(self._round, hooks), return_exceptions=True)
                for fault in ended:
                    if isinstance(fault, BaseException):
                        raise fault
        finally:
            self._running = None

    async def _round(self, hook: Hook) -> None:
        """Send to one hook what is due, oldest first, until something fails."""
        now = self._clock()
        try:
            receiver = target.target(hook)
            http = send.client(receiver)
        except UsageError as error:
            _log.error("a webhook cannot be used", hook=hook.name, why=error.message)
            claimed = self._claim(hook.name, now)
            if claimed is not None:
                self._settle(hook, claimed, Outcome(error="settings"), now)
            self._pause(hook.name, now)
            return
        async with http:
            for _ in range(PER_ROUND):
                now = self._clock()
                claimed = self._claim(hook.name, now)
                if claimed is None:
                    break
                identity = msgspec.json.decode(claimed.body)["id"]
                outcome = await send.send(http, receiver, identity, claimed.body, now=now, total=self._total)
                self._settle(hook, claimed, outcome, self._clock())
                if outcome.error:
                    self._pause(hook.name, self._clock())
                    return
        self._paused.pop(hook.name, None)

    def _pause(self, hook: str, now: int) -> None:
        failed = self._paused.get(hook, (0, 0))[0]
        self._paused[hook] = (failed + 1, now + _PAUSES[min(failed, len(_PAUSES) - 1)])

    def _next(self, c: Connection, hook: str, now: int, *, claim: bool = False) -> int | None:
        oldest = (
            select(DELIVERIES.c.seq)
            .where(DELIVERIES.c.hook == hook, DELIVERIES.c.state == "due", DELIVERIES.c.next_try <= now)
            .order_by(DELIVERIES.c.next_try, DELIVERIES.c.seq)
            .limit(1)
        )
        found: int | None = c.scalar(oldest.with_for_update(skip_locked=True) if claim else oldest)
        return found

    def _claim(self, hook: str, now: int) -> _Claimed | None:
        """Take the oldest delivery that is due; None when there is none, or somebody else takes it just now."""
        with self._store.write() as c:
            seq = self._next(c, hook, now, claim=True)
            row = c.execute(
                update(DELIVERIES)
                .where(DELIVERIES.c.seq == seq)
                .values(tries=DELIVERIES.c.tries + 1, next_try=now + CLAIM)
                .returning(DELIVERIES.c.seq, DELIVERIES.c.event, DELIVERIES.c.payload, DELIVERIES.c.tries)
            ).one_or_none()
        return None if row is None else _Claimed(row.seq, row.event, row.payload.encode(), row.tries)

    def _settle(self, hook: Hook, claimed: _Claimed, outcome: Outcome, now: int) -> None:
        """Write what came of an attempt."""
        state, wait = "done", 0
        if outcome.error:
            dead = outcome.error == GONE or claimed.tries >= MOST_TRIES
            state = "dead" if dead else "due"
            wait = 0 if dead else self._wait(claimed.tries, outcome.wait)
        with self._store.write() as c:
            c.execute(
                update(DELIVERIES)
                .where(
                    DELIVERIES.c.seq == claimed.seq,
                    DELIVERIES.c.state == "due",
                    DELIVERIES.c.tries == claimed.tries,
                )
                .values(state=state, next_try=now + wait, last_error=outcome.error)
            )
            if outcome.error == GONE:
                _hold(c, hook)
        word = {"done": "ok", "due": "failed", "dead": "dead"}[state]
        self._metrics.add("halo_webhook_attempts_total", hook=hook.name, outcome=word)
        if outcome.error:
            _log.warning(
                "a webhook was not taken",
                hook=hook.name,
                delivery=claimed.seq,
                why=outcome.error,
                attempt=claimed.tries,
                retry=None if state == "dead" else wait,
            )

    def _wait(self, tries: int, asked: float) -> int:
        spread = 1 - _JITTER + 2 * _JITTER * self._draw()
        return max(round(DELAYS[tries - 1] * spread), round(asked))

    def _bury(self, which: ColumnElement[bool], why: str) -> None:
        """Make dead what is due and can never be sent, without asking anybody."""
        with self._store.change() as c:
            buried = c.execute(
                update(DELIVERIES)
                .where(DELIVERIES.c.state == "due", which)
                .values(state="dead", last_error=why)
            ).rowcount
        _log.warning("webhooks cannot be sent any more", why=why, deliveries=buried)


# --- a receiver that wants no more --------------------------------------------------------------------------


def _fingerprint(hook: Hook) -> str:
    """Tell one address of a hook from another without keeping it: a new one is tried again."""
    return hashlib.sha256(hook.url.encode()).hexdigest()[:16]


def _gone(c: Connection) -> dict[str, str]:
    rows = c.execute(
        select(META.c.key, META.c.value).where(META.c.key.startswith(_GONE_KEY, autoescape=True))
    )
    return {row.key.removeprefix(_GONE_KEY): row.value for row in rows}


def _hold(c: Connection, hook: Hook) -> None:
    release(c, [hook.name])
    c.execute(insert(META).values(key=_GONE_KEY + hook.name, value=_fingerprint(hook)))


def release(c: Connection, hooks: Iterable[str]) -> None:
    """Send to hooks again that have answered 410."""
    c.execute(delete(META).where(or_(*(META.c.key == _GONE_KEY + hook for hook in hooks))))
