# SPDX-License-Identifier: Apache-2.0
"""What a check says: a verdict, one sentence, and advice where something is to be done."""

from typing import Literal

import msgspec

Verdict = Literal["ok", "warning", "fault"]


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at.

    `name` is a key of the settings or a word of ours. A fault keeps the service from starting or from working;
    a warning may be meant.
    """

    name: str
    verdict: Verdict
    message: str
    advice: str = ""


def ok(name: str, message: str) -> Check:
    """Give a check that found nothing wrong."""
    return Check(name, "ok", message)


def warning(name: str, message: str, advice: str = "") -> Check:
    """Give a check whose finding may be meant."""
    return Check(name, "warning", message, advice)


def fault(name: str, message: str, advice: str = "") -> Check:
    """Give a check whose finding has to be mended."""
    return Check(name, "fault", message, advice)


def count(number: int, thing: str) -> str:
    """Give "1 fault", "2 faults"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
