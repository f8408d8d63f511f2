# SPDX-License-Identifier: Apache-2.0
"""A device that makes words up crowds nothing out of what everybody looks at, and makes no work for the others."""

import pytest
from sqlalchemy import select

from halod.console.ingest.apply import take
from halod.console.store.read import overview
from halod.console.store.schema import DAYS
from tests.console.support_ingest import NOW, document
from tests.support.state import finding

DAY = NOW // 86_400


def made_up(count):
    return [
        {"harness": "h", "file": "f", "server": f"s{n}", "kind": f"a{n:02}", "detail": "", "fix": ""}
        for n in range(count)
    ]


@pytest.fixture
def poisoned(store):
    """A fleet of an honest device and a liar with more kinds than any page shows."""
    liar = {**document(device="b" * 64), "mcpDrift": made_up(60)}
    take(store, [document(finding("x"), finding("y", kind="denied"), device="a" * 64), liar], now=NOW)
    return store


def test_the_trend_keeps_the_kinds_that_there_are(poisoned):
    with poisoned.read() as c:
        days = overview.trend(c, today=DAY, days=2)
    assert [(one.kind, one.open) for one in days if one.day == DAY] == [
        ("denied", 1),
        ("other", 60),
        ("unapproved", 1),
    ]


def test_the_overview_keeps_them_and_its_sum(poisoned):
    with poisoned.read() as c:
        seen = overview.overview(c, now=NOW, silent_after=3600)
    assert seen.findings == 62
    assert {"denied", "unapproved"} <= {one.value for one in seen.by_kind}
    assert len(seen.by_kind) <= 21


def test_a_change_writes_a_row_of_each_kind_that_there_is(poisoned):
    """Sixty rows of the day were written anew with every change of every other device."""
    take(poisoned, [document(finding("z"), device="c" * 64)], now=NOW + 1)
    with poisoned.read() as c:
        assert len(c.execute(select(DAYS)).all()) == 3
