# SPDX-License-Identifier: Apache-2.0
"""Where in a TOML text each key stands: tomli gives values without positions.

The text has been accepted by tomli, so this walk only has to tell keys from values; on anything it does not
expect it stops and keeps what it has. Pure. TOML 1.1 (toml.io), with newlines in inline tables.
"""

import re
from contextlib import suppress
from typing import Final

Path = tuple[str | int, ...]
"""Keys and, for members of arrays, their numbers from 0: `("scan", "extra_locations", 0, "path")`."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRINGS: Final = (
    re.compile(r'"""(?:[^"\\]|\\[\s\S]|"{1,2}(?!"))*"{3,5}'),
    re.compile(r"'''(?:[^']|'{1,2}(?!'))*'{3,5}"),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_SCALAR: Final = re.compile(r"[^,\]}\n#]+")
_ESCAPE: Final = re.compile(r'\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(["\\bfnrte]))')
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "e": "\x1b"}


class _Lost(Exception):
    """The text is not what this walk expects."""


def locate(text: str) -> dict[Path, int]:
    """Give the line (from 1) of every table header, key and array member; what was not found is missing."""
    walk = _Walk(text)
    with suppress(_Lost, RecursionError):
        walk.document()
    return walk.lines


def line_of(lines: dict[Path, int], path: Path) -> int:
    """Give the line of a path or of the nearest thing around it; 1 when nothing is known."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self._arrays: dict[Path, int] = {}  # arrays of tables: the number of the newest member
        self._counted = (0, 1)

    def document(self) -> None:
        table: Path = ()
        while True:
            self._match(_BLANK)
            if self.at >= len(self.text):
                return
            if self.text.startswith("[", self.at):
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        line = self._line()
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        keys = self._keys()
        self._expect("]]" if array else "]")
        path: Path = ()
        for number, key in enumerate(keys):
            path = (*path, key)
            last = number == len(keys) - 1
            if last and array:
                self._arrays[path] = self._arrays.get(path, -1) + 1
            self.lines.setdefault(path, line)
            if path in self._arrays:
                path = (*path, self._arrays[path])
                self.lines.setdefault(path, line)
        return path

    def _pair(self, table: Path) -> None:
        line = self._line()
        path = table
        for key in self._keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._expect("=")
        self._value(path)

    def _value(self, path: Path) -> None:
        self._match(_BLANK)
        opening = self.text[self.at : self.at + 1]
        if opening == "[":
            self._members(path)
        elif opening == "{":
            self._members(path, inline=True)
        elif opening in {'"', "'"}:
            self._string()
        elif not self._match(_SCALAR):
            raise _Lost

    def _members(self, path: Path, *, inline: bool = False) -> None:
        """Walk an array, or with `inline` an inline table."""
        closing = "}" if inline else "]"
        self.at += 1
        number = 0
        while True:
            self._match(_BLANK)
            if self.text.startswith(closing, self.at):
                self.at += 1
                return
            if inline:
                self._pair(path)
            else:
                self.lines[(*path, number)] = self._line()
                self._value((*path, number))
                number += 1
            self._match(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
            elif not self.text.startswith(closing, self.at):
                raise _Lost

    def _keys(self) -> list[str]:
        """Read a key, dotted or not."""
        keys = []
        while True:
            self._match(_SPACE)
            bare = self._match(_BARE)
            keys.append(bare or self._quoted())
            self._match(_SPACE)
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1

    def _quoted(self) -> str:
        written = self._string()
        if written.startswith("'"):
            return written[1:-1]
        return _ESCAPE.sub(_unescape, written[1:-1])

    def _string(self) -> str:
        for form in _STRINGS:
            found = self._match(form)
            if found:
                return found
        raise _Lost

    def _expect(self, what: str) -> None:
        if not self.text.startswith(what, self.at):
            raise _Lost
        self.at += len(what)

    def _match(self, what: re.Pattern[str]) -> str:
        found = what.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def _line(self) -> int:
        """Give the line of the position, counted on from the last time."""
        since, line = self._counted
        line += self.text.count("\n", since, self.at)
        self._counted = (self.at, line)
        return line


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    return chr(int(code, 16)) if code else _SHORT.get(found[4], found[4])
