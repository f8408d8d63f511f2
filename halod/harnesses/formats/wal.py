# SPDX-License-Identifier: Apache-2.0
"""An SQLite database file and its write-ahead log, made one image in memory (sqlite.org/fileformat2.html, 4).

What SQLite's own recovery does (4.1 to 4.4): frames count while their salts are the log header's and the
running checksum fits; of these, all up to the last commit frame replace or extend the file's pages, and the
commit frame gives the database's size. A log with a broken header is empty. Nothing here trusts a number it
has not compared with the bytes that are there.
"""

import struct
from typing import Final

from halod.harnesses.formats.base import Malformed

_MAGIC: Final = b"SQLite format 3\0"
_WAL_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_WAL_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}  # the byte order of checksums only
_WAL_VERSION: Final = 3007000
_WORD: Final = 0xFFFFFFFF


class _Frames:
    """The committed pages of a log: page number to the offset of its newest copy, and the size in pages."""

    __slots__ = ("page_size", "pages", "size")

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.pages: dict[int, int] = {}
        self.size = 0


def merge(database: bytes | bytearray, log: bytes | bytearray | None) -> bytearray:
    """Give the database as of the log's last commit, out of write-ahead mode so that it opens in memory.

    A database of zero bytes is empty whatever the log says, as for SQLite.

    Raises:
        Malformed: not an SQLite database, or the log does not belong to it.
    """
    image = bytearray(database)
    if not image:
        return image
    page_size = _page_size(image)
    frames = _committed(log) if log else None
    if frames and frames.size:
        if frames.page_size != page_size:
            raise Malformed
        _apply(image, log or b"", frames)
    image[18:20] = b"\x01\x01"  # read and write version: rollback journal (1.3.3)
    return image


def _page_size(image: bytearray) -> int:
    """Check the file's header and give its page size (1.3.2: 1 stands for 65,536)."""
    if len(image) < 512 or not image.startswith(_MAGIC):
        raise Malformed
    size = int.from_bytes(image[16:18], "big")
    size = 65536 if size == 1 else size
    if not _possible(size):
        raise Malformed
    return size


def _possible(page_size: int) -> bool:
    return 512 <= page_size <= 65536 and page_size & (page_size - 1) == 0


def _committed(log: bytes | bytearray) -> _Frames | None:
    """Read the log up to its last valid commit; None when its header is broken."""
    view = memoryview(log)
    if len(view) < _WAL_HEADER:
        return None
    magic, version, page_size, _, salt1, salt2, check1, check2 = struct.unpack_from(">8I", view)
    order = _WAL_MAGIC.get(magic)
    if not order or version != _WAL_VERSION or not _possible(page_size):
        return None
    sums = _checksum(view[:24], order, (0, 0))
    if sums != (check1, check2):
        return None
    frames = _Frames(page_size)
    pending: dict[int, int] = {}
    for at in range(_WAL_HEADER, len(view) - _FRAME_HEADER - page_size + 1, _FRAME_HEADER + page_size):
        number, size, *rest = struct.unpack_from(">6I", view, at)
        page = at + _FRAME_HEADER
        if number == 0 or rest[:2] != [salt1, salt2]:
            break
        sums = _checksum(view[page : page + page_size], order, _checksum(view[at : at + 8], order, sums))
        if sums != (rest[2], rest[3]):
            break
        pending[number] = page
        if size:
            frames.pages.update(pending)
            frames.size = size
            pending.clear()
    return frames


def _checksum(data: memoryview, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """Carry the running checksum over `data`, whose length is a multiple of 8 (4.2)."""
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for even, odd in zip(words, words, strict=True):
        first = (first + even + second) & _WORD
        second = (second + odd + first) & _WORD
    return first, second


def _apply(image: bytearray, log: bytes | bytearray, frames: _Frames) -> None:
    """Write the pages over the image; every page of the new size must come from one of the two."""
    page_size = frames.page_size
    if frames.size > len(image) // page_size + len(frames.pages):
        raise Malformed
    missing = frames.size * page_size - len(image)
    if missing > 0:
        image.extend(bytes(missing))
    else:
        del image[frames.size * page_size :]
    for number, page in frames.pages.items():
        if number <= frames.size:
            at = (number - 1) * page_size
            image[at : at + page_size] = log[page : page + page_size]
