# SPDX-License-Identifier: Apache-2.0
"""Pages: words, times, hashes and hostile text as they are shown; addresses; the trend's drawing; static files."""

import re
import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from halod import status
from halod.console.pages import ROUTES, assets, chart, links, overview, text, words
from halod.console.store.read.findings import Tally
from halod.harnesses.table import HARNESSES

NOW = 1_796_000_000
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


class Row(msgspec.Struct):
    day: int
    kind: str
    open: int
    opened: int = 0
    changed: int = 0
    resolved: int = 0


def strip(markup):
    return re.sub(r"<[^>]*>", "", markup)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (3599, "59 minutes ago"),
        (7200, "2 hours ago"),
        (86_400, "1 day ago"),
        (14 * 86_400, "14 days ago"),
        (15 * 86_400, "15 Nov 2026"),
        (-30, "in a moment"),
        (-3 * 86_400, "in 3 days"),
    ],
)
def test_a_time_is_told_in_words(seconds, said):
    assert text.relative(NOW - seconds, NOW) == said


def test_a_time_has_its_exact_form_for_machines_and_as_a_title():
    shown = text.when(NOW - 7200, NOW)
    assert 'datetime="2026-11-29T22:53:20Z"' in shown
    assert 'title="29 Nov 2026, 22:53 UTC"' in shown


@pytest.mark.parametrize("at", [None, 0, -5, 2**53, 2**62])
def test_what_is_no_time_is_never(at):
    assert "never" in text.when(at, NOW)


@given(st.text(max_size=300))
@settings(max_examples=200)
def test_whatever_a_device_says_is_escaped_isolated_and_seen(said):
    """No markup of the text survives, nothing in it moves its neighbours, and nothing is hidden."""
    for shown in (text.claim(said), text.brief(said), text.short(said), text.full(said), text.unfold(said)):
        assert isinstance(shown, Markup)
        assert not re.search(r"<(?!/?(bdi|code|details|summary|span|p)\b)", shown)
        inner = strip(shown)
        assert "<" not in inner
        assert ">" not in inner
        assert not any(char in BIDI or ord(char) < 32 or ord(char) == 127 for char in inner)


def test_what_is_not_seen_is_spelled_out():
    assert text.visible("a\u202eb\x1b[31m\u2028") == "a\\u{202e}b\\u{1b}[31m\\u{2028}"


def test_marks_that_climb_over_other_lines_are_cut():
    assert len(text.visible("z" + "\u0301" * 1000)) == 5


@pytest.mark.parametrize("said", ["a" * 64, "ä" * 64])
def test_a_text_with_room_is_shown_whole(said):
    assert text.claim(said) == f"<bdi>{said}</bdi>"


def test_a_long_text_is_cut_and_its_whole_can_be_opened():
    shown = text.claim("x" * 10_000, 40)
    assert shown.startswith('<details class="long"><summary><bdi>' + "x" * 40 + "</bdi>")
    assert "10,000 characters" in shown
    assert "x" * 10_000 in shown


def test_a_hash_is_cut_with_what_made_it_named():
    digest = "sha256:" + "ab" * 32
    assert strip(text.short(digest)) == "sha256:abababababab…"
    assert digest in strip(text.unfold(digest))


def test_what_is_no_hash_is_no_hash_that_does_not_break():
    assert 'class="hash"' not in text.short("A" * 100)


# --- words ---------------------------------------------------------------------------------------------------


def test_every_reason_kind_event_scope_and_gap_has_words():
    assert set(words.REASONS) == set(typing.get_args(status.Reason))
    assert set(words.KINDS) == set(typing.get_args(status.Kind))
    assert set(words.EVENTS) == set(typing.get_args(status.Event))
    assert set(words.SCOPES) == set(typing.get_args(status.Scope))
    assert set(words.NOT_COVERED) == set(typing.get_args(status.NotCovered))


def test_every_harness_has_a_name():
    assert {harness.id for harness in HARNESSES} <= set(words.HARNESSES)


def test_what_a_newer_agent_says_is_shown_as_it_came():
    assert words.harness("future-tool") == "future-tool"
    assert words.reason("new-reason")[0] == "new-reason"
    assert words.delivery_error("status-503") == "the receiver answered 503"
    assert words.delivery_error("odd") == "odd"


# --- addresses -----------------------------------------------------------------------------------------------


@given(st.text(max_size=60))
@settings(max_examples=100)
def test_a_name_cannot_leave_its_place_in_an_address(name):
    encodable = name.encode("utf-8", "ignore").decode()
    for address in (links.device(encodable), links.entry(encodable)):
        assert address.count("/") == 2
        assert not set(address) & set("?#\"'<> ")


def test_empty_parameters_are_left_out():
    assert links.link("/x", {"a": "1 2", "b": ""}, a="", c="ü&") == "/x?c=%C3%BC%26"
    assert links.link("/x", {"a": ""}) == "/x"


def test_every_address_is_there_once_and_says_who_may():
    seen = [(route.method, route.path) for route in ROUTES]
    assert len(seen) == len(set(seen))
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert all(route.body for route in ROUTES if route.method == "POST")


# --- the trend -----------------------------------------------------------------------------------------------


def test_columns_stand_on_the_ground_one_kind_on_the_other():
    drawn = chart.trend([Row(9, "denied", 10), Row(9, "unapproved", 30)], today=10, days=3)
    assert drawn.top == 40
    parts = drawn.columns[-1].parts
    assert [(part.kind, part.y, part.height) for part in parts] == [
        ("denied", 75.0, 25.0),
        ("unapproved", 0.0, 75.0),
    ]
    assert not drawn.columns[0].parts
    assert drawn.columns[0].words.endswith("no data")


def test_a_day_without_rows_is_as_the_one_before_ended():
    drawn = chart.trend([Row(5, "denied", 7, opened=7), Row(9, "denied", 4, resolved=3)], today=10, days=3)
    assert [day.total for day in drawn.days] == [7, 4, 4]
    assert (drawn.opened, drawn.resolved) == (0, 3)


def test_the_drawing_is_described():
    drawn = chart.trend([Row(8, "denied", 7), Row(9, "denied", 1_234)], today=9, days=2)
    assert drawn.description.endswith("7 on 9 Jan, 1,234 on 10 Jan; at most 1,234, on 10 Jan.")
    assert chart.trend([], today=9).description == "No data yet."


def test_a_kind_of_a_newer_agent_has_its_column():
    drawn = chart.trend([Row(9, "odd-kind", 3)], today=9, days=1)
    assert drawn.kinds[-1] == "odd-kind"
    assert drawn.columns[0].parts[0].kind == "odd-kind"


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from(sorted(words.KINDS)), st.integers(0, 10**7)),
        max_size=40,
    )
)
@settings(max_examples=100)
def test_nothing_is_drawn_outside_the_frame(rows):
    drawn = chart.trend([Row(*row) for row in {row[:2]: row for row in rows}.values()], today=10, days=8)
    for column in drawn.columns:
        assert column.x + column.width <= drawn.width
        for part in column.parts:
            assert part.y >= -0.1
            assert part.y + part.height <= drawn.height + 0.1


def test_bars_are_ranked_and_of_the_length_of_their_share():
    def tally(value, kind, findings):
        return Tally(value=value, kind=kind, findings=findings, devices=1, first_seen=1)

    bars = overview.shares(
        [tally("a", "unapproved", 5), tally("b", "denied", 10), tally("a", "denied", 15)], 5
    )
    assert [(bar.value, bar.findings) for bar in bars] == [("a", 20), ("b", 10)]
    assert bars[0].pieces == (("denied", 0.0, 75.0), ("unapproved", 75.0, 25.0))
    assert bars[1].pieces == (("denied", 0.0, 50.0),)


# --- static files --------------------------------------------------------------------------------------------


def test_an_address_of_a_file_names_its_content():
    for name in ("console.css", "hash.js", "icon.svg"):
        assert re.fullmatch(rf"/static/[0-9a-f]{{16}}/{re.escape(name)}", assets.address(name))


def test_a_file_that_is_not_there_has_no_address():
    with pytest.raises(KeyError):
        assets.address("../text.py")
