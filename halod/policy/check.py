# SPDX-License-Identifier: Apache-2.0
"""Typed reading of a YAML tree: every getter gives a value, or records one problem and gives None.

Invariants:

1. A getter never raises and never stops the check of its neighbours: all faults are seen at once.
2. A Broken node is silent: its fault is already recorded.
3. A message says what was expected and what was found; what may be a secret is never quoted.
"""

import re
from collections.abc import Collection, Iterable

from halod.policy.model import Problem
from halod.policy.yamlpos import Broken, Items, Node, Pairs, Text, is_null, kind, shown

MAX_TEXT = 500
"""Characters of any text of a policy that people are shown."""
MAX_SUGGESTIONS = 100
"""Unknown words that get a did-you-mean: finding one is slow, and nobody reads the rest first."""
MAX_CANDIDATES = 1000
"""Known words among which a near one is looked for: each is compared in quadratic time."""

# Control, format and bidirectional characters: invisible, so never meant, or meant to deceive.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")

Fields = dict[str, Node]


class Checker:
    """Collects the problems of one policy."""

    def __init__(self, problems: list[Problem] | None = None) -> None:
        self.problems: list[Problem] = [] if problems is None else problems
        self._suggestions = 0

    def add(self, node: Node, message: str) -> None:
        """Record a problem at a node."""
        self.problems.append(Problem(node.line, node.column, message))

    def expected(self, node: Node, what: str, expected: str) -> None:
        """Record that `what` should have been something else, unless the node's fault is already known."""
        if not isinstance(node, Broken):
            self.add(node, f"{what}: expected {expected}, got {kind(node)}")

    def text(self, node: Node, what: str, *, limit: int = MAX_TEXT) -> str | None:
        """Read a text that is not empty, on one line, without invisible characters."""
        if not isinstance(node, Text) or kind(node) != "text":
            quotable = kind(node) in {"a number", "a boolean"}
            self.expected(node, what, "text (put it in quotes)" if quotable else "text")
            return None
        return self._clean(node, what, limit)

    def literal(self, node: Node, what: str) -> str | None:
        """Read a scalar as it is written, whatever YAML makes of it: `1.10` is not 1.1."""
        if not isinstance(node, Text) or kind(node) in {"nothing", "a boolean"}:
            self.expected(node, what, "text")
            return None
        return self._clean(node, what, MAX_TEXT)

    def _clean(self, node: Text, what: str, limit: int) -> str | None:
        hidden = _INVISIBLE.search(node.text)
        if hidden and hidden[0] in "\n\r":
            self.add(node, f"{what}: must be one line")
        elif hidden:
            self.add(node, f"{what}: holds the invisible character U+{ord(hidden[0]):04X}")
        elif not node.text.strip():
            self.add(node, f"{what}: must not be empty")
        elif node.text != node.text.strip():
            self.add(node, f"{what}: must not begin or end with a blank")
        elif len(node.text) > limit:
            self.add(node, f"{what}: is longer than {limit} characters")
        else:
            return node.text
        return None

    def choice(self, node: Node, what: str, choices: tuple[str, ...]) -> str | None:
        """Read one word of a closed vocabulary."""
        text = self.text(node, what)
        if text is None or text in choices:
            return text
        hint = self.did_you_mean(text, choices)
        self.add(node, f"{what}: expected {alternatives(choices)}, got {shown(text)}{hint}")
        return None

    def sha256(self, node: Node, what: str) -> str | None:
        """Read a sha256: 64 hex digits in either case, with or without `sha256:`; gives it lower-case."""
        text = self.literal(node, what)
        if text is None:
            return None
        found = _SHA256.fullmatch(text)
        if found is None:
            self.add(node, f"{what}: expected 64 hex digits, got {shown(text)}")
            return None
        return found[1].lower()

    def mapping(self, node: Node, what: str, keys: tuple[str, ...]) -> Fields | None:
        """Read a mapping whose keys are all among `keys`; unknown ones are problems, the rest is given."""
        if not isinstance(node, Pairs):
            self.expected(node, what, "a mapping")
            return None
        fields: Fields = {}
        for key, value in node.pairs:
            if key.text in keys:
                fields[key.text] = value
            else:
                hint = self.did_you_mean(key.text, keys)
                self.add(key, f"{what}: unknown key {shown(key.text)}{hint}")
        return fields

    def items(self, node: Node, what: str, of: str) -> list[Node] | None:
        """Read a list; `of` says in the plural what it holds."""
        if not isinstance(node, Items):
            self.expected(node, what, f"a list of {of}")
            return None
        return node.items

    def words(
        self, node: Node, what: str, of: str, *, limit: int = MAX_TEXT
    ) -> list[tuple[str, Node]] | None:
        """Read a list of texts without repetitions; members with a fault are left out."""
        items = self.items(node, what, of)
        if items is None:
            return None
        words: dict[str, Node] = {}
        for item in items:
            word = self.text(item, what, limit=limit)
            if word is None:
                continue
            if word in words:
                self.add(item, f"{what}: {shown(word)} is listed twice")
            else:
                words[word] = item
        return list(words.items())

    def known(self, words: Iterable[tuple[str, Node]], known: Collection[str], thing: str) -> tuple[str, ...]:
        """Keep the words that are known; the others are problems ("unknown ring")."""
        good = []
        for word, node in words:
            if word in known:
                good.append(word)
            else:
                self.add(node, f"unknown {thing} {shown(word)}{self.did_you_mean(word, known)}")
        return tuple(good)

    def did_you_mean(self, word: str, known: Collection[str], cutoff: float = 0.65) -> str:
        """Give `; did you mean "x"?` when a known word is near, else nothing."""
        self._suggestions += 1
        if self._suggestions > MAX_SUGGESTIONS:
            return ""
        near = nearest(word, known, cutoff)
        return f"; did you mean {shown(near)}?" if near else ""


def nearest(word: str, known: Collection[str], cutoff: float = 0.65) -> str | None:
    """Find the known word that a slip of the pen may have meant, whatever its case."""
    if len(word) > 64 or len(known) > MAX_CANDIDATES:
        return None
    import difflib  # only a policy with a fault pays for it

    folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=cutoff)
    return folded[near[0]] if near else None


def alternatives(words: tuple[str, ...]) -> str:
    """Say "a, b or c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def key_node(node: Node, name: str) -> Node:
    """Find the key `name` of a mapping, to point at; the node itself when it has no such key."""
    pairs = node.pairs if isinstance(node, Pairs) else []
    return next((key for key, _ in pairs if key.text == name), node)


def optional_items(c: Checker, fields: Fields, name: str, of: str) -> list[Node]:
    """Read an optional list whose empty value counts as empty (everything in it commented out)."""
    node = fields.get(name)
    if node is None or is_null(node):
        return []
    return c.items(node, name, of) or []
