# SPDX-License-Identifier: Apache-2.0
"""Strict YAML with positions: bytes to a tree whose every node knows its line and column.

Invariants:

1. UTF-8, at most MAX_DEPTH levels; one document, or with `read_all` several. No anchor, alias, tag, merge
   key, duplicate key or key that is not a scalar: each lets a reviewer and a program see two different files.
2. Scalars stay as written. What a plain scalar means is decided by YAML 1.2 (core schema) when it is asked
   for: `no`, `off`, `22:22` and dates are text, and `version: 1.10` is not 1.1.
3. `read` never raises: faults come back as problems. Only a fault that hides the structure (syntax, depth,
   encoding) leaves no tree; everything else is reported and the rest of the file is still there to check.
"""

import re
from typing import Any

import msgspec
import yaml

from halod.policy.model import Problem

MAX_DEPTH = 32
"""Levels of nesting: a policy needs 7; more is a mistake or an attack on readers that recurse."""
MAX_BAD_CHARACTERS = 100
"""Refused characters named before the rest are left out: a binary file is one mistake, not a million."""

# libyaml where PyYAML was built with it (every wheel is): 8 times as fast.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# What YAML does not call printable, plus what shows a reader something else than a parser sees: a BOM inside
# the text, YAML 1.1 line breaks that editors do not count (U+0085, U+2028, U+2029), bidirectional controls.
# A list of what is refused: the complement takes 5 ms to compile.
_REFUSED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_BREAK = re.compile(r"\r\n|\r|\n")
_NULL = re.compile(r"(?:~|null|Null|NULL)?")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_NUMBER = re.compile(
    r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)

# libyaml's words are about its own state machine; these are about the file. Checked in this order.
_SYNTAX = (
    (
        "found character that cannot start any token",
        "no value starts with this (a tab? use spaces); quote it",
    ),
    ("mapping values are not allowed", 'unexpected ":"; quote a text that contains ": "'),
    ("did not find expected ',' or ']'", 'expected "," or "]"'),
    ("did not find expected ',' or '}'", 'expected "," or "}"'),
    ("did not find expected '-' indicator", 'expected a list item that starts with "- "'),
    ("did not find expected key", "expected a key; check the indentation and the quotes"),
    ("did not find expected node content", "expected a value"),
    ("could not find expected ':'", 'expected ":" after a key'),
    ("unexpected end of stream", "the quoted text that starts here never ends"),
    ("escape", "unknown escape in a double-quoted text"),
    ("incompatible YAML document", "a YAML version other than 1.1 and 1.2"),
)


class Text(msgspec.Struct):
    """A scalar as written, without its quotes; `plain` when it had none."""

    text: str
    plain: bool
    line: int
    column: int


class Items(msgspec.Struct):
    """A list."""

    line: int
    column: int
    items: list["Node"]


class Pairs(msgspec.Struct):
    """A mapping: its keys in order, each once."""

    line: int
    column: int
    pairs: list[tuple[Text, "Node"]]


class Broken(msgspec.Struct):
    """Something already reported: checks pass over it in silence."""

    line: int
    column: int


Node = Text | Items | Pairs | Broken


class Document(msgspec.Struct):
    """What `read` found: the tree, or None when the structure could not be made out, and every fault."""

    root: Node | None
    problems: list[Problem]


def kind(node: Node) -> str:
    """Say in words what a node is by YAML 1.2: for messages of the form "expected X, got Y"."""
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Pairs):
        return "a mapping"
    if isinstance(node, Broken) or not node.plain:
        return "text"
    if _NULL.fullmatch(node.text):
        return "nothing"
    if _BOOL.fullmatch(node.text):
        return "a boolean"
    return "a number" if _NUMBER.fullmatch(node.text) else "text"


def is_null(node: Node) -> bool:
    """Whether a node is an empty value, `~` or `null`."""
    return isinstance(node, Text) and node.plain and _NULL.fullmatch(node.text) is not None


def read(data: bytes) -> Document:
    """Read one YAML document. The caller limits the size of `data`."""
    text, problems = _text(data)
    if problems:
        return Document(None, problems)
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except _StructureLost:
        return Document(None, builder.problems)
    except yaml.YAMLError as error:
        builder.problems.append(_syntax_problem(error))
        return Document(None, builder.problems)
    return Document(builder.root, builder.problems)


def read_all(data: bytes) -> list[Document]:
    """Read every document of a file, in order. The caller limits the size of `data`.

    A fault that hides the structure hides the documents after it, too: the last Document then has no tree
    and says so.
    """
    text, problems = _text(data)
    if problems:
        return [Document(None, problems)]
    done: list[Document] = []
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
            if isinstance(event, yaml.DocumentEndEvent):
                done.append(Document(builder.root, builder.problems))
                builder = _Builder()
    except _StructureLost:
        done.append(Document(None, builder.problems))
    except yaml.YAMLError as error:
        done.append(Document(None, [*builder.problems, _syntax_problem(error)]))
    return done


def _text(data: bytes) -> tuple[str, list[Problem]]:
    """Decode a file, or name the bytes and characters that are not allowed in it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        return "", [_at(before, "the file is not UTF-8 here")]
    text = text.removeprefix("\ufeff")
    return text, [
        _at(text[: found.start()], f"the character U+{ord(found[0]):04X} is not allowed; write an escape")
        for found, _ in zip(_REFUSED.finditer(text), range(MAX_BAD_CHARACTERS), strict=False)
    ]


class _StructureLost(Exception):
    """The rest of the events would say nothing: stop here."""


class _Frame:
    """A container that is still open, the key that waits for its value, and the keys so far."""

    __slots__ = ("key", "node", "seen")

    def __init__(self, node: Items | Pairs) -> None:
        self.node = node
        self.key: Node | None = None
        self.seen: dict[str, int] = {}


class _Builder:
    """Builds the tree from parser events without recursion, recording what is not allowed."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._stack: list[_Frame] = []
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event. Raises _StructureLost when nothing sensible can follow."""
        if isinstance(event, yaml.ScalarEvent):
            line, column = self._position(event)
            self._add(Text(event.value, not event.style, line, column))
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open(Items(*self._position(event), []))
        elif isinstance(event, yaml.MappingStartEvent):
            self._open(Pairs(*self._position(event), []))
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            self._stack.pop()
        elif isinstance(event, yaml.AliasEvent):
            line, column = _place(event)
            self._problem(line, column, "aliases are not allowed; write the value out")
            self._add(Broken(line, column))
        elif isinstance(event, yaml.DocumentStartEvent):
            self._start_document(event)

    def _start_document(self, event: yaml.DocumentStartEvent) -> None:
        line, column = _place(event)
        self._documents += 1
        if self._documents > 1:
            self._problem(line, column, "a second document starts here; a policy is one document")
            raise _StructureLost
        if event.tags:
            self._problem(line, column, "tag directives are not allowed")

    def _position(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> tuple[int, int]:
        line, column = _place(event)
        if event.anchor is not None:
            self._problem(line, column, "anchors are not allowed")
        if event.tag is not None:
            self._problem(line, column, "tags are not allowed")
        return line, column

    def _open(self, node: Items | Pairs) -> None:
        if len(self._stack) >= MAX_DEPTH:
            self._problem(node.line, node.column, f"nested more than {MAX_DEPTH} levels deep")
            raise _StructureLost
        self._add(node)
        self._stack.append(_Frame(node))

    def _add(self, node: Node) -> None:
        if not self._stack:
            self.root = node
            return
        frame = self._stack[-1]
        if isinstance(frame.node, Items):
            frame.node.items.append(node)
        elif frame.key is None:
            frame.key = self._key(frame, node)
        else:
            if isinstance(frame.key, Text):
                frame.node.pairs.append((frame.key, node))
            frame.key = None

    def _key(self, frame: _Frame, node: Node) -> Node:
        """Check a mapping's key; a Broken in its place makes the value go nowhere."""
        if isinstance(node, Broken):
            return node
        if not isinstance(node, Text):
            self._problem(node.line, node.column, f"a key must be text, got {kind(node)}")
        elif node.plain and node.text == "<<":
            self._problem(node.line, node.column, "merge keys are not allowed; write the keys out")
        elif node.text in frame.seen:
            first = frame.seen[node.text]
            self._problem(node.line, node.column, f"duplicate key {shown(node.text)}, first on line {first}")
        else:
            frame.seen[node.text] = node.line
            return node
        return Broken(node.line, node.column)

    def _problem(self, line: int, column: int, message: str) -> None:
        self.problems.append(Problem(line, column, message))


def shown(text: str, limit: int = 60) -> str:
    """Quote a piece of the policy for a message: one line, printable, at most `limit` characters."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in short)
    return f'"{plain}"'


def _place(event: yaml.Event) -> tuple[int, int]:
    """Give an event's line and column, from 1. Parsers set every mark; the types do not say so."""
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)


def _at(before: str, message: str) -> Problem:
    """Place a problem right after `before`, the text in front of it."""
    breaks = list(_BREAK.finditer(before))
    start = breaks[-1].end() if breaks else 0
    return Problem(len(breaks) + 1, len(before.removeprefix("\ufeff")) - start + 1, message)


def _syntax_problem(error: yaml.YAMLError) -> Problem:
    """Turn the parser's error into one problem in words of ours."""
    said = getattr(error, "problem", None) or ""
    words = next((ours for theirs, ours in _SYNTAX if theirs in said), "cannot be read from here")
    mark = getattr(error, "problem_mark", None)
    if "unexpected end of stream" in said:
        mark = getattr(
            error, "context_mark", None
        )  # where the quote opened tells more than the last line of the file
    if mark is None:
        return Problem(1, 1, f"not valid YAML: {words}")
    return Problem(mark.line + 1, mark.column + 1, f"not valid YAML: {words}")
