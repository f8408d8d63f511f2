# SPDX-License-Identifier: Apache-2.0
"""Group commit: one thread takes the reports that wait into one transaction and answers them when it is committed.

Nothing waits on purpose: what gathers while one group is committed is the next group. Invariants:

1. A report is answered with 204 only after the commit that holds it.
2. What was accepted into the queue is answered, also when the console is being stopped (`stop` ends the queue first).
3. The queue is bounded in reports and in bytes: beyond it a device is told to come later.
4. One report that the database will not take costs no other: the group is tried again one by one.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from sqlalchemy.exc import DataError, DBAPIError

from halod.console import logs
from halod.console.clock import Clock
from halod.console.ingest.budget import Budget
from halod.console.ingest.group import Item, Tell, take
from halod.console.metrics import Metrics
from halod.console.store import apply
from halod.console.store.engine import Store, unavailable

GROUP: Final = 128
"""Reports of one transaction, and bytes: a fleet that comes for the first time must not make one last for long."""
GROUP_BYTES: Final = 1024 * 1024
QUEUE: Final = 4096
QUEUE_BYTES: Final = 64 * 1024 * 1024
TRIES: Final = 3
_log = logs.get("ingest")


class Full(Exception):
    """The queue takes no more just now."""


class Writer:
    """The thread and its queue. `start` and `stop` are called once each."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        metrics: Metrics,
        *,
        names_limit: int = apply.NAMES_LIMIT,
        tell: Tell | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._names_limit = names_limit
        self._tell = tell
        self._budget = Budget(clock)
        self._waiting: deque[tuple[Item, asyncio.Future[int]]] = deque()
        self._bytes = 0
        self._ready = threading.Condition()
        self._open = False
        self._thread = threading.Thread(target=self._run, name="report-writer", daemon=True)
        metrics.gauge("halo_report_queue", lambda: len(self._waiting))
        metrics.watch("report-writer", self._thread.is_alive)

    def start(self) -> None:
        """Begin."""
        self._open = True
        self._thread.start()

    def stop(self) -> None:
        """Take nothing more, finish what was taken, and return when it is answered."""
        with self._ready:
            self._open = False
            self._ready.notify()
        self._thread.join()

    def submit(self, item: Item) -> "asyncio.Future[int]":
        """Queue a report; the future gives the status of its answer. On the event loop.

        Raises:
            Full: come later.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        with self._ready:
            if not self._open or len(self._waiting) >= QUEUE or self._bytes + item.size > QUEUE_BYTES:
                raise Full
            self._waiting.append((item, future))
            self._bytes += item.size
            self._ready.notify()
        return future

    def _run(self) -> None:
        while group := self._next():
            started = time.perf_counter()
            statuses = self._commit([item for item, _ in group])
            self._metrics.observe("halo_batch_seconds", time.perf_counter() - started)
            self._metrics.observe("halo_batch_reports", len(group))
            _answer([future for _, future in group], statuses)

    def _next(self) -> list[tuple[Item, "asyncio.Future[int]"]]:
        """Wait for reports; an empty group ends the thread."""
        with self._ready:
            while not self._waiting and self._open:
                self._ready.wait()
            group: list[tuple[Item, asyncio.Future[int]]] = []
            size = 0
            while self._waiting and len(group) < GROUP:
                size += self._waiting[0][0].size
                if group and size > GROUP_BYTES:
                    break
                group.append(self._waiting.popleft())
                self._bytes -= group[-1][0].size
            return group

    def _commit(self, items: Sequence[Item]) -> list[int]:
        """Give the status of every answer. Whatever happens, there is one."""
        try:
            return self._try(items)
        except Exception as error:  # noqa: BLE001 - a fault of one group must not end the thread
            if unavailable(error):
                _log.exception("reports could not be committed", reports=len(items))
                return [503] * len(items)
            if len(items) > 1:
                return [status for item in items for status in self._commit([item])]
            _log.exception("a report could not be taken")
            # What the database refuses for its content, it refuses for ever: the device sends less of it, and sets
            # aside what is refused alone (docs/report-api.md). Anything else is ours, and the device keeps it.
            return [422 if isinstance(error, DataError) else 500]

    def _try(self, items: Sequence[Item]) -> list[int]:
        for left in reversed(range(TRIES)):
            try:
                return self._transaction(items)
            except DBAPIError as error:
                if not left or not _is_conflict(error):
                    raise
        raise AssertionError  # pragma: no cover - the last try returns or raises

    def _transaction(self, items: Sequence[Item]) -> list[int]:
        now = self._clock.now()
        costs: dict[str, apply.Cost] = {}
        with self._store.write() as c:
            statuses = take(
                self._store,
                c,
                items,
                now,
                names_limit=self._names_limit,
                tell=self._tell,
                spent=self._budget.spent,
                costs=costs,
            )
        self._budget.charge(costs)
        return statuses


def _is_conflict(error: DBAPIError) -> bool:
    """Tell whether trying again helps: a deadlock, a lock that was held too long, a connection that had gone."""
    return error.connection_invalidated or getattr(error.orig, "sqlstate", "") in {"40P01", "40001"}


def _answer(futures: Sequence["asyncio.Future[int]"], statuses: Sequence[int]) -> None:
    """Resolve the futures on their loops, one wake-up a loop."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[int], int]]] = {}
    for future, status in zip(futures, statuses, strict=True):
        loops.setdefault(future.get_loop(), []).append((future, status))
    for loop, answers in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, answers)
        except RuntimeError:
            continue  # the loop has ended, and with it everybody who waited


def _resolve(answers: Sequence[tuple["asyncio.Future[int]", int]]) -> None:
    for future, status in answers:
        if not future.done():
            future.set_result(status)
