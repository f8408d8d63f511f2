# SPDX-License-Identifier: Apache-2.0
"""How long delivery waits after a failure, and how many transitions it sends at once. Pure: no clock, no I/O.

Full jitter spreads a fleet that lost its server at the same moment evenly over the whole window, which empties
a recovering server's queue soonest (Brooker, "Exponential Backoff And Jitter", 2015). `Window` finds, by
halving, the one transition that a server will not take, so that the others still arrive in order.
"""

from collections.abc import Callable
from typing import Final, Literal

from halod.agent.outbox import SENT_TRANSITIONS, Report
from halod.retryafter import RETRY_AFTER_MAX as _LONGEST
from halod.retryafter import retry_after as _read_retry_after

BASE: Final = 5.0
"""Seconds of the first window."""
CAP: Final = 900.0
"""Seconds of the widest window: the interval of cycles, so that an outage is over soon after it is over."""
SLOW: Final = 3600.0
"""Seconds between tries that need a person first: a refused token, a wrong URL, a pending enrolment."""
RETRY_AFTER_MAX: Final = _LONGEST
_SPREAD: Final = 0.1

retry_after = _read_retry_after


class Backoff:
    """The next delay, in seconds, from the failures so far. `random` gives a number from 0 to 1."""

    def __init__(self, random: Callable[[], float], *, base: float = BASE, cap: float = CAP) -> None:
        self._random = random
        self._base = base
        self._cap = cap
        self._failures = 0

    def succeeded(self) -> None:
        """Begin anew with the narrowest window."""
        self._failures = 0

    def failed(self, retry_after: float = 0.0) -> float:
        """Give the delay after a failure that may pass by itself.

        Without `retry_after` it is drawn from a window that doubles up to the cap. With it the delay is never
        shorter than the server asked for, and up to a tenth longer (a minute at most), so that a fleet that
        was told the same number does not return as one.
        """
        window = min(self._cap, self._base * 2.0 ** min(self._failures, 32))
        self._failures += 1
        if retry_after > 0:
            wait = min(retry_after, RETRY_AFTER_MAX)
            return wait + self._random() * min(max(wait * _SPREAD, 1.0), 60.0)
        return self._random() * window

    def slow(self, retry_after: float = 0.0) -> float:
        """Give the delay after a failure that a person must mend: SLOW, a tenth more or less.

        A server that names a time itself is believed, but not below a minute.
        """
        if retry_after > 0:
            return min(max(retry_after, 60.0), RETRY_AFTER_MAX) * (1.0 + _SPREAD * self._random())
        return SLOW * (1.0 - _SPREAD + 2.0 * _SPREAD * self._random())


Verdict = Literal["try-smaller", "transition", "status"]
"""What to do about a refused report: send less of it at once, or set its transition, or its status, aside."""


class Window:
    """How many transitions the next report takes, at most: SENT_TRANSITIONS, unless documents are refused.

    A refused report is halved down to a single transition. If that is refused too, the status is sent alone, to
    learn which of the two it is. A transition is set aside only when it is refused, the same status without it
    is accepted, and it is refused again with that status.
    """

    def __init__(self) -> None:
        self.most = SENT_TRANSITIONS
        self._suspect: Report | None = None
        self._accused: Report | None = None
        self._hopeless = -1

    def accepted(self, report: Report) -> None:
        """Learn that the server took a report."""
        self._accused = None
        if self.most > 0:
            self.most = min(SENT_TRANSITIONS, self.most * 2)
            return
        self.most = 1
        suspect, self._suspect = self._suspect, None
        # If a newer status has come in between, nothing is known of the suspect.
        if suspect is not None and suspect.status == report.status:
            self._accused = suspect

    def refused(self, report: Report) -> Verdict:
        """Learn that the server will not take a report as it is (400, 413, 422)."""
        accused, self._accused, self._suspect = self._accused, None, None
        if len(report.ids) > 1:
            self.most = len(report.ids) // 2
            return "try-smaller"
        if report.ids:
            if accused is not None and (accused.ids, accused.status) == (report.ids, report.status):
                return "transition"
            self.most = 0
            self._suspect = report
            return "try-smaller"
        self.most = 0
        self._hopeless = report.status
        return "status"

    def is_hopeless(self, report: Report) -> bool:
        """Tell whether this report is the status that was refused alone: it is not sent again unchanged."""
        return not report.ids and report.status == self._hopeless
