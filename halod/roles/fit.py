# SPDX-License-Identifier: Apache-2.0
"""An answer made to fit its pipe (design 3: at most 1 MiB), so that a flood costs the flood and nothing else.

Invariants:

1. Every location gets an equal share of the room, what one does not need goes to the others; within a location
   small files go first. So one file with thousands of entries, or one folder with thousands of files, is cut
   and all else stays whole.
2. What is cut is told: a gap `too-many-entries` at the file, or at the folder when files of it are missing.
3. Of a cut file the gravest rows stay: denied, unapproved, version-drift, the rest (as in a report, design 8).
"""

from collections.abc import Collection, Iterable
from typing import Final, TypeVar

import msgspec

from halod.roles.answer import Answer, Gap, Row
from halod.roles.limits import MIB

ROOM: Final = MIB - 8 * 1024
"""Bytes of an answer: what a supervisor takes, less what surrounds the rows."""
_FEW: Final = 4096  # bytes that a file may have however many there are: a handful of rows
_LEAST: Final = 1024  # bytes below which a file is not worth cutting
_SEVERITY: Final = {"denied": 0, "unapproved": 1, "version-drift": 2, "inventory": 3, "approved": 3}

_ENCODER: Final = msgspec.msgpack.Encoder()
_Place = tuple[int, tuple[str, ...]]
_Item = TypeVar("_Item", Row, Gap)


class _File:
    """What an answer says of one file, or of the folder that stands for it."""

    __slots__ = ("gaps", "place", "read", "rows", "size")

    def __init__(self, place: _Place) -> None:
        self.place = place
        self.rows: list[Row] = []
        self.gaps: list[Gap] = []
        self.read = 0
        self.size = 0

    def measure(self) -> int:
        self.size = _sizes(self.rows) + _sizes(self.gaps) + self.read * _size(self.place)
        return self.size

    def cut(self, room: int) -> None:
        """Keep what fits into `room` bytes, with a gap for the rest."""
        gap = Gap(*self.place, reason="too-many-entries")
        left = room - _size(gap) - self.read * _size(self.place)
        self.rows = _fitting(sorted(self.rows, key=lambda row: _SEVERITY[row.kind]), left)
        left -= _sizes(self.rows)
        self.gaps = [*_fitting([other for other in self.gaps if other != gap], left), gap]
        self.measure()


def fitted(answer: Answer, room: int = ROOM) -> Answer:
    """Give an answer of at most `room` bytes: itself when it fits."""
    if _size(answer) <= room:
        return answer
    locations = [(sum([one.measure() for one in files]), files) for files in _by_location(answer)]
    kept: list[_File] = []
    for count, (size, files) in enumerate(sorted(locations, key=lambda location: location[0])):
        share = room // (len(locations) - count)
        some = files if size <= share else _cut(files, share)
        room -= sum([one.size for one in some])
        kept += some
    return msgspec.structs.replace(
        answer,
        rows=tuple([row for one in kept for row in one.rows]),
        gaps=tuple([gap for one in kept for gap in one.gaps]),
        read=tuple([one.place for one in kept for _ in range(one.read)]),
    )


def _by_location(answer: Answer) -> list[Collection[_File]]:
    locations: dict[int, dict[_Place, _File]] = {}

    def of(place: _Place) -> _File:
        return locations.setdefault(place[0], {}).setdefault(place, _File(place))

    for row in answer.rows:
        of((row.location, row.parts)).rows.append(row)
    for gap in answer.gaps:
        of((gap.location, gap.parts)).gaps.append(gap)
    for place in answer.read:
        of(place).read += 1
    return [files.values() for files in locations.values()]


def _cut(files: Collection[_File], room: int) -> list[_File]:
    """Keep what fits of one location's files, and a gap for its folder when not every file is there."""
    folder = _File((next(iter(files)).place[0], ()))
    folder.gaps = [Gap(*folder.place, reason="too-many-entries")]
    room -= folder.measure()
    kept = []
    for count, one in enumerate(sorted(files, key=lambda one: one.size)):
        share = min(room, max(room // (len(files) - count), _FEW))
        if one.size > share >= _LEAST:
            one.cut(share)
        if one.size <= share:
            kept.append(one)
            room -= one.size
    if len(kept) < len(files) and folder.gaps[0] not in (gap for one in kept for gap in one.gaps):
        kept.append(folder)
    return kept


def _fitting(items: Iterable[_Item], room: int) -> list[_Item]:
    kept = []
    for item in items:
        room -= _size(item)
        if room < 0:
            break
        kept.append(item)
    return kept


def _size(value: Answer | Row | Gap | _Place) -> int:
    return len(_ENCODER.encode(value))


def _sizes(values: Iterable[Row | Gap]) -> int:
    return sum([_size(value) for value in values])
