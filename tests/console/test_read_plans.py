# SPDX-License-Identifier: Apache-2.0
"""Every list looks at few rows, through indexes, on both engines: counted, not timed.

The bounds of a walk are made small, so that a list that reads a whole table of this fleet is told from one that does not.
"""

import pytest
from sqlalchemy import event

from halod.console.store.read import walk as walking
from tests.console.support_reads import CASES, COUNTS, large_fleet  # noqa: F401 - a fixture

LOOKED_AT, FEW = 300, 200
ROWS = 3 * LOOKED_AT + 2 * FEW + 500
"""What one page may look at on PostgreSQL: the walk twice, candidates, their joins."""
STEPS = 60_000
"""Instructions of SQLite's machine that one statement may take; reading a table of this fleet takes several times as many."""


@pytest.fixture
def small_bounds(monkeypatch):
    monkeypatch.setattr(walking, "LOOKED_AT", LOOKED_AT)
    monkeypatch.setattr(walking, "FIRST_LOOK", 100)
    monkeypatch.setattr(walking, "FEW", FEW)


def _statements(c, ask):
    """Give the statements that `ask` sends, with their parameters."""
    found = []

    def note(_connection, _cursor, statement, parameters, _context, _many):
        found.append((statement, parameters))

    event.listen(c, "before_cursor_execute", note)
    ask()
    event.remove(c, "before_cursor_execute", note)
    return found


def _nodes(plan):
    yield plan
    for one in plan.get("Plans", ()):
        yield from _nodes(one)


def _looked_at(node):
    """Count what a node of a plan took out of a table or index."""
    if "Scan" not in node["Node Type"] or node["Node Type"] in {"Subquery Scan", "CTE Scan"}:
        return 0
    if node["Node Type"] == "Bitmap Index Scan":
        return node["Actual Rows"] * node["Actual Loops"]
    return (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]


def _explain(c, statement, parameters, off):
    for name in ("seqscan", "hashjoin", "mergejoin"):  # small tables are better read whole
        c.exec_driver_sql(f"SET LOCAL enable_{name} = off")
    for name in ("bitmapscan", "sort"):
        c.exec_driver_sql(f"SET LOCAL enable_{name} = {'off' if off else 'on'}")
    asked = c.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
    nodes = list(_nodes(asked.scalar()[0]["Plan"]))
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan" and _is_large(node)], statement
    return sum(map(_looked_at, nodes))


def _steps(c, statement, parameters):
    """Count the instructions that SQLite takes, by tens."""
    raw = c.connection.driver_connection
    count = 0

    def tick():
        nonlocal count
        count += 10
        return 0

    raw.set_progress_handler(tick, 10)
    try:
        c.exec_driver_sql(statement, parameters).all()
    finally:
        raw.set_progress_handler(None, 0)
    return count


@pytest.mark.parametrize("name", [pytest.param(name, id=name.replace(" ", "-")) for name in CASES])
def test_a_list_looks_at_few_rows(large_fleet, small_bounds, name):  # noqa: F811
    """On its first page and on the one behind it."""
    for cursor in _two_cursors(large_fleet, CASES[name]):
        with large_fleet.read() as c:
            for statement, parameters in _statements(c, lambda: CASES[name](c, cursor)):  # noqa: B023
                if large_fleet.sqlite:
                    assert _steps(c, statement, parameters) <= STEPS, statement
                    plan = [
                        row[3] for row in c.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                    ]
                    assert not [line for line in plan if _whole_table(line)], plan
                else:
                    # To sort all that an index gives is right for these few rows, not for a hundred times as many.
                    looked_at = min(_explain(c, statement, parameters, off) for off in (False, True))
                    assert looked_at <= ROWS, statement


def _two_cursors(store, read):
    with store.read() as c:
        found = read(c, "")
    following = getattr(found, "next", "")
    return ("", following) if following else ("",)


def _is_large(node):
    return node["Relation Name"] not in {"days", "enrollments", "tokens", "policies"}


def _whole_table(line):
    """Tell whether a line of SQLite's plan reads a whole table without an index; subqueries are bounded by their limit."""
    words = line.split()
    return (
        words[0] == "SCAN"
        and "INDEX" not in words
        and words[1] not in {"days", "policies", "found", "anon_1", "anon_2", "anon_3"}
        and "CONSTANT" not in words
        and not _in_order_of_its_number(words)
    )


def _in_order_of_its_number(words):
    """The table of a list that is ordered by its number: SQLite walks it and stops at the limit, as the steps show."""
    return words[1] in {"findings", "transitions", "audit", "tokens"}


@pytest.mark.parametrize("name", [pytest.param(name, id=name.replace(" ", "-")) for name in COUNTS])
def test_what_counts_devices_counts_in_an_index(large_fleet, name):  # noqa: F811
    """The few figures that are counted, not kept."""
    with large_fleet.read() as c:
        for statement, parameters in _statements(c, lambda: COUNTS[name](c, "")):
            if large_fleet.sqlite:
                plan = [row[3] for row in c.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
                assert not [line for line in plan if _whole_table(line)], plan
            else:
                _explain(c, statement, parameters, off=False)
