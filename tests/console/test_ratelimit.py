# SPDX-License-Identifier: Apache-2.0
"""Token buckets: how much passes, when it passes again, and how much memory strangers can take."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.console.problem import Problem
from halod.console.security.ratelimit import CountedRefusals, Limiter, address_key
from tests.console.support_ingest import Clock


def test_a_burst_and_then_the_rate():
    clock = Clock()
    limiter = Limiter(clock, 60, burst=5)
    assert [limiter.take("a") for _ in range(5)] == [0.0] * 5
    assert limiter.take("a") == pytest.approx(1.0)
    assert limiter.wait("a") == pytest.approx(1.0)
    assert limiter.take("b") == 0.0
    clock.go(0.5)
    assert limiter.take("a") == pytest.approx(0.5)
    clock.go(0.5)
    assert limiter.wait("a") == 0.0
    assert limiter.take("a") == 0.0
    assert limiter.take("a") > 0
    clock.go(1000)
    assert [limiter.take("a") == 0.0 for _ in range(6)] == [True] * 5 + [False]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 30)), max_size=80))
def test_no_more_than_the_rate(asked):
    """In any history: of one key at most the burst and what the time gave, and it waits no longer than it is told."""
    clock = Clock(0)
    limiter = Limiter(clock, 12, burst=3)
    taken = dict.fromkeys("abc", 0)
    for key, pause in asked:
        clock.go(pause)
        wait = limiter.take(key)
        taken[key] += wait == 0.0
        assert taken[key] <= 3 + clock.at * 12 / 60 + 1e-6
        if wait:
            clock.go(wait + 1e-6)
            assert limiter.take(key) == 0.0
            taken[key] += 1


def test_memory_is_bounded():
    """A flood of keys is forgotten, the oldest first; a key that waits is kept while the flood is no larger."""
    clock = Clock()
    limiter = Limiter(clock, 60, burst=2, most=1000)
    for n in range(10_000):
        limiter.take(str(n))
        assert len(limiter) <= 1001
    limiter.take("a"), limiter.take("a")
    for n in range(400):
        limiter.take(f"b{n}")
    assert limiter.take("a") > 0
    clock.go(5)
    limiter.take("c")
    clock.go(5)
    limiter.take("c")
    assert len(limiter) <= 3


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("", ""),
        ("testclient", ""),
    ],
)
def test_address_key(address, key):
    assert address_key(address) == key


def test_refusals():
    """Refused credentials are counted by address, IPv6 by its network."""
    clock = Clock()
    refusals = CountedRefusals(clock, 2)
    for _ in range(2):
        refusals.check("2001:db8::1")
        refusals.add("2001:db8::1")
    with pytest.raises(Problem) as caught:
        refusals.check("2001:db8::2")
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (429, "30")
    refusals.check("2001:db8:0:1::1")
    clock.go(30)
    refusals.check("2001:db8::2")
