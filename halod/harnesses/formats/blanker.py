# SPDX-License-Identifier: Apache-2.0
r"""Comments and trailing commas out of JSON, byte for byte (libs.md 2).

Invariants: the length stays, line breaks stay, nothing inside a string changes, so offsets in the result are
offsets in the file. Linear: every step goes forward, what a step looks at is behind it afterwards, and there
are at most `STEPS`. No pattern is possessive: up to Python 3.11.4 those go wrong where there is a choice in
them (gh-106052), and Debian 12 has 3.11.2.

Strings are told by counting quotes, in C, in a copy without the escapes `\\` and `\"`. Outside a string and a
comment no backslash is JSON: what is made of a text that has one there does not parse either.
"""

import re
from typing import Final

from halod.harnesses.formats.base import Malformed, TooLarge, position

STEPS: Final = 500_000  # about a second; a line of a 16 MiB file has a comment for every 32 bytes then

_ONE: Final = rb"(?://[^\r\n]*|/\*.*?\*/)"
# Comments that follow each other are one step; the bound is for what the matcher keeps in memory for each.
_COMMENTS: Final = re.compile(_ONE + rb"(?:[ \t\r\n]*" + _ONE + rb"){0,1000}", re.DOTALL)
_COMMENT_SIGN: Final = re.compile(rb"/[/*]")
_COMMA: Final = re.compile(rb",(?=[ \t\r\n]*[\]}])")
_SPACES: Final = bytes(code if code in b"\r\n" else 0x20 for code in range(256))


def blank(data: bytes | bytearray) -> bytearray:
    """Replace comments and commas before a closing bracket by spaces, in a copy.

    A `//` comment ends at a line feed or a carriage return. `{,}` becomes `{ }`.

    Raises:
        TooLarge: more comments, such commas, and strings that hold the signs of one, than `STEPS`.
        Malformed: a block comment is not closed.
    """
    out = bytearray(data)
    text = data.replace(rb"\\", b"__").replace(rb"\"", b"__")
    bare = bytearray(text)
    place = _Place(text)
    while place.find(_COMMENT_SIGN):
        start = place.at
        comments = _COMMENTS.match(text, start)
        if not comments:
            raise Malformed(*position(data, start))
        place.at = comments.end()
        out[start : place.at] = bare[start : place.at] = comments[0].translate(_SPACES)
    place = _Place(bytes(bare))
    while place.find(_COMMA):
        out[place.at] = 0x20
        place.at += 1
    return out


class _Place:
    """A place in a text without escapes that is outside its strings, and the steps that are left."""

    __slots__ = ("at", "steps", "text")

    def __init__(self, text: bytes | bytearray) -> None:
        self.text = text
        self.at = 0
        self.steps = STEPS

    def find(self, sign: re.Pattern[bytes]) -> bool:
        """Go to the next match that begins outside a string; say whether there is one."""
        while found := sign.search(self.text, self.at):
            if not self.steps:
                raise TooLarge
            self.steps -= 1
            start = found.start()
            if self.text.count(b'"', self.at, start) % 2 == 0:
                self.at = start
                return True
            closing = self.text.find(b'"', start)
            if closing < 0:
                return False
            self.at = closing + 1
        return False
