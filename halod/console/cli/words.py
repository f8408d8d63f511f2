# SPDX-License-Identifier: Apache-2.0
"""How commands print rows and read durations. Pure."""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime

from halod.status import clean


def days(text: str) -> int:
    """Read a number of days, 1 to 3650."""
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 3650:
        raise argparse.ArgumentTypeError("expected a number of days from 1 to 3650")
    return int(text)


def count(text: str) -> int:
    """Read a count, 0 to a million."""
    if not text.isascii() or not text.isdecimal() or int(text) > 1_000_000:
        raise argparse.ArgumentTypeError("expected a number from 0 to 1000000")
    return int(text)


def number(text: str) -> int:
    """Read the number of a row."""
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) < 2**53:
        raise argparse.ArgumentTypeError("expected the number that list shows")
    return int(text)


def name(text: str) -> str:
    """Read a name: one line, at most 128 characters."""
    if not text.strip() or clean(text, 128) != text:
        raise argparse.ArgumentTypeError("expected one line of at most 128 characters")
    return text


def at(time: int | None) -> str:
    """Write a time as a date, "-" for none."""
    if time is None:
        return "-"
    return "never" if time >= 2**53 else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def state(revoked: int | None, expires: int, now: int) -> str:
    """Say how a token or key stands."""
    return "revoked" if revoked is not None else "expired" if expires <= now else "valid"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write columns; what came from elsewhere has been cleaned before it was stored, and is again."""
    cells = [[clean(cell, 64) or "-" for cell in row] for row in rows]
    widths = [max(len(line[at]) for line in [list(head), *cells]) for at in range(len(head))]
    lines = [list(head), *cells]
    return "".join(
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() + "\n" for line in lines
    )
