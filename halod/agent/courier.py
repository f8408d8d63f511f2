# SPDX-License-Identifier: Apache-2.0
"""Delivery as the agent's loop sees it: a thread that is started, woken and stopped.

Without `report.url` there is none, and everything here does nothing.
"""

import random
import threading
from collections.abc import Callable
from typing import Final

from halod import __version__, logs
from halod.agent.backoff import Backoff
from halod.agent.cycle import Machinery
from halod.agent.delivery import Courier, Setup
from halod.agent.enrol import About, Enrolment
from halod.agent.http import Client
from halod.agent.outbox import Limits
from halod.agent.prepare import Prepared
from halod.agent.reply import Tested
from halod.agent.state import State
from halod.device import os_name
from halod.errors import EnvironmentFault

_JOIN: Final = 1.0
_TURNS: Final = 200
"""Reports that `--once` sends at most: 10,000 transitions, 64 a report."""


def say(event: str, /, **fields: str | float) -> None:
    """Log what delivery, or the fetching of policies, tells: what failed is a warning."""
    log = logs.get("delivery")
    write = log.warning if "failed" in event or "fault" in event else log.info
    write(event, **fields)


class Post:
    """The delivery thread of one agent."""

    def __init__(
        self,
        prepared: Prepared,
        state: State,
        machinery: Machinery,
        *,
        once: bool,
        done: Callable[[], None],
    ) -> None:
        """Prepare; with `once`, each thing that waits is tried once, and `done` is called."""
        self._prepared = prepared
        self._state = state
        self._machinery = machinery
        self._once = once
        self._told = done
        self._event = threading.Event()
        self._courier: Courier | None = None
        self._thread: threading.Thread | None = None
        self.on = bool(prepared.settings.report.url)
        self.done = not self.on
        self.accepted = not self.on
        """For `once`: whether everything that waited was accepted."""

    def start(self) -> None:
        """Start the thread."""
        if not self.on:
            self._told()
            return
        self._courier = self._make()
        run = self._run_once if self._once else self._courier.run
        self._thread = threading.Thread(target=run, name="delivery", daemon=True)
        self._thread.start()
        self._event.set()

    def wake(self) -> None:
        """Say that there is something new to deliver."""
        self._event.set()

    def test(self, number: int) -> Tested:
        """Send a test finding, or tell how that one is (`Trial.ask`)."""
        if self._courier is None:
            return Tested(
                number=number, outcome="unavailable", words="reports are off: there is no report.url"
            )
        said = self._courier.trial.ask(number)
        self.wake()
        return said

    def stop(self) -> None:
        """End the thread, out of a request too; what it was sending is sent again after the next start."""
        if self._courier is not None:
            self._courier.stop()
        if self._thread is not None:
            self._thread.join(_JOIN)

    def _run_once(self) -> None:
        courier = self._courier
        try:
            for _ in range(_TURNS):
                if courier is None or (wait := courier.turn()) is None:
                    self.accepted = True
                    return
                if wait:
                    return
        finally:
            self.done = True
            self._told()

    def _make(self) -> Courier:
        prepared, report = self._prepared, self._prepared.settings.report
        if prepared.tls is None:
            raise ValueError("no TLS context")
        about = About(
            device=self._machinery.device,
            hostname=self._machinery.hostname,
            os=os_name(),
            halod=__version__,
        )
        enrolment = Enrolment(report.url, prepared.enroll_key, about) if prepared.enroll_key else None
        setup = Setup(
            url=report.url,
            token=prepared.token,
            enrolment=enrolment,
            limits=Limits(with_transitions=report.transitions),
        )
        return Courier(
            self._state,
            Client(report.url, prepared.tls),
            setup,
            say=say,
            backoff=Backoff(random.random),
            wake=self._event,
            accepted=self._accepted(),
        )

    def _accepted(self) -> str:
        """Give when a report was last accepted, in a run before."""
        try:
            last = self._state.summary().delivery
        except EnvironmentFault:
            return ""
        return "" if last is None else last.accepted
