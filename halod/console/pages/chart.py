# SPDX-License-Identifier: Apache-2.0
"""The trend as a drawing: columns of open findings by day and kind. Pure: rows in, coordinates out.

The drawing is stretched to the room that it has, so it holds no text; the page sets the words around it, and the
same figures as a table.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

import msgspec

from halod.console.pages.words import KINDS

HEIGHT: Final = 100
STEP: Final = 10
_GAP: Final = 1.5
_DAY: Final = 86_400


class DayRow(Protocol):
    """A row of the table `days`."""

    @property
    def day(self) -> int: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def open(self) -> int: ...  # noqa: D102
    @property
    def opened(self) -> int: ...  # noqa: D102
    @property
    def changed(self) -> int: ...  # noqa: D102
    @property
    def resolved(self) -> int: ...  # noqa: D102


class Day(msgspec.Struct, frozen=True):
    """One day of the trend; `known` is false before the first report."""

    at: int
    known: bool
    open: dict[str, int]
    opened: int
    resolved: int

    @property
    def total(self) -> int:
        """How many findings were open at the end of the day."""
        return sum(self.open.values())

    @property
    def words(self) -> str:
        """What happened, in one line."""
        if not self.known:
            return f"{label(self.at)}: no data"
        return f"{label(self.at)}: {self.total:,} open, {self.opened:,} opened, {self.resolved:,} resolved"


class Part(msgspec.Struct, frozen=True):
    """A piece of a column: one kind."""

    kind: str
    y: float
    height: float


class Column(msgspec.Struct, frozen=True):
    """One day, drawn."""

    x: float
    width: float
    parts: tuple[Part, ...]
    words: str


class Trend(msgspec.Struct, frozen=True):
    """Everything that the page needs to show the trend."""

    width: int
    height: int
    top: int
    columns: tuple[Column, ...]
    days: tuple[Day, ...]
    kinds: tuple[str, ...]
    description: str

    @property
    def opened(self) -> int:
        """Findings opened over all the days."""
        return sum(day.opened for day in self.days)

    @property
    def resolved(self) -> int:
        """Findings resolved over all the days."""
        return sum(day.resolved for day in self.days)

    @property
    def known(self) -> bool:
        """Whether there is anything to show."""
        return any(day.known for day in self.days)


def label(at: int) -> str:
    """Give a day as `30 Nov`."""
    then = datetime.fromtimestamp(at, UTC)
    return f"{then.day} {then:%b}"


def trend(rows: Iterable[DayRow], *, today: int, days: int = 30) -> Trend:
    """Draw the last `days` days; `today` counts days since 1970. A day without rows is as the one before ended."""
    known = _fill(list(rows), today=today, days=days)
    kinds = tuple(KINDS) + tuple(sorted({kind for day in known for kind in day.open} - set(KINDS)))
    top = _round_up(max((day.total for day in known), default=0))
    columns = tuple(_column(index, day, kinds, top) for index, day in enumerate(known))
    return Trend(days * STEP, HEIGHT, top, columns, known, kinds, _describe(known))


def _fill(rows: Sequence[DayRow], *, today: int, days: int) -> tuple[Day, ...]:
    by_day: dict[int, list[DayRow]] = {}
    for row in rows:
        by_day.setdefault(row.day, []).append(row)
    first = min(by_day, default=today + 1)
    standing: dict[str, int] = {}
    for day in sorted(by_day):
        if day <= today - days:
            standing |= {row.kind: row.open for row in by_day[day]}
    filled = []
    for day in range(today - days + 1, today + 1):
        of_day = by_day.get(day, [])
        standing = standing | {row.kind: row.open for row in of_day}
        opened, resolved = sum(row.opened for row in of_day), sum(row.resolved for row in of_day)
        filled.append(Day(day * _DAY, day >= first, dict(standing), opened, resolved))
    return tuple(filled)


def _column(index: int, day: Day, kinds: Sequence[str], top: int) -> Column:
    parts, y = [], float(HEIGHT)
    for kind in kinds:
        height = round(HEIGHT * max(day.open.get(kind, 0), 0) / top, 2)
        if height:
            y = round(y - height, 2)
            parts.append(Part(kind, y, height))
    return Column(index * STEP + _GAP, STEP - 2 * _GAP, tuple(parts), day.words)


def _round_up(value: int) -> int:
    """Give a round number of at least `value`, even, so that its half is one too."""
    if value <= 10:
        return 10
    unit = int("1" + "0" * (len(str(value)) - 1))
    steps = (unit * part // 5 for part in range(5, 51))
    return next(step for step in steps if step >= value and step % 2 == 0)


def _describe(days: Sequence[Day]) -> str:
    known = [day for day in days if day.known]
    if not known:
        return "No data yet."
    most = max(known, key=lambda day: day.total)
    return (
        f"Open findings at the end of each day: {known[0].total:,} on {label(known[0].at)},"
        f" {known[-1].total:,} on {label(known[-1].at)}; at most {most.total:,}, on {label(most.at)}."
    )
