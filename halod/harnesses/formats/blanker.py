# SPDX-License-Identifier: Apache-2.0
"""Comments and trailing commas out of JSON, byte for byte (libs.md 2).

Invariants: the length stays, line breaks stay, nothing inside a string changes, so offsets in the result are
offsets in the file. Linear: the skipping patterns are possessive and never look at a byte twice.
"""

import re
from typing import Final

from halod.harnesses.formats.base import Malformed, position

_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"?'
_COMMENT: Final = re.compile(
    rb'(?:[^"/]++|' + _STRING + rb"|/(?![/*]))*+((//)[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+(\*/)?)", re.DOTALL
)
_COMMA: Final = re.compile(rb'(?:[^",]++|' + _STRING + rb"|,(?![ \t\r\n]*+[\]}]))*+,", re.DOTALL)
_SPACES: Final = bytes(code if code in b"\r\n" else 0x20 for code in range(256))


def blank(data: bytes | bytearray) -> bytearray:
    """Replace comments and commas before a closing bracket by spaces, in a copy.

    A `//` comment ends at a line feed or a carriage return. `{,}` becomes `{ }`.

    Raises:
        Malformed: a block comment is not closed.
    """
    out = bytearray(data)
    at = 0
    while match := _COMMENT.match(data, at):
        at = match.end()
        comment, line, closed = match.groups()
        start = at - len(comment)
        if not (line or closed):
            raise Malformed(*position(data, start))
        out[start:at] = comment.translate(_SPACES)
    source = bytes(out)
    at = 0
    while match := _COMMA.match(source, at):
        at = match.end()
        out[at - 1] = 0x20
    return out
