# SPDX-License-Identifier: Apache-2.0
"""Guessing is slow: credentials that are not valid, by address, are counted and then refused unseen.

Many may share an address, and a web page anywhere can make a browser behind it ask without a credential. So who has
shown a valid one is not refused for what others do: `good` notes it, and `check` lets it pass to be looked at.
"""

from typing import Protocol

from halod.console.problem import Problem


class Refusals(Protocol):
    """Counts refused credentials of addresses."""

    def check(self, address: str, credential: str = "") -> None:
        """Raise Problem 429 when an address has shown too many; not for a credential (its hash) that was `good`."""

    def add(self, address: str, credential: str = "") -> None:
        """Count one."""

    def good(self, credential: str) -> None:
        """Note the hash of a credential that is valid."""


class NoRefusals:
    """Counts nothing: for tests of something else."""

    def check(self, address: str, credential: str = "") -> None:
        """Do nothing."""

    def add(self, address: str, credential: str = "") -> None:
        """Do nothing."""

    def good(self, credential: str) -> None:
        """Do nothing."""


def too_many(seconds: float) -> Problem:
    """Give the problem that says when to come again."""
    return Problem(429, "too many requests", headers={"Retry-After": str(max(1, int(seconds + 0.999)))})
