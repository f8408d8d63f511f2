# SPDX-License-Identifier: Apache-2.0
"""Servers in JetBrains' `llm.mcpServers.xml`, in the layouts of 2025.1 to 2026.2 (harnesses.md 19).

Since 2025.3 the file holds names and switches only; such an entry is no server. The arguments are one string
that the IDE splits at blanks outside double quotes; a string with another quote or a backslash is kept whole,
so that nothing is taken for what it may not be.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from halod.harnesses.tables import Contents, Slot
from halod.harnesses.values import mapping, sequence

_COMPONENTS: Final = frozenset({"McpApplicationServerCommands", "McpProjectServerCommands"})
_GROUPS: Final = frozenset({"commands", "urls"})


def contents(document: object) -> Contents:
    """Give the entries of a decoded XML file."""
    found = Contents([])
    for element in _servers(mapping(document)):
        options = _options(element)
        command = options.get("programPath") or options.get("command")
        if not command and not options.get("url"):
            continue
        entry = {
            "command": command,
            "args": _arguments(options, element),
            "url": options.get("url"),
            "cwd": options.get("workingDirectory"),
            "env": _environment(element),
            "enabled": options.get("enabled") != "false",
        }
        found.slots.append(Slot(options.get("name", ""), entry, "xml", {}))
    return found


def _children(element: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (mapping(child) for child in sequence(element.get("children")))


def _attribute(element: Mapping[str, Any], name: str) -> str:
    value = mapping(element.get("attributes")).get(name)
    return value if isinstance(value, str) else ""


def _servers(root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Give the entries of the components, in groups or not."""
    for component in _children(root):
        if component.get("tag") != "component" or _attribute(component, "name") not in _COMPONENTS:
            continue
        for element in _children(component):
            if element.get("tag") in _GROUPS:
                yield from _children(element)
            else:
                yield element


def _options(element: Mapping[str, Any]) -> dict[str, str]:
    """Give the options that have a value; the first of each name counts."""
    options: dict[str, str] = {}
    for child in _children(element):
        if child.get("tag") == "option" and "value" in mapping(child.get("attributes")):
            options.setdefault(_attribute(child, "name"), _attribute(child, "value"))
    return options


def _arguments(options: Mapping[str, str], element: Mapping[str, Any]) -> list[str]:
    line = options.get("arguments") or options.get("args") or ""
    if line:
        return _split(line)
    words: list[str] = []
    for child in _children(element):
        if _attribute(child, "name") in {"args", "arguments"}:
            words += (
                _attribute(item, "value") for item in _descendants(child) if item.get("tag") == "option"
            )
    return words


def _split(line: str) -> list[str]:
    if any(letter in line for letter in "'\\"):
        return [line]
    words: list[str] = []
    word: list[str] | None = None  # letters, joined at its end: a line may have millions
    quoted = False
    for letter in line:
        if letter.isspace() and not quoted:
            words += ["".join(word)] if word is not None else []
            word = None
            continue
        word = [] if word is None else word
        if letter == '"':
            quoted = not quoted
        else:
            word.append(letter)
    return words if word is None else [*words, "".join(word)]


def _environment(element: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for child in _children(element):
        if child.get("tag") != "envs" and _attribute(child, "name") not in {"env", "envs"}:
            continue
        for item in _descendants(child):
            name = _attribute(item, "name") or _attribute(item, "key")
            if name:
                found[name] = _attribute(item, "value")
    return found


def _descendants(element: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    pending = deque(_children(element))
    while pending:
        item = pending.popleft()
        yield item
        pending += _children(item)
