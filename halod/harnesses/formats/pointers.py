# SPDX-License-Identifier: Apache-2.0
"""Which parts of a document are wanted: table pointers as a tree.

The pointers are those of `harnesses.json`: `/a/b` names keys (taken literally, so `/amp.mcpServers` is one
key), `*` is any key, `[]` is every item of a list, `name[]` is `name` followed by `[]`, and `/` is the
whole document. A string that does not begin with `/` (tables of XML, SQLite, shell) is no pointer and wants
nothing.
"""

from collections.abc import Iterable


class Wanted:
    """One level of the tree: `whole` keeps all below it, else `names`, `star` and `items` say what."""

    __slots__ = ("items", "names", "star", "whole")

    def __init__(self) -> None:
        self.whole = False
        self.names: dict[str, Wanted] = {}
        self.star: Wanted | None = None
        self.items: Wanted | None = None


def wanted(pointers: Iterable[str]) -> Wanted:
    """Build the tree of some pointers; without any pointer the whole document is wanted."""
    root = Wanted()
    for pointer in pointers:
        if pointer.startswith("/"):
            _add(root, pointer)
    if not (root.names or root.star or root.items):
        root.whole = True
    _widen(root)
    return root


def _widen(node: Wanted) -> None:
    """Want all of an object that is addressed both by name and by `*`: the two would need a type each."""
    node.whole = node.whole or bool(node.star and node.names)
    for child in (*node.names.values(), node.star, node.items):
        if child:
            _widen(child)


def _add(node: Wanted, pointer: str) -> None:
    for step in _steps(pointer):
        if node.whole:
            return
        if step == "[]":
            node.items = node = node.items or Wanted()
        elif step == "*":
            node.star = node = node.star or Wanted()
        else:
            node = node.names.setdefault(step, Wanted())
    node.whole = True


def _steps(pointer: str) -> Iterable[str]:
    """Split a pointer into `name`, `*` and `[]` steps."""
    for part in pointer.split("/"):
        name = part.removesuffix("[]")
        if name:
            yield name
        if part.endswith("[]"):
            yield "[]"
