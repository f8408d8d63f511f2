# SPDX-License-Identifier: Apache-2.0
"""When what is scanned: folding, back-off, jitter, with a clock of the test's own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.agent.triggers import LONGEST, PATIENCE, QUIET, Triggers


def idle(now=100.0, draw=0.5):
    """Give triggers that have just begun to scan everything."""
    triggers = Triggers(900, draw=lambda: draw)
    triggers.began_everything(now)
    return triggers


def test_everything_is_scanned_at_the_start():
    """The first cycle is due at once, and says why."""
    triggers = Triggers(900)
    assert triggers.everything(0.0) == "start"
    assert triggers.timeout(0.0) == 0.0


@pytest.mark.parametrize(("draw", "seconds"), [(0.0, 810), (0.5, 900), (1.0, 990)])
def test_the_interval_is_spread_by_a_tenth(draw, seconds):
    """The next cycle comes after the interval, ten percent more or less."""
    triggers = idle(draw=draw)
    assert triggers.timeout(100.0) == pytest.approx(seconds)
    assert triggers.everything(100.0 + seconds - 1) == ""
    assert triggers.everything(100.0 + seconds) == "timer"


def test_one_who_asks_gets_everything_at_once():
    """Asked for, everything is due with the asker's word, once."""
    triggers = idle()
    triggers.ask(101.0, "signal")
    assert triggers.everything(101.0) == "signal"
    triggers.began_everything(101.0)
    assert triggers.everything(102.0) == ""


def test_events_are_folded():
    """A second after the last event, three after the first at most."""
    triggers = idle()
    triggers.changed(1, [7], 100.0)
    assert triggers.accounts(100.9) == frozenset()
    triggers.changed(1, [7], 100.9)
    assert triggers.accounts(101.5) == frozenset()
    assert triggers.accounts(101.9) == {1}
    for at in (101.5, 102.4, 102.9):
        triggers.changed(1, [7], at)
    assert triggers.accounts(102.9) == frozenset()
    assert triggers.accounts(103.0) == {1}


def scan(triggers, now, moved):
    triggers.began([1], now)
    triggers.ended(1, moved)


def test_a_location_that_brings_nothing_new_waits_longer():
    """One, two, four, eight, ten seconds between scans that it causes; what is new resets that."""
    triggers = idle()
    now, gaps = 100.0, []
    for _ in range(7):
        triggers.changed(1, [7], now)
        due = now + triggers.timeout(now)
        gaps.append(due - now)
        scan(triggers, due, frozenset())
        now = due
    assert gaps == [1.0, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    triggers.changed(1, [7], now)
    scan(triggers, now + 10, frozenset({7}))
    triggers.changed(1, [7], now + 10)
    assert triggers.accounts(now + 11) == {1}


def test_others_are_not_delayed():
    """A location beside one that waits is scanned as soon as ever."""
    triggers = idle()
    now = 100.0
    for _ in range(6):
        triggers.changed(1, [7], now)
        now += triggers.timeout(now)
        scan(triggers, now, frozenset())
    triggers.changed(1, [7], now)
    triggers.changed(1, [8], now + 0.5)
    assert triggers.timeout(now + 0.5) == pytest.approx(QUIET)


def test_an_event_during_a_scan_is_for_the_next():
    """What changes while a scan runs may have been read too early."""
    triggers = idle()
    triggers.changed(1, [7], 100.0)
    triggers.began([1], 101.0)
    triggers.changed(1, [7], 101.1)
    triggers.ended(1, frozenset({7}))
    assert triggers.accounts(102.1) == {1}


def test_lost_events_are_one_scan():
    """A flood of overflows makes one scan soon, and none later."""
    triggers = idle()
    for at in range(10):
        triggers.rescan(1, 100.0 + at / 20)
    assert triggers.accounts(101.0) == {1}
    scan(triggers, 101.0, None)
    assert triggers.accounts(200.0) == frozenset()


def test_accounts_that_are_gone_are_forgotten():
    """No event of an account that left is kept."""
    triggers = idle()
    triggers.changed(1, [7], 100.0)
    triggers.changed(2, [7], 100.0)
    triggers.keep([2])
    assert triggers.accounts(103.0) == {2}
    triggers.ended(1, None)


@given(st.lists(st.tuples(st.floats(0.01, 5.0), st.integers(0, 3), st.booleans()), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
def test_no_event_waits_longer_than_the_longest(events):
    """Whatever comes before it, an event is followed by a scan within ten seconds, or three when all is new."""
    triggers = idle(0.0)
    now, waiting = 0.0, {}
    for step, location, news in events:
        end = now + step
        while (due := now + triggers.timeout(now)) <= end and triggers.accounts(due):
            now = due
            assert all(now - since <= max(LONGEST, PATIENCE) + 1e-6 for since in waiting.values())
            scan(triggers, now, frozenset(waiting) if news else frozenset())
            waiting.clear()
        now = end
        triggers.changed(1, [location], now)
        waiting.setdefault(location, now)
    assert triggers.timeout(now) <= LONGEST + 1e-6
