# SPDX-License-Identifier: Apache-2.0
"""What the agent knows between cycles and starts: findings, transitions not yet delivered, the newest status.

Invariants:

1. A cycle is one transaction: findings, transitions and status of it are all there, or none.
2. A transition has one number and one id for ever, is delivered in the order of numbers, and leaves only when
   its delivery was recorded, or as one of the oldest beyond OUTBOX_LIMIT, which is counted. A report that was
   sent and not recorded is sent again with the same ids. Times are for people: no order and no duration is
   taken from a clock.
3. A full or failing disk costs no more than the state: `StateFault`, and nothing half done. What the server has
   acknowledged meanwhile is remembered until it can be recorded.
4. Only `status` types enter the database. The token lies in `devicefile`.

Threads: every method may be called from any thread; they wait for each other (`database`). The agent's main
thread commits cycles, its delivery thread asks for reports; no lock is held while a report travels. A State
is opened after a fork, never taken through one.
"""

import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from halod.agent import rows
from halod.agent.database import Database, StateFault, fault_of
from halod.agent.devicefile import Device, DeviceFile
from halod.agent.files import prepare_directory
from halod.agent.identity import Known, reconcile, transitions, with_known
from halod.agent.outbox import SENT_TRANSITIONS, Limits, Report, compose
from halod.agent.rows import Counters, Delivery, Summary
from halod.seen import Seen
from halod.status import Status, Transition

RESET: Final = "state-reset"
_RESET_WORDS: Final = "the state database could not be read and was started anew"
_FAULT_WORDS: Final = "the state directory cannot be written; what is shown is the last cycle that was kept"
_Type = TypeVar("_Type")


class Committed(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle came to: its status with every known finding, and the transitions it brought."""

    status: Status
    transitions: tuple[Transition, ...]
    dropped: int = 0


class State:
    """The state in one directory, which only the agent's account may enter."""

    def __init__(self, directory: str) -> None:
        """Nothing is opened yet: a disk that is full at start-up is a StateFault of the first call."""
        self._directory = directory
        self._database = Database(directory)
        self._device = DeviceFile(directory)
        self._lock = threading.RLock()
        self._acknowledged = Report(body=b"")
        self._announced = 0
        self._untold = False
        self._start = secrets.token_hex(4)
        """Changes with each start: a database put back from a backup would count from an old number again."""
        self.policy_cache = os.path.join(directory, "policy.yaml")
        """Where the last good policy is kept; its file belongs to the reader of policies."""
        self.signed_policy = os.path.join(directory, "policy.json")
        """The same for a policy that was fetched, with its signatures."""
        self.fault = ""
        """The code of the StateFault that the last call met, "" when it went well."""

    def close(self) -> None:
        """Close the database; what was committed is on the disk anyway."""
        self._database.close()

    # The device

    @property
    def device(self) -> Device:
        """Install id, token and enrolment. Raises StateFault: an install id that is not kept binds nothing."""
        with self._lock:
            try:
                prepare_directory(self._directory)
                return self._device.get()
            except OSError as error:
                raise self._failed(fault_of(error)) from None

    def update_device(self, **fields: object) -> Device:
        """Change fields of the device and keep them. Raises StateFault; the old ones still count then."""
        with self._lock:
            device = msgspec.structs.replace(self.device, **fields)
            try:
                self._device.update(device)
            except OSError as error:
                raise self._failed(fault_of(error)) from None
            return device

    # Cycles

    def commit_cycle(
        self, status: Status, seen: Sequence[Seen] = (), *, departed: frozenset[str] = frozenset()
    ) -> Committed:
        """Keep the outcome of a cycle: one transaction.

        Args:
            status: what the cycle found; its `time` dates the transitions.
            seen: what it can vouch for (`assemble_seen`). Accounts without a Seen keep their findings, stale.
            departed: accounts that no longer exist or are no longer in scope; their findings are resolved.

        Raises:
            StateFault: nothing of the cycle is kept. The next one that is kept brings its transitions.
        """
        with self._lock:
            try:
                install = self.device.install_id
                done = self._run(lambda db: self._commit(db, status, seen, departed, install))
            except StateFault:
                self._untold = True
                raise
            self.fault, self._untold = "", False
            self._announced, self._device.was_reset = self._database.resets, False
            return done

    def _commit(
        self,
        db: sqlite3.Connection,
        status: Status,
        seen: Sequence[Seen],
        departed: frozenset[str],
        install: str,
    ) -> Committed:
        self._announce(db)
        self._settle(db)
        counters = rows.meta(db, "counters", Counters) or Counters()
        before = rows.findings(db)
        outcome = reconcile(
            [known for _, known in before], status, seen, cycle=counters.cycles + 1, departed=departed
        )
        rows.store_findings(db, before, outcome)
        prefix = f"{install[:8]}{self._start}{self._database.resets or ''}"
        new = transitions(outcome.changes, prefix=prefix, after=counters.transitions, time=status.time)
        rows.add_transitions(db, counters.transitions, new)
        dropped = rows.drop_oldest(db)
        full = _noticed(db, with_known(status, outcome.known))
        rows.set_status(db, counters.cycles + 1, full)
        counters = msgspec.structs.replace(
            counters,
            cycles=counters.cycles + 1,
            transitions=counters.transitions + len(new),
            dropped=counters.dropped + dropped,
            forgotten=counters.forgotten + outcome.forgotten,
        )
        rows.set_meta(db, "counters", counters)
        rows.give_back(db)
        return Committed(status=full, transitions=tuple(new), dropped=dropped)

    def submit(self, status: Status) -> None:
        """Put a status in line for delivery that is no cycle's (`halod scan --send`): no finding changes.

        The next cycle's takes its place. Raises StateFault.
        """
        self._run(lambda db: self._submit(db, status))

    def _submit(self, db: sqlite3.Connection, status: Status) -> None:
        self._settle(db)
        counters = rows.meta(db, "counters", Counters) or Counters()
        counters = msgspec.structs.replace(counters, cycles=counters.cycles + 1)
        rows.set_status(db, counters.cycles, status)
        rows.set_meta(db, "counters", counters)

    def findings(self) -> list[Known]:
        """Give the known findings, in no order. Raises StateFault."""
        return self._run(lambda db: [known for _, known in rows.findings(db)])

    def newest(self) -> Status | None:
        """Give the newest status; None before the first cycle. Raises StateFault."""
        found = self._run(rows.newest)
        return None if found is None else found[1]

    def summary(self) -> Summary:
        """Give what `halod status` shows. Raises StateFault."""
        fault = self.fault
        return self._run(lambda db: rows.summary(db, fault))

    # Delivery

    def next_report(self, limits: Limits = Limits()) -> Report | None:  # noqa: B008 - frozen
        """Give the next report to send, or None when the server has everything.

        The same report comes again until `delivered` is called with it. A StateFault that still holds is told
        in the report, where its status has no error of its own.

        Raises:
            StateFault: the state cannot be read.
        """
        with self._lock:
            fault = self.fault if self._untold else ""
            return self._run(lambda db: self._next(db, limits, fault))

    def _next(self, db: sqlite3.Connection, limits: Limits, fault: str) -> Report | None:
        newest = rows.newest(db)
        if newest is None:
            return None
        number, status = newest
        done = self._done()
        sent = max(rows.meta(db, "sent", int) or 0, done.status)
        waiting, last = db.execute(
            "SELECT count(*), max(seq) FROM outbox WHERE seq > ?", (done.upto,)
        ).fetchone()
        if sent >= number and not fault and not (waiting and limits.with_transitions):
            return None
        if fault and not status.error_code:
            status = msgspec.structs.replace(status, error_code=fault, last_error=_FAULT_WORDS)
        first = rows.waiting(db, done.upto, min(limits.transitions, SENT_TRANSITIONS))
        body, count = compose(status, [one for _, one in first], limits)
        return Report(
            body=body,
            ids=tuple([one.id for _, one in first[:count]]),
            upto=first[count - 1][0] if count else (done.upto if limits.with_transitions else last or 0),
            status=number,
            more=limits.with_transitions and waiting > count,
            generation=self._database.resets,
            notice=status.error_code == RESET,
            fault=fault,
        )

    def delivered(self, report: Report) -> None:
        """Record that the server has taken a report; its transitions leave the machine.

        Raises:
            StateFault: it could not be recorded. It is remembered until it can, or the process ends: then the
                report is sent again.
        """
        with self._lock:
            self._untold = self._untold and not report.fault
            if report.generation == self._database.resets:
                held = self._done()
                self._acknowledged = msgspec.structs.replace(
                    report,
                    body=b"",
                    upto=max(report.upto, held.upto),
                    status=max(report.status, held.status),
                    notice=report.notice or held.notice,
                )
            self._run(self._record)

    def _record(self, db: sqlite3.Connection) -> None:
        self._settle(db)
        counters = rows.meta(db, "counters", Counters) or Counters()
        rows.set_meta(db, "counters", msgspec.structs.replace(counters, reports=counters.reports + 1))

    def _settle(self, db: sqlite3.Connection) -> None:
        """Bring into the database what the server has acknowledged."""
        done = self._done()
        db.execute("DELETE FROM outbox WHERE seq <= ?", (done.upto,))
        rows.set_meta(db, "sent", max(rows.meta(db, "sent", int) or 0, done.status))
        if done.notice:
            db.execute("DELETE FROM meta WHERE key = 'notice'")

    def _done(self) -> Report:
        """Give what the server has acknowledged of this database; numbers of one before mean nothing."""
        if self._acknowledged.generation != self._database.resets:
            return Report(body=b"", generation=self._database.resets)
        return self._acknowledged

    def refused(self, report: Report) -> None:
        """Record that the server will never take a report: its transitions go, and are counted as dropped.

        Of a report without transitions it is the status that goes: it is not offered again by itself.

        Raises:
            StateFault: it could not be recorded; the report is offered again.
        """
        with self._lock:
            self._untold = self._untold and not report.fault
            if report.generation == self._database.resets:
                self._run(lambda db: self._refuse(db, report))

    def _refuse(self, db: sqlite3.Connection, report: Report) -> None:
        self._settle(db)
        if not report.ids:
            rows.set_meta(db, "sent", max(rows.meta(db, "sent", int) or 0, report.status))
            return
        gone = db.execute("DELETE FROM outbox WHERE seq <= ?", (report.upto,)).rowcount
        counters = rows.meta(db, "counters", Counters) or Counters()
        rows.set_meta(db, "counters", msgspec.structs.replace(counters, dropped=counters.dropped + gone))

    def note_delivery(self, delivery: Delivery) -> None:
        """Keep how the last try went. Raises StateFault."""
        self._run(lambda db: rows.set_meta(db, "delivery", delivery))

    # Inside

    def _announce(self, db: sqlite3.Connection) -> None:
        """Note in the database that it, or the device's file, had to be started anew."""
        if self._database.resets > self._announced or self._device.was_reset:
            rows.set_meta(db, "notice", RESET)

    def _run(self, work: Callable[[sqlite3.Connection], _Type]) -> _Type:
        try:
            return self._database.run(work)
        except StateFault as fault:
            raise self._failed(fault) from None

    def _failed(self, fault: StateFault) -> StateFault:
        self.fault = fault.code
        return fault


def _noticed(db: sqlite3.Connection, status: Status) -> Status:
    """Tell of a database that was started anew, until a report has; an error of the cycle goes before."""
    if status.error_code or rows.meta(db, "notice", str) is None:
        return status
    return msgspec.structs.replace(status, error_code=RESET, last_error=_RESET_WORDS)
