# SPDX-License-Identifier: Apache-2.0
"""CSV (RFC 4180) that no spreadsheet takes for a formula. Pure.

Invariants:

1. Lines end with CRLF; a field with a comma, a quote or a line end is quoted, quotes in it are doubled.
2. Text passes `halod.status.clean` once more: no control, format or bidi character, no line end is in a field.
3. Text that begins with `= + - @`, or with one of them in another width, gets an apostrophe in front, which a
   spreadsheet shows as text; so does text that begins with an apostrophe, so that taking one away always gives the
   text back. Numbers and times are written by us and begin with a digit.
"""

from collections.abc import Iterable
from typing import Final

from halod.status import clean

_STARTS: Final = tuple("=+-@'\t\r\n\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212")
"""The last nine: full width, small, and the minus sign."""
_QUOTED: Final = frozenset(',;"\r\n\t')


def field(value: object) -> str:
    """Give one field."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = clean(str(value), len(str(value)))
    if text.startswith(_STARTS):
        text = "'" + text
    if _QUOTED.isdisjoint(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def line(values: Iterable[object]) -> str:
    """Give one record with its CRLF."""
    return ",".join(map(field, values)) + "\r\n"
