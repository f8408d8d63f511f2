# SPDX-License-Identifier: Apache-2.0
"""Claude Code's plugins: which are installed, where they run from, what is switched off (harnesses.md 1).

Decisions, where the facts leave room:

* A cached plugin that `installed_plugins.json` does not name (an older version, a removed plugin) is a
  definition with `enabled` false: it is on disk and one click from live. Without that file all count as live.
* A plugin of a marketplace whose source is a directory runs from that directory, and a changed cache does
  nothing: its cached copy has `enabled` false, and the directory, which is not followed, is named in
  `not_covered`. So is a plugin that is installed anywhere but below `~/.claude/`.
"""

import posixpath
from collections.abc import Iterator
from typing import Final, NamedTuple

from halod.harnesses.plugins import PLUGIN_SOURCES
from halod.harnesses.scan import Scan, Source, switch
from halod.harnesses.values import mapping, sequence, texts

HARNESS: Final = "claude-code"
_PLUGINS: Final = ".claude/plugins"
_SETTINGS: Final = "~/.claude/settings.json"
_INSTALLED: Final = "~/.claude/plugins/installed_plugins.json"
_MARKETS: Final = "~/.claude/plugins/known_marketplaces.json"
_CACHE: Final = ".claude/plugins/cache/"
_SKILLS: Final = ".claude/skills/"
_CONFIG: Final = "/.claude/"


class Brought(NamedTuple):
    """A catalogue's entry: its `mcpServers`, the plugin's folder and its parts, and its switch."""

    value: object
    root: str
    parts: tuple[str, ...]
    on: bool


class State:
    """What Claude Code's state files say of plugins, worked out once per scan."""

    def __init__(self, scan: Scan) -> None:
        settings = mapping(scan.state(_SETTINGS, HARNESS))
        self.enabled = mapping(settings.get("enabledPlugins"))
        self.rejected = frozenset(texts(settings.get("disabledMcpjsonServers")))
        self.installed: dict[str, list[str]] = {}
        """The install paths of every installed plugin, mapped into the home ("" for one outside), by id."""
        for plugin, record in mapping(mapping(scan.state(_INSTALLED, HARNESS)).get("plugins")).items():
            # Version 1 of the file has one record each, version 2 a list.
            records = record if isinstance(record, list) else [record]
            paths = texts([mapping(one).get("installPath") for one in records])
            self.installed[plugin] = [mapped(path) for path in paths]
        self.directories = {
            market
            for market, known in mapping(scan.state(_MARKETS, HARNESS)).items()
            if mapping(mapping(known).get("source")).get("source") == "directory"
        }

    @classmethod
    def of(cls, scan: Scan) -> "State":
        """Give the scan's one state, read when it is first asked for."""
        state = scan.memo.get(HARNESS)
        if not isinstance(state, cls):
            scan.memo[HARNESS] = state = cls(scan)
        return state

    def is_live(self, pattern: str, parts: tuple[str, ...]) -> bool:
        """Say whether a plugin's file, by its location and parts, belongs to a plugin that runs."""
        if pattern.startswith(_SKILLS):
            return self.enabled.get(f"{parts[0]}@skills-dir") is not False
        if not pattern.startswith(_CACHE):
            return True
        plugin = _id_of(parts)
        if self.enabled.get(plugin) is False or parts[0] in self.directories:
            return False
        paths = self.installed.get(plugin)
        if not self.installed or paths == []:
            return True
        return paths is not None and _CACHE + "/".join(parts[:3]) in paths

    def is_on(self, plugin: str, market: str) -> bool:
        """Say whether a catalogue's plugin is on and runs as the catalogue says."""
        return self.enabled.get(plugin) is not False and market not in self.directories

    def has_sources(self, cached: set[str]) -> bool:
        """Say whether a plugin runs from a folder that is not below `~/.claude/`."""
        if any("" in paths for paths in self.installed.values()):
            return True
        named = {plugin for plugin, value in self.enabled.items() if value is not False}
        plugins = {*self.installed, *named, *cached}
        return any(plugin.rpartition("@")[2] in self.directories for plugin in plugins)


def apply(scan: Scan) -> None:
    """Switch what Claude Code's other files switch, and name the plugins that run from elsewhere."""
    files = [(one, one.definition.file) for one in scan.found(HARNESS)]
    placed = [(one, scan.locations[file.location].path, file.parts) for one, file in files]
    plugins = [(one, path[2:], parts) for one, path, parts in placed if one.definition.scope == "plugin"]
    for one, path, _ in placed:
        if path == "~/.mcp.json":
            switch(one, on=one.definition.name not in State.of(scan).rejected)
    if not plugins and not scan.exists(_PLUGINS):
        return
    state = State.of(scan)
    for one, pattern, parts in plugins:
        switch(one, on=state.is_live(pattern, parts))
    if state.has_sources({_id_of(parts) for _, pattern, parts in plugins if pattern.startswith(_CACHE)}):
        scan.reading.not_covered.add(PLUGIN_SOURCES)


def catalogue(scan: Scan, source: Source, document: object) -> Iterator[Brought]:
    """Give the entries of a marketplace's catalogue that Claude Code runs.

    Those are the entries of installed plugins that have `strict: false` and no manifest of their own: then
    the catalogue stands for the manifest ("Checked"). The rest of a catalogue is an offer.
    """
    market = source.parts[0]
    for item in sequence(mapping(document).get("plugins")):
        entry = mapping(item)
        if entry.get("strict") is not False or not entry.get("mcpServers"):
            continue
        plugin = f"{entry.get('name')}@{market}"
        for root in State.of(scan).installed.get(plugin, ()):
            if not root or not scan.exists(root + "/.claude-plugin/plugin.json"):
                parts = tuple(root.removeprefix(_CACHE).split("/")) if root.startswith(_CACHE) else ()
                yield Brought(entry["mcpServers"], root, parts, State.of(scan).is_on(plugin, market))
                break


def mapped(path: str) -> str:
    """Map an absolute path of Claude's state into the home, by the part after `/.claude/`; "" for another."""
    # As the system reads it: `//` and `a/..` lead where the plain spelling leads.
    _, found, tail = posixpath.normpath(path).partition(_CONFIG)
    return ".claude/" + tail if found else ""


def _id_of(parts: tuple[str, ...]) -> str:
    """Give a cached plugin's id from the parts of its path: market, plugin, version."""
    return f"{parts[1]}@{parts[0]}"
