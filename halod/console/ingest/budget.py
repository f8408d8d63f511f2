# SPDX-License-Identifier: Apache-2.0
"""How much one device may change: a token alone must not be enough to keep the lock of all changes, or fill the disk.

What a report costs is known when it has been applied (`delta.weight`, `apply.Outcome`), so it is charged afterwards and
a device goes into debt; until that is paid off its reports that change something are refused, the others are not.

Invariants:

1. A device that reports what an agent reports is never refused: at most 256 findings in a report, all of them changed
   three times over, with eight units each time.
2. Of a group that is committed together a device's reports are charged once: what was before, and what is after.
3. Over time a device costs the others a small part of the lock, whatever it sends: ROWS rows of findings and counts a
   minute, and KEPT rows a minute of what stays for months (transitions, and things that nobody had before).

Counted by each replica for itself and from its start.
"""

from collections.abc import Mapping
from typing import Final

from halod.console.clock import Clock
from halod.console.security.ratelimit import Limiter
from halod.console.store.apply import Cost

ROWS: Final = 12_000
ROWS_BURST: Final = 60_000
KEPT: Final = 30
KEPT_BURST: Final = 30_000
"""An agent that was offline brings 10,000 transitions at once, each with a finding that changed."""


class Budget:
    """What devices may still change. Threads may use it at the same time."""

    def __init__(self, clock: Clock) -> None:
        self._rows = Limiter(clock, ROWS, burst=ROWS_BURST)
        self._kept = Limiter(clock, KEPT, burst=KEPT_BURST)

    def spent(self, device: str) -> bool:
        """Tell whether a device has to wait before it changes anything."""
        return self._rows.wait(device) > 0 or self._kept.wait(device) > 0

    def charge(self, costs: Mapping[str, Cost]) -> None:
        """Count what the reports of a committed group have cost."""
        for device, cost in costs.items():
            self._rows.spend(device, cost.rows)
            self._kept.spend(device, cost.kept)
