# SPDX-License-Identifier: Apache-2.0
"""The organisation's units: a forest of names, each with at most one parent.

Invariant: the parents that come out of here exist and make no cycle, so walking upwards ends.
"""

import msgspec

from halod.policy.check import Checker
from halod.policy.yamlpos import Node, Pairs, is_null, shown

MAX_CYCLE_SHOWN = 8
"""Units of a cycle that a message names."""


class Units(msgspec.Struct, frozen=True):
    """Every name that the file declares, and (name, parent) pairs; a root's parent is empty."""

    names: tuple[str, ...] = ()
    parents: tuple[tuple[str, str], ...] = ()


def read_units(c: Checker, node: Node) -> Units:
    """Read the `units` mapping. Units with a fault still count as declared, to spare the reader echoes."""
    if is_null(node):
        return Units()
    if not isinstance(node, Pairs):
        c.expected(node, "units", "a mapping of unit names")
        return Units()
    parents: dict[str, tuple[str, Node]] = {}
    for key, value in node.pairs:
        c.text(key, "units", limit=64)
        parents[key.text] = ("", value)
        fields = {} if is_null(value) else c.mapping(value, f"unit {shown(key.text)}", ("parent",)) or {}
        if "parent" in fields:
            parent = c.text(fields["parent"], "parent")
            parents[key.text] = (parent or "", fields["parent"])
    names = tuple(parents)
    for name, (parent, where) in parents.items():
        if parent and parent not in parents:
            c.add(where, f"parent: unknown unit {shown(parent)}{c.did_you_mean(parent, names)}")
            parents[name] = ("", where)
    _report_cycles(c, parents)
    return Units(names, tuple((name, parent) for name, (parent, _) in parents.items()))


def _report_cycles(c: Checker, parents: dict[str, tuple[str, Node]]) -> None:
    """Report each cycle once, at the first of its units in the file."""
    done: set[str] = set()
    for start in parents:
        path: list[str] = []
        on_path: set[str] = set()
        name = start
        while name and name not in done and name not in on_path:
            path.append(name)
            on_path.add(name)
            name = parents[name][0]
        if name in on_path:
            cycle = path[path.index(name) :]
            first = min(cycle, key=lambda unit: (parents[unit][1].line, parents[unit][1].column))
            turn = cycle.index(first)
            _report(c, cycle[turn:] + cycle[:turn], parents[first][1])
        done.update(path)


def _report(c: Checker, cycle: list[str], where: Node) -> None:
    names = [shown(name)[1:-1] for name in cycle[:MAX_CYCLE_SHOWN]]
    more = ["…"] if len(cycle) > MAX_CYCLE_SHOWN else []
    c.add(where, f"units make a cycle: {' -> '.join([*names, *more, names[0]])}")
