# SPDX-License-Identifier: Apache-2.0
"""How long delivery waits, and how it finds the transition that a server will not take."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halod.agent.backoff import BASE, CAP, RETRY_AFTER_MAX, SLOW, Backoff, Window, retry_after
from halod.agent.outbox import SENT_TRANSITIONS, Report

NOW = 1796030102.0  # Mon, 30 Nov 2026 09:15:02 GMT


def test_the_window_doubles_up_to_the_cap():
    """With the largest draw a delay is the window itself."""
    backoff = Backoff(lambda: 1.0)
    assert [backoff.failed() for _ in range(10)] == [5, 10, 20, 40, 80, 160, 320, 640, CAP, CAP]
    backoff.succeeded()
    assert backoff.failed() == BASE


def test_the_jitter_is_full():
    """A fleet that failed at one moment is spread over the whole window."""
    drawn = random.Random(417)
    delays = sorted(Backoff(drawn.random).failed() for _ in range(1000))
    assert delays[100] < BASE * 0.15
    assert delays[900] > BASE * 0.85
    assert delays[-1] <= BASE


def test_failures_without_end():
    """Weeks of an outage overflow nothing."""
    backoff = Backoff(lambda: 1.0)
    assert all(backoff.failed() <= CAP for _ in range(5000))


@given(st.floats(0, 1), st.floats(allow_nan=False, allow_infinity=False, min_value=0.001), st.integers(0, 40))
def test_retry_after_is_honoured(draw, asked, failures):
    """Never sooner than the server asked, as far as it is believed, and a minute later at most."""
    backoff = Backoff(lambda: draw)
    for _ in range(failures):
        backoff.failed()
    believed = min(asked, RETRY_AFTER_MAX)
    assert believed <= backoff.failed(asked) <= believed + 60


@pytest.mark.parametrize("draw", [0.0, 0.5, 1.0])
def test_slow(draw):
    """What a person must mend is tried about once an hour; a server may ask for another time from a minute on."""
    backoff = Backoff(lambda: draw)
    assert 0.9 * SLOW <= backoff.slow() <= 1.1 * SLOW
    assert 60 <= backoff.slow(1) <= 66
    assert 300 <= backoff.slow(300) <= 330
    assert backoff.slow(10**9) <= 1.1 * RETRY_AFTER_MAX


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        ("120", "", 120),
        (" 7 ", "", 7),
        ("0", "", 0),
        ("99999999999999999999", "", RETRY_AFTER_MAX),
        ("Mon, 30 Nov 2026 09:17:02 GMT", "", 120),
        ("Mon, 30 Nov 2026 09:15:00 GMT", "", 0),
        ("Tue, 30 Nov 2027 09:15:00 GMT", "", RETRY_AFTER_MAX),
        # This machine's clock is an hour off: the server's own Date counts.
        ("Mon, 30 Nov 2026 08:15:32 GMT", "Mon, 30 Nov 2026 08:15:02 GMT", 30),
        ("Mon, 30 Nov 2026 09:17:02 GMT", "yesterday", 120),
        ("Mon, 30 Nov 2026 09:17:02", "", 120),
        ("-5", "", 0),
        ("1.5", "", 0),
        ("٣", "", 0),
        ("soon", "", 0),
        ("Mon, 99 Nov 2026 09:17:02 GMT", "", 0),
        ("x" * 1000, "", 0),
        ("", "", 0),
    ],
)
def test_reading_retry_after(value, date, seconds):
    """Seconds or a date, both bounded; anything else counts as absent."""
    assert retry_after(value, date=date, now=NOW) == seconds


@given(st.text(max_size=80), st.text(max_size=80), st.floats(allow_nan=False, allow_infinity=False))
def test_reading_anything(value, date, now):
    """No header of a server is more than a number within bounds."""
    assert 0 <= retry_after(value, date=date, now=now) <= RETRY_AFTER_MAX


# The window


def send(window, waiting, bad, status=1, status_bad=False):
    """Play a server that refuses some transitions for as long as something travels; give what it took."""
    taken, aside, tries = [], [], 0
    waiting = list(waiting)
    while True:
        ids = tuple(waiting[: window.most])
        report = Report(body=b"", ids=ids, status=status)
        if window.is_hopeless(report):
            return taken, aside, tries, waiting
        tries += 1
        if status_bad or bad & set(ids):
            if window.refused(report) == "transition":
                aside += ids
                del waiting[0]
        else:
            window.accepted(report)
            taken += ids
            del waiting[: len(ids)]
        if not waiting and window.most:
            return taken, aside, tries, waiting


@given(st.integers(1, 200), st.data())
def test_only_what_is_refused_is_set_aside(count, data):
    """Whatever a server refuses, the rest arrives in order."""
    waiting = [f"t-{n}" for n in range(count)]
    bad = set(data.draw(st.lists(st.sampled_from(waiting), max_size=5)))
    taken, aside, _, left = send(Window(), waiting, bad)
    assert taken == [one for one in waiting if one not in bad]
    assert aside == [one for one in waiting if one in bad]
    assert left == []


def test_one_bad_transition_costs_few_requests():
    """Halving and doubling: about log2 of the window each."""
    _, _, tries, _ = send(Window(), [f"t-{n}" for n in range(64)], {"t-40"})
    assert tries <= 24


def test_a_status_that_is_refused_costs_no_transition():
    """It is not sent again unchanged, and its transitions wait for the next."""
    window = Window()
    waiting = [f"t-{n}" for n in range(100)]
    taken, aside, tries, left = send(window, waiting, set(), status_bad=True)
    assert (taken, aside, left) == ([], [], waiting)
    assert tries <= 8
    taken, aside, _, left = send(window, waiting, set(), status=2)
    assert (taken, aside, left) == (waiting, [], [])


@pytest.mark.parametrize(
    ("alone", "again"),
    [
        (Report(body=b"", status=2), Report(body=b"", ids=("t-1",), status=2)),
        (Report(body=b"", status=1), Report(body=b"", ids=("t-1",), status=2)),
        (Report(body=b"", status=1), Report(body=b"", ids=("t-2",), status=1)),
    ],
)
def test_only_a_sure_suspect_is_set_aside(alone, again):
    """With a newer status, or after another was dropped as too old, the question is asked anew."""
    window = Window()
    assert window.refused(Report(body=b"", ids=("t-1",), status=1)) == "try-smaller"
    window.accepted(alone)
    assert window.most == 1
    assert window.refused(again) == "try-smaller"
    assert window.most == 0


def test_a_refusal_that_passes_costs_nothing():
    """Refused once and then taken: it was not the transition."""
    window = Window()
    window.refused(Report(body=b"", ids=("t-1",), status=1))
    window.accepted(Report(body=b"", status=1))
    window.accepted(Report(body=b"", ids=("t-1",), status=1))
    assert window.refused(Report(body=b"", ids=("t-1",), status=1)) == "try-smaller"


def test_it_opens_again():
    """After what was refused the window doubles up to its usual size."""
    window = Window()
    window.refused(Report(body=b"", ids=tuple("abcdefgh"), status=1))
    assert window.most == 4
    for _ in range(9):
        window.accepted(Report(body=b"", ids=("a",), status=1))
    assert window.most == SENT_TRANSITIONS
