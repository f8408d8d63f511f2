# SPDX-License-Identifier: Apache-2.0
"""What a person sees on a terminal: colour where it is wanted, its width, and nothing that steers it."""

import os
import unicodedata
from typing import Final, TextIO

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_STEERING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_NARROWEST: Final = 40
_WIDEST: Final = 120


class Paint:
    """Writes text in a colour, or plainly when colour is off."""

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled

    def __call__(self, style: str, text: str) -> str:
        """Give `text` in `style`: bold, dim, red, green, yellow, cyan, or "" for none."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.enabled and style and text else text


def wanted(stream: TextIO) -> bool:
    """Tell whether `stream` should get colour: a terminal that can, and NO_COLOR (no-color.org) not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(stream: TextIO) -> int:
    """Give the columns of the terminal behind `stream`, within 40 and 120; 100 when it is none."""
    if not stream.isatty():
        return 100
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 80
    return max(_NARROWEST, min(columns or 80, _WIDEST))


def escape(text: str) -> str:
    r"""Show control, format, bidi and private characters as `\xNN` or `\u…`: no name steers the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii") if unicodedata.category(char) in _STEERING else char
        for char in text
    )


def columns(text: str) -> int:
    """Give the columns that `text` takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def wrap(text: str, room: int, indent: str) -> str:
    """Break `text` at blanks so that each line, with `indent`, fits `room`; a longer word stands alone."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and columns(indent + longer) > room:
            lines.append(line)
            line = word
        else:
            line = longer
    lines.append(line)
    return "\n".join(indent + line for line in lines)
