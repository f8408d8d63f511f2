# SPDX-License-Identifier: Apache-2.0
"""What reaches a terminal: colour where it is wanted, and nothing that steers it."""

import io
import os
import pty

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halod.cli import colour


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("variables", "stream", "wanted"),
    [
        ({}, Terminal(), True),
        ({}, io.StringIO(), False),
        ({"NO_COLOR": "1"}, Terminal(), False),
        ({"NO_COLOR": ""}, Terminal(), True),
        ({"TERM": "dumb"}, Terminal(), False),
    ],
)
def test_colour_is_for_terminals_that_want_it(monkeypatch, variables, stream, wanted):
    """A pipe, a dumb terminal and NO_COLOR (when not empty) get none."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert colour.wanted(stream) is wanted


def test_paint():
    """Nothing is added when colour is off, or to nothing."""
    assert colour.Paint(enabled=False)("red", "x") == "x"
    assert colour.Paint(enabled=True)("red", "") == ""
    assert colour.Paint(enabled=True)("red", "x") == "\x1b[31mx\x1b[0m"


def test_width_without_a_terminal():
    """A pipe gets a fixed width; a stream that only says it is a terminal, 80."""
    assert colour.width(io.StringIO()) == 100
    assert colour.width(Terminal()) == 80


@pytest.mark.parametrize(("columns", "width"), [(100, 100), (20, 40), (500, 120), (0, 80)])
def test_width_of_a_terminal(columns, width):
    """The terminal's columns count, within reason."""
    leader, follower = pty.openpty()
    try:
        import fcntl
        import struct
        import termios

        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with os.fdopen(os.dup(follower), "w") as stream:
            assert colour.width(stream) == width
    finally:
        os.close(leader)
        os.close(follower)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("资料库", "资料库"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\nb\x7f", "a\\nb\\x7f"),
        ("a\u2028b", "a\\u2028b"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud83d", "\\ud83d"),
    ],
)
def test_what_steers_a_terminal_is_escaped(text, shown):
    """Control, format, bidi and private characters are shown, not obeyed."""
    assert colour.escape(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_escaped_text_is_printable(text):
    """No control or bidi character survives, and the text can be encoded."""
    shown = colour.escape(text)
    shown.encode()
    assert not any(char in shown for char in "\x1b\r\n\x07\x9b\u202a\u202e\u2066\u200f")


@given(
    st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12), min_size=1),
    st.integers(10, 60),
)
def test_wrap_keeps_the_words_and_the_width(words, room):
    """Lines fit unless one word alone does not; no word is lost."""
    text = colour.wrap(" ".join(words), room, "  ")
    assert text.split() == " ".join(words).split()
    for line in text.split("\n"):
        assert line.startswith("  ")
        assert colour.columns(line) <= room or " " not in line.strip()


def test_columns_of_wide_and_combining_characters():
    """Wide characters take two columns, combining ones none."""
    assert colour.columns("abc") == 3
    assert colour.columns("资料") == 4
    assert colour.columns("e\u0301") == 1
