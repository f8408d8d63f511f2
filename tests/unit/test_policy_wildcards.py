# SPDX-License-Identifier: Apache-2.0
"""Gaps of patterns and templates match what a regular expression would, and end when it would not."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.policy.wildcards import fills, fits


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_a_star_stands_for_anything(pattern, text):
    as_regex = ".*".join(map(re.escape, pattern.split("*")))
    assert fits(pattern, text) == (re.fullmatch(as_regex, text) is not None)


_PIECES = st.lists(st.sampled_from(["{a}", "{b}", "/", "-", "!", "x", ".acme.example"]), max_size=6).map(
    "".join
)
_REST = st.text("ax-/!.", max_size=10)


@settings(max_examples=300)
@given(st.sampled_from(["https://", "https://{h}", "{base}", ""]), _PIECES, _REST | _PIECES)
def test_a_variable_stands_for_one_segment(start, template, rest):
    """And the one at the beginning for an origin with any path."""
    whole, url = start + template, "https://" + rest.replace("{a}", "ax").replace("{b}", "x")
    pieces = [re.escape(piece) for piece in re.split(r"\{[^{}]*\}", whole)]
    expected = "[A-Za-z0-9._~-]+".join(pieces)
    if not pieces[0] and len(pieces) > 1:
        expected = r"https://[A-Za-z0-9._~:/-]+" + expected.removeprefix("[A-Za-z0-9._~-]+")
    assert fills(whole, url) == (len(pieces) > 1 and re.fullmatch(expected, url) is not None)


@pytest.mark.parametrize("gaps", [30, 600])
def test_many_gaps_end_at_once(gaps):
    """A document's template, or a URL of `deny`, may be made to have every way tried."""
    assert not fills("https://a.example/" + "{a}" * gaps + "!", "https://a.example/" + "a" * 2000)
    assert not fits("https://a.example/" + "*a" * gaps + "c", "https://a.example/" + "a" * 400 + "b")
