# SPDX-License-Identifier: Apache-2.0
"""JSON5 (OpenClaw), by its own grammar (spec.json5.org).

A small recursive reader over one token pattern: the libraries need seconds for a megabyte (libs.md 2).
Accepted beyond JSON: comments, trailing commas, unquoted keys, single quotes, line continuations, the wider
escapes and blanks, `+`, hexadecimal, `.5`, `5.`, Infinity and NaN. Numbers are `Number`, spelled as written.

Strings and all other tokens are matched in a copy in which what a backslash hides (a quote, a line break,
another backslash) is NUL, comments in the text itself: no pattern needs a choice inside a repetition.

Invariants: linear (no pattern can match one text in two ways); at most `DEPTH` levels. No pattern is possessive:
up to Python 3.11.4 those go wrong where there is a choice in them (gh-106052).
"""

import re
from functools import lru_cache
from typing import Final

from halod.harnesses.formats.base import Malformed, Number, TooLarge, without_bom
from halod.harnesses.formats.json_whole import decode_whole

DEPTH: Final = 300
BYTES: Final = 2 << 20  # read in Python: a second or two
_SPACE: Final = r"[\s\ufeff]*"
# Comments that follow each other; the bounds, here and in words, are for what the matcher keeps in memory.
_COMMENTS: Final = r"(?:(?://[^\n\r\u2028\u2029]*|/\*.*?\*/)" + _SPACE + "){1,1000}"
_TOKEN: Final = (
    _SPACE
    + r"""(?:
    (?P<mark>[{}\[\]:,])
    | "(?P<double>[^"\n\r]*)"
    | '(?P<single>[^'\n\r]*)'
    | (?P<number>[+-]?(?:
        0[xX][0-9a-fA-F]+ | Infinity | NaN
        | (?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
      ))(?![\w$\\.])
    | (?P<word>(?:[^\W\d]|[$]|\\u[0-9a-fA-F]{4})[\w$\u200c\u200d]*
        (?:\\u[0-9a-fA-F]{4}[\w$\u200c\u200d]*){0,1000})
    | (?P<comment>/)
    | (?P<end>\Z)
    )"""
)
_HIDDEN: Final = ("\\\\", '\\"', "\\'", "\\\r\n", "\\\n", "\\\r")
_ESCAPE: Final = r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))"
_NAMED: Final = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "0": "\0",
    **dict.fromkeys(["\n", "\r", "\r\n", "\u2028", "\u2029"], ""),  # a continued line
}
_SEPARATORS: Final = "\u2028".encode(), "\u2029".encode()
_REFUSED: Final = frozenset("123456789ux")
_LITERALS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}


def decode_json5(data: bytes | bytearray) -> object:
    """Decode a JSON5 file; {} for one without a value.

    Raises:
        TooLarge: more than 2 MiB that are not JSON with comments.
        Malformed: it does not parse or is nested deeper than 300 levels.
    """
    if not any(mark in data for mark in _SEPARATORS):  # in JSON5 they end a comment
        try:
            return decode_whole(data)
        except Malformed:
            pass  # it needs the wider grammar, or is broken
    if len(data) > BYTES:
        raise TooLarge
    return _Reader(without_bom(data).decode("utf-8", "replace")).document()


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Compile token, comments, escape when the first file needs them: two milliseconds that few scans need."""
    flags = re.DOTALL
    return re.compile(_TOKEN, flags | re.VERBOSE), re.compile(_COMMENTS, flags), re.compile(_ESCAPE, flags)


def _without_hidden(text: str) -> str:
    """Put NUL for each escape whose second half would end a string; a NUL outside of strings is no token."""
    for hidden in _HIDDEN:
        text = text.replace(hidden, "\0" * len(hidden))
    return text


class _Reader:
    """A place in a text; every method reads one thing and stands behind it."""

    __slots__ = ("at", "bare", "comments", "escape", "text", "token")

    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = _without_hidden(text)
        self.at = 0
        self.token, self.comments, self.escape = _patterns()

    def document(self) -> object:
        """Read the one value and the end of the text."""
        value = self._value(self._next(), 0)
        last = self._next()
        if last.lastgroup != "end":
            raise self._wrong(last)
        return value

    def _next(self) -> re.Match[str]:
        while True:
            token = self.token.match(self.bare, self.at)
            if not token:
                gap = re.compile(_SPACE).match(self.text, self.at)
                raise self._at(gap.end() if gap else self.at)
            self.at = token.end()
            if token.lastgroup != "comment":
                return token
            comments = self.comments.match(self.text, self.at - 1)
            if not comments:
                raise self._wrong(token)
            self.at = comments.end()

    def _text(self, token: re.Match[str]) -> str:
        """Give what a token says, escapes as written."""
        group = token.lastgroup or 0
        text = token[group]
        return self.text[slice(*token.span(group))] if "\0" in text else text

    def _at(self, offset: int) -> Malformed:
        line = self.text.count("\n", 0, offset) + 1
        return Malformed(line, offset - self.text.rfind("\n", 0, offset))

    def _wrong(self, token: re.Match[str]) -> Malformed:
        return self._at(token.start(token.lastgroup or 0))

    def _value(self, token: re.Match[str], depth: int) -> object:
        if depth > DEPTH:
            raise self._wrong(token)
        text = self._text(token)
        match token.lastgroup:
            case "double" | "single":
                return self._string(token, text)
            case "number":
                return Number(text)
            case "word" if text in _LITERALS:
                return _LITERALS[text]
            case "mark" if text == "{":
                return self._object(depth)
            case "mark" if text == "[":
                return self._array(depth)
        raise self._wrong(token)

    def _array(self, depth: int) -> list[object]:
        items: list[object] = []
        token = self._next()
        while token["mark"] != "]":
            items.append(self._value(token, depth + 1))
            token = self._after_item("]")
        return items

    def _object(self, depth: int) -> dict[str, object]:
        members: dict[str, object] = {}
        token = self._next()
        while token["mark"] != "}":
            name = self._name(token)
            colon = self._next()
            if colon["mark"] != ":":
                raise self._wrong(colon)
            members[name] = self._value(self._next(), depth + 1)
            token = self._after_item("}")
        return members

    def _after_item(self, closing: str) -> re.Match[str]:
        """Read what follows an item: give the closing bracket, or the token after the comma."""
        token = self._next()
        if token["mark"] == closing:
            return token
        if token["mark"] != ",":
            raise self._wrong(token)
        return self._next()

    def _name(self, token: re.Match[str]) -> str:
        text = self._text(token)
        if token.lastgroup in {"double", "single", "word"}:
            return self._string(token, text)
        if text in {"Infinity", "NaN"}:
            return text
        raise self._wrong(token)

    def _string(self, token: re.Match[str], text: str) -> str:
        """Resolve escapes; halves of a surrogate pair join, a lone one stays."""
        if "\\" not in text:
            return text

        def unescape(escape: re.Match[str]) -> str:
            code = escape[1] or escape[2]
            if code:
                return chr(int(code, 16))
            letter = escape[3]
            digit_follows = text[escape.end() : escape.end() + 1].isdecimal()
            if letter in _REFUSED or (letter == "0" and digit_follows):
                raise self._wrong(token)
            return _NAMED.get(letter, letter)

        plain = self.escape.sub(unescape, text)
        return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
