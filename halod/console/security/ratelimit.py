# SPDX-License-Identifier: Apache-2.0
"""Token buckets by key, on the injected monotonic clock, in bounded memory. Of this process: replicas each have theirs.

A key that has not been seen for a whole refill has a full bucket, which is what a key that was never seen has: so two
generations of a dictionary, the older dropped once a refill, are all that has to be kept. When more than `most` keys
come within one refill the oldest are forgotten: a flood from a million addresses is for a firewall to stop, and must
neither fill the memory nor lock out others.
"""

import ipaddress
import threading
from typing import Final

from halod.console.clock import Clock
from halod.console.security.refusals import too_many

MOST: Final = 100_000


class Limiter:
    """`per_minute` a key, with a burst of as many (or of `burst`). Threads may use it at the same time."""

    def __init__(self, clock: Clock, per_minute: int, *, burst: int = 0, most: int = MOST) -> None:
        self._clock = clock
        self._rate = per_minute / 60
        self._burst = float(burst or per_minute)
        self._most = most
        self._lock = threading.Lock()
        self._turned = clock.monotonic()
        self._young: dict[str, tuple[float, float]] = {}
        self._old: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> float:
        """Take one; give 0, or the seconds until there is one again. Nothing is taken then."""
        with self._lock:
            now = self._clock.monotonic()
            left = self._left(key, now)
            if left >= 1:
                self._young[key] = (left - 1, now)
                return 0.0
            return (1 - left) / self._rate

    def spend(self, key: str, count: int) -> None:
        """Take `count`, also when there are fewer: the key is in debt then, for twice its burst at most."""
        if count <= 0:
            return
        with self._lock:
            now = self._clock.monotonic()
            self._young[key] = (max(self._left(key, now) - count, -2 * self._burst), now)

    def wait(self, key: str) -> float:
        """Give what `take` would, and take nothing."""
        with self._lock:
            left = self._left(key, self._clock.monotonic())
            return 0.0 if left >= 1 else (1 - left) / self._rate

    def __len__(self) -> int:
        """How many keys are kept."""
        return len(self._young) + len(self._old)

    def _left(self, key: str, now: float) -> float:
        if now - self._turned >= self._burst / self._rate or len(self._young) >= self._most // 2:
            self._old, self._young, self._turned = self._young, {}, now
        found = self._young.get(key) or self._old.get(key)
        if found is None:
            return self._burst
        left, at = found
        return min(self._burst, left + (now - at) * self._rate)


def address_key(address: str) -> str:
    """Give under what an address counts: itself; of IPv6 its /64, which one customer has; "" for none."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))


class CountedRefusals:
    """Refused credentials by address (`refusals.Refusals`). Threads may use it at the same time."""

    def __init__(self, clock: Clock, per_minute: int, *, most: int = MOST) -> None:
        self._limiter = Limiter(clock, per_minute)
        self._most = most
        self._lock = threading.Lock()
        self._young: set[str] = set()
        self._old: set[str] = set()

    def check(self, address: str, credential: str = "") -> None:
        """Raise Problem 429 when an address has shown too many; not for a credential that was valid before."""
        seconds = self._limiter.wait(address_key(address))
        if seconds and not self._known(credential):
            raise too_many(seconds)

    def add(self, address: str, credential: str = "") -> None:
        """Count one; it is not valid any more."""
        self._limiter.take(address_key(address))
        with self._lock:
            self._young.discard(credential)
            self._old.discard(credential)

    def good(self, credential: str) -> None:
        """Note the hash of a credential that is valid. Of more than `most` the oldest are forgotten."""
        with self._lock:
            if len(self._young) >= self._most // 2:
                self._old, self._young = self._young, set()
            self._young.add(credential)

    def _known(self, credential: str) -> bool:
        with self._lock:
            return bool(credential) and (credential in self._young or credential in self._old)
