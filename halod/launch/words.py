# SPDX-License-Identifier: Apache-2.0
"""Single words of a command line: variables in them, and taking an option apart.

Harnesses expand `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:id}`, `{env:VAR}`, `{{VAR}}`, `$VAR` and
`%VAR%` in different sets (launchers.md 0, harnesses.md); documentation is pasted with `<placeholder>`. What a
variable becomes is not known here, so a word that holds one is never an identity.
"""

import re

_VARIABLE = re.compile(r"\$[A-Za-z0-9_({@*#?!$-]|[{}]|%[A-Za-z_][A-Za-z0-9_().:~-]*%|`")
_PLACEHOLDER = re.compile(r"<[^<>]*>")

MAX_OPERAND = 2048
"""Longest word that can name a package, an image or a program; anything longer is not looked at."""


def listed(text: str) -> frozenset[str]:
    """Give the blank-separated words of a table, as a set."""
    return frozenset(text.split())


def has_variable(word: str) -> bool:
    """Tell whether `word` holds something that a harness, a shell or a person is still to replace."""
    return _VARIABLE.search(word) is not None


def has_placeholder(word: str) -> bool:
    """Tell whether `word` holds a variable or a `<placeholder>` (not usable where `<` is an operator)."""
    return has_variable(word) or _PLACEHOLDER.search(word) is not None


def split_option(word: str) -> tuple[str, str | None]:
    """Take `--name=value` apart; the value is None when there is no `=`."""
    name, equals, value = word.partition("=")
    return name, value if equals else None


class Words:
    """A cursor over the arguments: `next` gives the next word or None, `rest` what is left."""

    __slots__ = ("_at", "_words")

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words
        self._at = 0

    def next(self) -> str | None:
        """Take the next word; None when there is none left."""
        if self._at >= len(self._words):
            return None
        self._at += 1
        return self._words[self._at - 1]

    def peek(self) -> str | None:
        """Show the next word without taking it."""
        return self._words[self._at] if self._at < len(self._words) else None

    def rest(self) -> tuple[str, ...]:
        """Give everything not taken yet."""
        return self._words[self._at :]

    def value(self, attached: str | None) -> str | None:
        """Give an option's value: the attached one, else the next word (None when the line ends)."""
        return self.next() if attached is None else attached
