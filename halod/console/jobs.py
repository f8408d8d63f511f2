# SPDX-License-Identifier: Apache-2.0
"""What a console does by itself: jobs, a thread that runs them when they are due, and leases among replicas.

Invariants:

1. A job is a function of a console and a time. It does a bounded piece of work and tells whether more is left.
2. A job runs in one replica: the one that holds its lease, which is longer than the time to its next run. When the
   holder dies another takes over once the lease has run out; an orderly end gives leases back at once.
3. A job that fails is counted and logged by its name and the kind of the fault, and is tried again when it is next
   due. It ends neither the thread nor the other jobs.
4. Leases go by the replicas' own clocks: when those are apart, a job may be done twice, and all of them can stand it.
"""

import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from sqlalchemy import insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from halod.console import logs
from halod.console.call import Console
from halod.console.store.engine import Store
from halod.console.store.schema import LEASES

_MARGIN: Final = 30
"""Seconds of a lease beyond two intervals: what a run may take before another replica believes it dead."""
_JOIN: Final = 25.0
_log = logs.get("jobs")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is to be done every `every` seconds, by one of the replicas."""

    name: str
    every: int
    run: Callable[[Console, int], bool]
    """Gives True when it has left something to do: it is run again at once."""
    stop: Callable[[], None] | None = None
    """Ends a run that waits for somebody else."""


class Scheduler:
    """Runs jobs in one thread; a part of the application (`start`, `stop`).

    `turn` runs what is due once, and is all there is to it for a test with a clock of its own.
    """

    def __init__(
        self, console: Console, jobs: Sequence[Job], *, name: str = "jobs", holder: str = ""
    ) -> None:
        """Prepare.

        Args:
            console: what the jobs work on.
            jobs: in the order in which they run when several are due.
            name: of the thread, and of the part in metrics and readiness.
            holder: what this replica is called in leases; by chance without.
        """
        self._console = console
        self._jobs = tuple(jobs)
        self._name = name
        self._holder = holder or secrets.token_hex(8)
        self._due: dict[str, float] = {}  # monotonic
        self._until: dict[str, int] = {}  # of the leases that this replica holds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._console.metrics.watch(self._name, self._alive)
        self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, out of a job that waits too, and give the leases back."""
        self._stop.set()
        for job in self._jobs:
            if job.stop is not None:
                job.stop()
        if self._thread is not None:
            self._thread.join(_JOIN)
        try:
            release(self._console.store, self._holder)
        except Exception as error:  # noqa: BLE001 - they run out by themselves
            _log.warning("leases could not be given back", error=type(error).__name__)

    def turn(self) -> float:
        """Run every job that is due, and give the seconds until the next is."""
        clock = self._console.clock
        for job in self._jobs:
            if self._stop.is_set():
                break
            if self._due.get(job.name, 0.0) <= clock.monotonic():
                again = self._run(job)
                self._due[job.name] = clock.monotonic() + (0 if again else job.every)
        now = clock.monotonic()
        return max(min((self._due.get(job.name, now) for job in self._jobs), default=now + 60) - now, 0.0)

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _loop(self) -> None:
        while not self._stop.wait(self.turn()):
            pass

    def _holds(self, job: Job, now: int) -> bool:
        """Tell whether this replica has the lease of a job, which is renewed when half of it is over."""
        seconds = 2 * job.every + _MARGIN
        if self._until.get(job.name, 0) - now > seconds // 2:
            return True
        held = take(self._console.store, job.name, self._holder, now, seconds)
        self._until[job.name] = now + seconds if held else 0
        return held

    def _run(self, job: Job) -> bool:
        """Run a job if this replica holds its lease; tell whether it left something to do."""
        console, clock, metrics = self._console, self._console.clock, self._console.metrics
        began = clock.monotonic()
        again = False
        try:
            now = clock.now()
            if not self._holds(job, now):
                return False
            again = job.run(console, now)
        except Exception:  # noqa: BLE001 - a job costs itself alone; its text may hold anything
            metrics.add("halo_job_runs_total", job=job.name, outcome="failed")
            _log.exception("a job failed", job=job.name)
        else:
            metrics.add("halo_job_runs_total", job=job.name, outcome="ok")
            metrics.set("halo_job_success_timestamp_seconds", clock.now(), job=job.name)
        metrics.observe("halo_job_seconds", clock.monotonic() - began, job=job.name)
        return again


# --- leases -------------------------------------------------------------------------------------------------


def take(store: Store, name: str, holder: str, now: int, seconds: int) -> bool:
    """Take a lease, or keep it; tells whether `holder` has it until `now + seconds`."""
    with store.read() as c:
        found = c.execute(select(LEASES.c.holder, LEASES.c.until).where(LEASES.c.name == name)).one_or_none()
    if found is not None and found.holder != holder and found.until > now:
        return False  # without a write: this is what the other replicas come to
    try:
        with store.write() as c:
            if found is None:
                c.execute(insert(LEASES).values(name=name, holder=holder, until=now + seconds))
                return True
            free = or_(LEASES.c.holder == holder, LEASES.c.until <= now)
            statement = update(LEASES).where(LEASES.c.name == name, free)
            return c.execute(statement.values(holder=holder, until=now + seconds)).rowcount == 1
    except IntegrityError:  # another replica was faster
        return False


def release(store: Store, holder: str) -> None:
    """Give every lease of a holder back."""
    with store.write() as c:
        c.execute(update(LEASES).where(LEASES.c.holder == holder).values(until=0))
