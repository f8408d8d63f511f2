# SPDX-License-Identifier: Apache-2.0
"""Pages of a list: where one ends is a key, and the next begins behind it (keyset pagination).

Invariants:

1. A cursor is opaque to whoever carries it, holds nothing but the key of a row that was shown, and is checked:
   whatever is not a cursor of that very list is a `Problem` 400, never an error of the database.
2. What a filter or a cursor brings passes `checked` before it meets a database, which takes no NUL and no
   lone surrogate.
3. A page may hold fewer rows than its limit, even none, and still have a `next`: a list whose filters meet
   rarely looks at a bounded number of rows and says where to go on. Only `next == ""` is the end.
"""

import base64
import binascii
import re
from typing import Final, Generic, TypeVar

import msgspec

from halod.console.problem import Problem

T = TypeVar("T")
Value = str | int

DEFAULT_LIMIT: Final = 50
MOST: Final = 200
"""Most rows of a page."""
TEXT_LIMIT: Final = 1024
"""Characters of a filter: nothing that is stored is longer (`halod.status.TEXT_LIMIT`)."""
LOOKED_AT: Final = 5_000
"""Most rows that one page of filtered rows looks at."""
_CURSOR_LIMIT: Final = 12_000
_LIMIT: Final = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)
MOST_INTEGER: Final = 2**63 - 1
"""What a database holds as a number."""
_NOT_TEXT: Final = re.compile("[\x00\ud800-\udfff]")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Rows of a list, and the cursor of what follows; `next` is "" on the last page."""

    rows: tuple[T, ...]
    next: str = ""


def parse_limit(text: str) -> int:
    """Give how many rows a page has: 1 to 200, 50 for "".

    Raises:
        Problem: 400, it is no such number.
    """
    if not text:
        return DEFAULT_LIMIT
    if _LIMIT.fullmatch(text) is None or int(text) > MOST:
        raise Problem(400, f"limit is a number from 1 to {MOST}")
    return int(text)


def checked(*texts: str) -> None:
    """Let texts pass that can be compared with stored ones.

    Raises:
        Problem: 400, one is longer than anything stored, or holds a NUL or half of a surrogate pair.
    """
    for text in texts:
        if len(text) > TEXT_LIMIT or _NOT_TEXT.search(text) is not None:
            raise Problem(400, f"a filter is text of at most {TEXT_LIMIT} characters, without NUL")


def encode_cursor(kind: str, *values: Value) -> str:
    """Give the cursor of list `kind` whose last row has the key `values`."""
    return base64.urlsafe_b64encode(msgspec.json.encode((kind, *values))).rstrip(b"=").decode()


def decode_cursor(kind: str, text: str, *types: type) -> tuple[Value, ...]:
    """Give the key in a cursor of list `kind`: one value for each of `types`, each `str` or `int`.

    Raises:
        Problem: 400, it is no cursor of this list.
    """
    found = _contents(text) if len(text) <= _CURSOR_LIMIT else []
    if len(found) != len(types) + 1 or found[0] != kind or not all(map(_is, found[1:], types)):
        raise Problem(400, "cursor is not one that this list gave")
    return tuple(found[1:])


def _contents(text: str) -> list[Value]:
    try:
        raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True)
        return msgspec.json.decode(raw, type=list[str | int])
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        return []


def _is(value: Value, wanted: type) -> bool:
    if isinstance(value, str):
        return wanted is str and _NOT_TEXT.search(value) is None
    return wanted is int and -MOST_INTEGER <= value <= MOST_INTEGER


def after_prefix(prefix: str) -> str | None:
    """Give the smallest text that is greater than every text with this prefix, by code point; None: there is none.

    Both engines compare stored text by code point (SQLite's BINARY, PostgreSQL's "C"), so a prefix is a range.
    """
    while prefix:
        last = ord(prefix[-1])
        if last < 0x10FFFF:
            return prefix[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)
        prefix = prefix[:-1]
    return None
