# SPDX-License-Identifier: Apache-2.0
"""Time, injected: nothing in the console asks the machine's clock itself."""

import time
from typing import Protocol


class Clock(Protocol):
    """What time it is."""

    def now(self) -> int:
        """Give seconds since 1970-01-01T00:00:00Z."""

    def monotonic(self) -> float:
        """Give seconds of a clock that never jumps, for limits and waits."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> int:
        """Give the wall clock, whole seconds."""
        return int(time.time())

    def monotonic(self) -> float:
        """Give the monotonic clock."""
        return time.monotonic()
