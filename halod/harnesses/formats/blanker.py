# SPDX-License-Identifier: Apache-2.0
"""Comments and trailing commas out of JSON, byte for byte (libs.md 2).

Invariants: the length stays, line breaks stay, nothing inside a string changes, so offsets in the result are
offsets in the file. Linear: the skipping patterns are possessive and never look at a byte twice. Comments that
follow each other are one step, and there are at most `STEPS`.
"""

import re
from typing import Final

from halod.harnesses.formats.base import Malformed, TooLarge, position

STEPS: Final = 500_000  # about a second; a line of a 16 MiB file has a comment for every 32 bytes then

_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"?'
_ONE: Final = rb"(?://[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)"
_COMMENTS: Final = re.compile(
    rb'(?:[^"/]++|' + _STRING + rb"|/(?![/*]))*+((?:[ \t\r\n]*+" + _ONE + rb")++|/\*)", re.DOTALL
)
_COMMA: Final = re.compile(rb'(?:[^",]++|' + _STRING + rb"|,(?![ \t\r\n]*+[\]}]))*+,", re.DOTALL)
_SPACES: Final = bytes(code if code in b"\r\n" else 0x20 for code in range(256))


def blank(data: bytes | bytearray) -> bytearray:
    """Replace comments and commas before a closing bracket by spaces, in a copy.

    A `//` comment ends at a line feed or a carriage return. `{,}` becomes `{ }`.

    Raises:
        TooLarge: more comments or such commas than `STEPS`.
        Malformed: a block comment is not closed.
    """
    out = bytearray(data)
    at = 0
    steps = 0
    while match := _COMMENTS.match(data, at):
        at = match.end()
        comments = match[1]
        start = at - len(comments)
        if comments == b"/*":
            raise Malformed(*position(data, start))
        out[start:at] = comments.translate(_SPACES)
        steps = _step(steps)
    source = bytes(out)
    at = 0
    while match := _COMMA.match(source, at):
        at = match.end()
        out[at - 1] = 0x20
        steps = _step(steps)
    return out


def _step(steps: int) -> int:
    if steps >= STEPS:
        raise TooLarge
    return steps + 1
