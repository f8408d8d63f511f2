# SPDX-License-Identifier: Apache-2.0
"""Guessing is slow: credentials that are not valid, by address, are counted and then refused unseen."""

from typing import Protocol

from halod.console.problem import Problem


class Refusals(Protocol):
    """Counts refused credentials of addresses."""

    def check(self, address: str) -> None:
        """Raise Problem 429 when an address has shown too many."""

    def add(self, address: str) -> None:
        """Count one."""


class NoRefusals:
    """Counts nothing: for tests of something else."""

    def check(self, address: str) -> None:
        """Do nothing."""

    def add(self, address: str) -> None:
        """Do nothing."""


def too_many(seconds: float) -> Problem:
    """Give the problem that says when to come again."""
    return Problem(429, "too many requests", headers={"Retry-After": str(max(1, int(seconds + 0.999)))})
