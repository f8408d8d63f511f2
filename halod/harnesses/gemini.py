# SPDX-License-Identifier: Apache-2.0
"""Gemini CLI and Qwen Code: lists of allowed and excluded names, files that switch (harnesses.md 3 and 24).

Gemini compares names trimmed and without case, and a server of an extension also by `ext:EXTENSION:SERVER`.
Qwen's lists hold patterns with `*` and `?`. An empty list of allowed names restricts nothing: releases
differ, and a server must not be called off without being so.

In `extension-enablement.json` the last override decides, `!` switches off; paths are not compared, as a home
may be a copy (design 4).
"""

from collections.abc import Callable
from typing import Final

from halod.definition import Definition, FileRef
from halod.harnesses.model import Found
from halod.harnesses.plugins import PLUGIN_SOURCES
from halod.harnesses.scan import Scan, switch
from halod.harnesses.values import mapping, texts

_Names = tuple[str, ...]
_ITEMS: Final = 200  # of a list: people write a few, and every server is compared with each
_LONGEST: Final = 256  # characters of a pattern or of a name compared with one


def apply_gemini(scan: Scan) -> None:
    """Switch Gemini's servers; `mcp.serverCommand` is a server too."""
    settings = mapping(mapping(scan.documents.get(".gemini/settings.json")).get("mcp"))
    found = list(scan.found("gemini-cli"))
    _server_command(scan, settings.get("serverCommand"))
    if found:
        state = mapping(scan.state("~/.gemini/mcp-server-enablement.json", "gemini-cli"))
        switches = {_plain(name): mapping(value).get("enabled") is not False for name, value in state.items()}
        for one in found:
            names = _names(scan, one)
            switch(one, on=all(switches.get(name, True) for name in _ids(names)))
            _by_name(one, settings, names)
    _extensions(scan, "gemini-cli", "~/.gemini/extensions", found)


def apply_qwen(scan: Scan) -> None:
    """Switch Qwen's servers."""
    settings = mapping(mapping(scan.documents.get(".qwen/settings.json")).get("mcp"))
    found = list(scan.found("qwen-code"))
    for one in found:
        _by_pattern(one, settings)
    _extensions(scan, "qwen-code", "~/.qwen/extensions", found)


def _server_command(scan: Scan, command: object) -> None:
    """Report `mcp.serverCommand`, a line that Gemini splits and starts as server `mcp`: as text, unsplit."""
    if type(command) is not str or not command.strip() or "\0" in command:
        return
    number = next(
        n for n, location in enumerate(scan.locations) if location.path == "~/.gemini/settings.json"
    )
    definition = Definition(
        harness="gemini-cli",
        file=FileRef(number),
        name="mcp",
        scope="user",
        transport="stdio",
        command=command,
    )
    scan.reading.found.append(Found(definition))


def _names(scan: Scan, found: Found) -> _Names:
    """Give a server's name and, for an extension's, the name and folder of the extension."""
    definition = found.definition
    if definition.scope != "plugin":
        return (definition.name,)
    label = scan.labels.get(definition.file, definition.file.parts[0])
    return (definition.name, label, definition.file.parts[0])


def _ids(names: _Names) -> set[str]:
    """Give the ids under which Gemini's lists know a server, in plain form."""
    name, *extensions = names
    return {_plain(f"ext:{extension}:{name}") for extension in extensions} or {_plain(name)}


def _plain(name: str) -> str:
    return name.strip().lower()


def _by_name(found: Found, settings: object, names: _Names) -> None:
    """Switch by Gemini's lists: names trimmed and without case, an extension's server by its id too."""
    ids = {*_ids(names), _plain(names[0])}
    _by_lists(found, settings, lambda items: not ids.isdisjoint(map(_plain, items)))


def _by_pattern(found: Found, settings: object) -> None:
    """Switch by Qwen's lists of names and patterns."""
    name = found.definition.name
    _by_lists(found, settings, lambda items: name in items or any(fits(name, item) for item in items))


def _by_lists(found: Found, settings: object, holds: Callable[[list[str]], bool]) -> None:
    allowed = texts(mapping(settings).get("allowed"))[:_ITEMS]
    excluded = texts(mapping(settings).get("excluded"))[:_ITEMS]
    switch(found, on=(not allowed or holds(allowed)) and not holds(excluded))


def fits(name: str, pattern: str) -> bool:
    """Say whether a name has a pattern's form: `*` for any text, `?` for one character.

    No backtracking beyond the last `*`, so the cost is at most the product of the lengths; longer patterns
    than a name can need fit nothing.
    """
    if "*" not in pattern and "?" not in pattern:
        return name == pattern
    if len(pattern) > _LONGEST or len(name) > _LONGEST:
        return False
    at = star = 0
    start, retry = -1, 0
    while at < len(name):
        if star < len(pattern) and pattern[star] == "*":
            start, retry, star = star, at, star + 1
        elif star < len(pattern) and pattern[star] in ("?", name[at]):
            at, star = at + 1, star + 1
        elif start >= 0:
            retry += 1
            at, star = retry, start + 1
        else:
            return False
    return not pattern[star:].strip("*")


def _extensions(scan: Scan, harness: str, folder: str, found: list[Found]) -> None:
    """Switch extensions, and name those that only link to a folder elsewhere."""
    if not scan.exists(folder[2:]):
        return
    enablement = mapping(scan.state(f"{folder}/extension-enablement.json", harness))
    for one in found:
        if one.definition.scope == "plugin":
            for extension in _names(scan, one)[1:]:
                switch(one, on=_is_on(mapping(enablement.get(extension)).get("overrides")))
    pattern = f"{folder}/*/.{harness.partition('-')[0]}-extension-install.json"
    for linked in scan.home.match(pattern[2:]):
        if linked.refused:
            continue
        record = scan.side_of(harness, linked.path, linked.parts, pattern=pattern)
        if mapping(record).get("type") == "link":
            scan.reading.not_covered.add(PLUGIN_SOURCES)


def _is_on(overrides: object) -> bool:
    """Say what the last override says; without one the extension is on."""
    rules = texts(overrides)
    return not (rules and rules[-1].startswith("!"))
