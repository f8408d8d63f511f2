# SPDX-License-Identifier: Apache-2.0
"""Brings reports to the console: one thread, the only user of the report's HTTP client (design 9).

Invariants:

1. A report is taken from the store, sent, and only then noted as delivered: whatever happens in between, it is
   sent again, and the server drops what it has by the transitions' ids.
2. Reports travel one at a time, oldest transitions first: nothing overtakes but a test finding (`trial`), which
   is of no cycle.
3. Nothing here stops a scan: the store is asked in short transactions, and every failure ends in a wait.
4. `stop` ends a wait at once and a request within a second, whatever it hangs in.

What the agent does on each answer is the contract of docs/report-api.md.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from halod.agent.backoff import SLOW, Backoff, Window, retry_after
from halod.agent.dates import date
from halod.agent.enrol import Enrolment
from halod.agent.faults import Fault
from halod.agent.http import Answer, Client
from halod.agent.outbox import Limits, Report
from halod.agent.outbox_protocol import WORDS, Outbox, Outcome
from halod.agent.rows import Delivery
from halod.agent.trial import Trial
from halod.errors import EnvironmentFault
from halod.status import Status

_REFUSED: Final = frozenset({400, 413, 422})
_UNAUTHORISED: Final = frozenset({401, 403})
_TRANSIENT: Final = frozenset({408, 425, 429})
_MEND: Final[frozenset[Outcome]] = frozenset(
    {
        *("unauthorised", "wrong-address", "redirect", "no-token"),
        *("enrolment-pending", "enrolment-refused", "enrolment-malformed"),
    }
)
"""Outcomes that need a person first: they are tried again slowly."""


class Say(Protocol):
    """The log."""

    def __call__(self, event: str, /, **fields: str | float) -> None:
        """Write one line: an event and fields, each a word of a closed vocabulary or a number."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Where reports go and what they carry. `token` (of token_file) goes before one that enrolment brought."""

    url: str
    token: str = ""
    enrolment: Enrolment | None = None
    limits: Limits = Limits()

    def __repr__(self) -> str:
        """Tell nothing: a token is inside."""
        return "Setup()"


class Courier:
    """Delivers until it is stopped. `run` is the thread; `stop` and `wake.set` may come from any other."""

    def __init__(
        self,
        outbox: Outbox,
        client: Client,
        setup: Setup,
        *,
        say: Say,
        backoff: Backoff,
        wake: threading.Event,
        accepted: str = "",
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; nothing is sent before `run` or `turn`.

        Args:
            outbox: the store.
            client: bound to the origin of `setup.url`; closed when `run` ends.
            setup: where to, and as whom.
            say: the log.
            backoff: how long to wait after a failure.
            wake: set by whoever commits a status.
            accepted: when a report was last accepted (`Delivery.accepted` of the run before), or "".
            clock: monotonic seconds. All waiting goes by it: wall time may jump.
            wall: seconds since the epoch, for dates that people read and for Retry-After dates.
        """
        self._outbox = outbox
        self._client = client
        self._setup = setup
        self._say = say
        self._backoff = backoff
        self._wake = wake
        self._clock = clock
        self._wall = wall
        self._window = Window()
        self._stopping = threading.Event()
        self._not_before = clock()
        self._failures = 0
        self._said: tuple[str, int] = ("", 0)
        self._accepted = accepted
        self._renew = False
        self._asked_at: float | None = None
        self.trial = Trial()

    # The thread

    def run(self) -> None:
        """Deliver until `stop`; then close the client."""
        try:
            while not self._stopping.is_set():
                self._wake.wait(self._guarded(self._turn_with_test))
                self._wake.clear()
        finally:
            self._client.close()

    def stop(self) -> None:
        """End `run` now, also out of the middle of a request; it is sent again after the next start."""
        self._stopping.set()
        self._client.abort()
        self._wake.set()

    def _turn_with_test(self) -> float | None:
        if self.trial.waiting:
            self._test()
        elif self.trial.owed:
            self._take_back()
        return self.turn()

    def _guarded(self, turn: Callable[[], float | None]) -> float | None:
        try:
            return turn()
        except Exception as exc:  # noqa: BLE001 - a fault of ours must cost one try, not delivery as such
            # Nothing but the class: the text may hold anything.
            self._say("delivery-fault", exception=type(exc).__name__)
            if self.trial.waiting:
                self.trial.told(outcome="refused", words=WORDS["internal"])
            with contextlib.suppress(Exception):
                self._note("internal", 0)
            return self._wait(self._backoff.failed())

    def turn(self) -> float | None:
        """Do one thing, and give the seconds until the next: 0 at once, None when there is nothing to do.

        Called before its time, while a failure is waited for, it does nothing.
        """
        early = self._not_before - self._clock()
        if early > 0:
            return early
        try:
            token = self._setup.token or self._outbox.device.token
            if not token or self._renew:
                return self._enrol()
            return self._deliver(token)
        except Fault as fault:
            if fault.kind == "stopped":
                return 0.0
            return self._failed(fault.kind, fault.status)
        except EnvironmentFault as fault:
            return self._failed("state", code=fault.code, note=False)

    # One report

    def _deliver(self, token: str) -> float | None:
        limits = msgspec.structs.replace(
            self._setup.limits, transitions=min(self._setup.limits.transitions, self._window.most)
        )
        report = self._outbox.next_report(limits)
        if report is None or self._window.is_hopeless(report):
            return None
        answer = self._client.send("POST", self._setup.url, bearer=token, body=report.body)
        if 200 <= answer.status < 300:
            return self._taken(report, answer.status)
        if answer.status in _REFUSED:
            return self._refused(report, answer)
        if answer.status == 401 and self._may_renew():
            # The token was ended or has expired: it is shown once more, with the key, for a new one.
            self._renew = True
            return 0.0
        return self._failed(_outcome(answer.status), answer.status, self._asked(answer))

    def _taken(self, report: Report, status: int) -> float:
        self._outbox.delivered(report)
        self._window.accepted(report)
        self._backoff.succeeded()
        self._failures = 0
        self._said = ("", 0)
        self._accepted = self._date()
        self._say("report-accepted", status=status, transitions=len(report.ids), bytes=len(report.body))
        self._note("accepted", status)
        return 0.0

    def _refused(self, report: Report, answer: Answer) -> float:
        verdict = self._window.refused(report)
        if verdict == "try-smaller":
            return 0.0
        self._outbox.refused(report)
        if verdict == "transition":
            self._say("transition-set-aside", status=answer.status)
            return 0.0
        return self._failed("report-refused", answer.status, self._asked(answer))

    # Enrolment

    def _enrol(self) -> float:
        enrolment = self._setup.enrolment
        if enrolment is None:
            return self._failed("no-token")
        self._renew = False
        self._asked_at = self._clock()
        enrolled = enrolment.ask(self._client, self._outbox)
        answer = enrolled.answer
        if enrolled.outcome == "failed":
            return self._failed(_outcome(answer.status), answer.status, self._asked(answer))
        if enrolled.outcome != "enrolled":
            # With a token in hand the next try is a report again: an operator may have let the device in.
            return self._failed(enrolled.outcome, answer.status, self._asked(answer))
        self._say("enrolled", status=answer.status)
        return 0.0

    def _may_renew(self) -> bool:
        """Tell whether a token that is refused may be exchanged: it came by enrolment, and not just now."""
        if self._setup.enrolment is None or self._setup.token:
            return False
        return self._asked_at is None or self._clock() - self._asked_at >= SLOW / 2

    # A test finding

    def _test(self) -> None:
        """Send a test finding and take it back; say how it went."""
        began = self._clock()
        status, word, http = self._send_out_of_turn(self.trial.opened)
        milliseconds = round((self._clock() - began) * 1000)
        if word != "accepted":
            outcome = "refused" if status else "unavailable"
            words = WORDS[word] if status else "the first scan is not over yet"
        else:
            self.trial.owed = True
            outcome, words = "delivered", self._take_back()
        self._say("canary", outcome=word, status=http)
        self.trial.told(outcome=outcome, words=words, http=http, milliseconds=milliseconds)

    def _take_back(self) -> str:
        """Send that the test finding is resolved; give the words for it."""
        _, word, _ = self._send_out_of_turn(self.trial.resolved)
        if word == "accepted":
            self.trial.owed = False
            return "it was taken back"
        return f"it was not taken back yet, which is tried again: {WORDS[word]}"

    def _send_out_of_turn(self, make: Callable[[Status, Limits, str], bytes]) -> tuple[bool, Outcome, int]:
        """Send what `make` makes of the newest status; whether there is one, the outcome, the HTTP status."""
        try:
            status, token = self._outbox.newest(), self._setup.token or self._outbox.device.token
            if status is None or not token:
                return status is not None, "no-token", 0
            body = make(status, self._setup.limits, self._date())
            code = self._client.send("POST", self._setup.url, bearer=token, body=body).status
        except Fault as fault:
            return True, fault.kind, fault.status
        except EnvironmentFault:
            return True, "state", 0
        if 200 <= code < 300:
            return True, "accepted", code
        return True, "report-refused" if code in _REFUSED else _outcome(code), code

    # What is said, kept and waited for

    def _asked(self, answer: Answer) -> float:
        headers = answer.headers
        return retry_after(headers.get("retry-after", ""), date=headers.get("date", ""), now=self._wall())

    def _failed(
        self, outcome: Outcome, status: int = 0, asked: float = 0.0, *, code: str = "", note: bool = True
    ) -> float:
        """Wait after a failure, say it when it is another than before, and keep it for `halod status`."""
        self._failures += 1
        delay = self._backoff.slow(asked) if outcome in _MEND else self._backoff.failed(asked)
        if self._said != (outcome, status):
            self._said = (outcome, status)
            self._say("report-failed", outcome=outcome, status=status, code=code, retry=round(delay, 1))
        if note:
            self._note(outcome, status)
        return self._wait(delay)

    def _wait(self, delay: float) -> float:
        self._not_before = self._clock() + delay
        return delay

    def _note(self, outcome: Outcome, status: int) -> None:
        try:
            self._outbox.note_delivery(
                Delivery(
                    time=self._date(),
                    outcome=outcome,
                    http=status,
                    failures=self._failures,
                    accepted=self._accepted,
                )
            )
        except EnvironmentFault:
            # It is for people, and the next try writes it again; what matters is in the transactions before.
            return

    def _date(self) -> str:
        return date(self._wall())


def _outcome(status: int) -> Outcome:
    if status in _UNAUTHORISED:
        return "unauthorised"
    if status in _TRANSIENT:
        return "throttled"
    return "server-error" if status >= 500 else "wrong-address"
