# SPDX-License-Identifier: Apache-2.0
"""Rules that deny tools, for harnesses in which a rule is a pattern over joined names of servers and tools.

Claude Code and OpenCode join the name of a server and that of a tool into one, in which everything but letters,
digits, `_` and `-` is a `_`. So different pairs can have one name, and a rule can begin like another server's.

Invariants:

1. A denial is rendered all the same: blocking too much is the safe side.
2. What a rule blocks besides, of the servers of the registry and of the harness's own names, is a note by name.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import msgspec

from halod.policy.model import Entry
from halod.policy.rendering.model import Notes
from halod.policy.rendering.servers import Server
from halod.policy.yamlpos import shown

_TOOL = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_FOLDED = re.compile(r"[^A-Za-z0-9_-]")


class Naming(msgspec.Struct, frozen=True):
    """How a harness names a tool of a server: `before`, the server, `between`, the tool.

    `own` are names of the harness that its rules also match; `owner` is what it is called then. With
    `first_between` older releases take everything behind the first `between` for the tool, so that they do not
    know the rule for all tools of a server whose name holds one.
    """

    before: str
    between: str
    own: tuple[str, ...] = ()
    owner: str = ""
    first_between: bool = False

    def prefix(self, server: str) -> str:
        """Give what the names of all tools of a server begin with."""
        return f"{self.before}{folded(server)}{self.between}"


def folded(name: str) -> str:
    """Give a name as Claude Code and OpenCode spell it in the name of a tool."""
    return _FOLDED.sub("_", name)


def tool_rules(found: list[Server], present: Iterable[Entry], naming: Naming, notes: Notes) -> list[str]:
    """Give the rules that deny the tools of servers, each once, and note what they block besides.

    `present` are the entries whose servers the harness may have, under their ids. A tool whose name could
    change the meaning of a rule is noted instead.
    """
    index = _Index(present, naming)
    rules: dict[str, None] = {}
    for server in found:
        entry = server.entry
        prefix = naming.prefix(entry.id)
        if entry.tools_allow == ():
            rules[f"{prefix}*"] = None
            for besides in index.below(prefix, entry):
                _beyond(notes, f"every tool of server {entry.id}", f"{prefix}*", besides)
            if naming.first_between and prefix.find(naming.between, len(naming.before)) != len(prefix) - len(
                naming.between
            ):
                notes.lacks(
                    f"denying every tool of server {entry.id} in releases that end a server's name at the first"
                    f" {naming.between} (they do not apply the rule {prefix}*)"
                )
        for tool in entry.tools_deny:
            if not _TOOL.fullmatch(tool):
                notes.lacks(
                    f"denying tool {shown(tool)} of server {entry.id} (its name has more than letters, digits and _.-/)"
                )
                continue
            rule = prefix + folded(tool)
            rules[rule] = None
            for besides in index.named(rule):
                _beyond(notes, f"tool {tool} of server {entry.id}", rule, besides)
    return list(rules)


def _beyond(notes: Notes, denied: str, rule: str, besides: str) -> None:
    notes.lacks(f"denying {denied} alone (the rule {rule} also denies {besides})")


class _Index:
    """The servers of a harness by what the names of their tools begin with."""

    def __init__(self, present: Iterable[Entry], naming: Naming) -> None:
        self._naming = naming
        self._entries: dict[str, list[Entry]] = {}
        for entry in present:
            self._entries.setdefault(naming.prefix(entry.id), []).append(entry)
        self._sorted = sorted(self._entries)

    def named(self, name: str) -> Iterator[str]:
        """Say what else has exactly this name and is permitted by the policy."""
        for prefix, rest in self._split(name):
            for entry in self._entries[prefix]:
                for tool in _permitted(entry, rest):
                    yield f"tool {tool} of server {entry.id}"
        if name in self._naming.own:
            yield f"{name} of {self._naming.owner} itself"

    def below(self, start: str, of: Entry) -> Iterator[str]:
        """Say what else has a name that begins with `start` and is permitted, but for the tools of `of`."""
        for prefix, rest in self._split(start):
            for entry in self._entries[prefix]:
                yield from _permitted_below(entry, rest)
        at = bisect_left(self._sorted, start)
        while at < len(self._sorted) and self._sorted[at].startswith(start):
            others = (entry.id for entry in self._entries[self._sorted[at]] if entry.tools_allow != ())
            yield from (f"every tool of server {other}" for other in others if other != of.id)
            at += 1
        own = (name for name in self._naming.own if name.startswith(start))
        yield from (f"{name} of {self._naming.owner} itself" for name in own)

    def _split(self, name: str) -> Iterator[tuple[str, str]]:
        """Give each way in which a name begins like the tools of a server that is there, and what follows."""
        between = self._naming.between
        at = name.find(between, len(self._naming.before))
        while at >= 0:
            end = at + len(between)
            if name[:end] in self._entries and end < len(name):
                yield name[:end], name[end:]
            at = name.find(between, at + 1)


def _permitted(entry: Entry, name: str) -> list[str]:
    """Give the tools of a server that the policy permits and that are spelled `name` in a rule."""
    if entry.tools_allow is not None:
        return [tool for tool in entry.tools_allow if folded(tool) == name]
    return [] if name in entry.tools_deny else [name]


def _permitted_below(entry: Entry, start: str) -> Iterator[str]:
    """Say which tools of a server the policy permits that are spelled with `start` at their begin in a rule."""
    if entry.tools_allow is None:
        yield f"every tool {start}… of server {entry.id}"
    for tool in entry.tools_allow or ():
        if folded(tool).startswith(start):
            yield f"tool {tool} of server {entry.id}"
