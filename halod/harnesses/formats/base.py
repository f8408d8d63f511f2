# SPDX-License-Identifier: Apache-2.0
"""What every decoder of a user's file shares: its error, its number, its positions.

Invariants:

1. A `Malformed` carries a line and a column and nothing of the text: no message, no chained exception.
   Parsers' own errors quote keys and hold the whole document, so `decode` raises a fresh one outside their
   handlers.
2. A `Number` is the number as the file spells it, because a definition's hash covers its arguments as
   written.
"""

from collections.abc import Iterator
from typing import Final

BOM: Final = b"\xef\xbb\xbf"
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_CHUNK: Final = 1 << 16


class Malformed(Exception):
    """The content does not parse. `line` and `column` start at 1, 0 is unknown; nothing of the text."""

    def __init__(self, line: int = 0, column: int = 0) -> None:
        super().__init__(line, column)
        self.line = line
        self.column = column

    def __str__(self) -> str:
        """Give the position in words."""
        return f"line {self.line}, column {self.column}" if self.line else "at an unknown position"


class TooLarge(Malformed):
    """The file has more bytes than its format's decoder takes on (the decoders that run in Python only)."""


class Number(str):
    """A number in its spelling as written (`0.50`, `1e3`); compares and hashes as that text."""

    __slots__ = ()


def without_bom(data: bytes | bytearray) -> bytes | bytearray:
    """Give the bytes after a UTF-8 byte-order mark, or the same object where there is none."""
    return data.removeprefix(BOM)


def strict_text(data: bytes | bytearray) -> str:
    """Decode UTF-8 without its byte-order mark.

    Raises:
        Malformed: a byte sequence is not UTF-8 (TOML and YAML, design 3.6).
    """
    data = without_bom(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        offset = error.start
    raise Malformed(*position(data, offset))


def position(data: bytes | bytearray, offset: int) -> tuple[int, int]:
    """Turn a byte offset into a line and a column in characters, both from 1."""
    offset = min(max(offset, 0), len(data))
    start = data.rfind(b"\n", 0, offset) + 1
    return data.count(b"\n", 0, offset) + 1, sum(_characters(data, start, offset)) + 1


def _characters(data: bytes | bytearray, start: int, stop: int) -> Iterator[int]:
    """Count the characters in chunks: a line may be the whole of a 100 MB file."""
    for at in range(start, stop, _CHUNK):
        yield len(data[at : min(at + _CHUNK, stop)].translate(None, _CONTINUATION))
