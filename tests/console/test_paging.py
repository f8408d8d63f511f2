# SPDX-License-Identifier: Apache-2.0
"""Cursors, limits and prefixes: total on any text, and exact."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halod.console.problem import Problem
from halod.console.store import paging

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=60)
ANY_TEXT = st.text(st.characters(), max_size=60)
VALUES = st.tuples(TEXT, st.integers(-(2**62), 2**62))


@given(VALUES)
def test_a_cursor_gives_back_what_it_was_made_of(values):
    cursor = paging.encode_cursor("things", *values)
    assert paging.decode_cursor("things", cursor, str, int) == values
    assert cursor.isascii()
    assert "=" not in cursor


@given(VALUES)
def test_a_cursor_of_another_list_is_refused(values):
    cursor = paging.encode_cursor("things", *values)
    for kind, types in (("others", (str, int)), ("things", (int, str)), ("things", (str,)), ("things", ())):
        with pytest.raises(Problem) as caught:
            paging.decode_cursor(kind, cursor, *types)
        assert caught.value.status == 400


@given(ANY_TEXT)
def test_any_text_is_a_cursor_or_a_problem(text):
    try:
        paging.decode_cursor("things", text, str, int)
    except Problem as problem:
        assert problem.status == 400  # noqa: PT017 - the other outcome is right as well


@pytest.mark.parametrize(
    "inside",
    [
        b'["things","a\\u0000",1]',
        b'["things","a",9223372036854775808]',
        b'["things","a",1.5]',
        b'["things","a",true]',
        b'["things","a",null]',
        b'["things","\\ud800",1]',
        b'{"things":1}',
        b"[" * 5000,
        b'["things","' + b"a" * 20_000 + b'",1]',
    ],
)
def test_what_a_cursor_cannot_hold(inside):
    text = base64.urlsafe_b64encode(inside).rstrip(b"=").decode()
    with pytest.raises(Problem):
        paging.decode_cursor("things", text, str, int)


def test_the_longest_stored_text_fits_into_a_cursor():
    """Four bytes a character, twice."""
    values = ("\U0001f600" * 1024, "\U0001f600" * 1024)
    assert paging.decode_cursor("d", paging.encode_cursor("d", *values), str, str) == values


@pytest.mark.parametrize(("text", "limit"), [("", 50), ("1", 1), ("200", 200)])
def test_a_limit(text, limit):
    assert paging.parse_limit(text) == limit


@given(ANY_TEXT)
def test_any_text_is_a_limit_or_a_problem(text):
    try:
        assert 1 <= paging.parse_limit(text) <= 200
    except Problem as problem:
        assert problem.status == 400  # noqa: PT017 - the other outcome is right as well


@pytest.mark.parametrize("text", ["0", "201", "-1", "1.0", " 1", "1e2", "١", "0x10", "1" * 5000])
def test_what_is_no_limit(text):
    with pytest.raises(Problem):
        paging.parse_limit(text)


@given(TEXT, TEXT)
def test_a_prefix_is_a_range_of_code_points(prefix, other):
    end = paging.after_prefix(prefix)
    for text in (other, prefix + other):
        inside = text.encode() >= prefix.encode() and (end is None or text.encode() < end.encode())
        assert inside == text.startswith(prefix)


def test_a_prefix_at_the_end_of_unicode():
    assert paging.after_prefix("a\U0010ffff") == "b"
    assert paging.after_prefix("\U0010ffff") is None
    assert paging.after_prefix("\ud7ff") == "\ue000"
    assert paging.after_prefix("") is None


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x" * 1025])
def test_what_cannot_be_asked_of_a_database(text):
    with pytest.raises(Problem) as caught:
        paging.checked("fine", text)
    assert text not in caught.value.detail
