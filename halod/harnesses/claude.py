# SPDX-License-Identifier: Apache-2.0
"""Claude Code's plugins: which are installed, where they run from, what is switched off (harnesses.md 1).

Decisions, where the facts leave room:

* A cached plugin that `installed_plugins.json` does not name (an older version, a removed plugin) is a
  definition with `enabled` false: it is on disk and one click from live. Without that file all count as live.
* A plugin of a marketplace whose source is a directory runs from that directory, and a changed cache does
  nothing: its cached copy has `enabled` false, and the directory, which is not followed, is named in
  `not_covered`. So is a plugin that is installed anywhere but below `~/.claude/`.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from halod.definition import FileRef
from halod.harnesses.model import Found
from halod.harnesses.plugins import PLUGIN_SOURCES
from halod.harnesses.scan import Scan, Source, switch
from halod.harnesses.values import mapping

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


def apply(scan: Scan) -> None:
    """Switch what Claude Code's other files switch, and name the plugins that run from elsewhere."""
    found = list(scan.found(HARNESS))
    plugins = [one for one in found if one.definition.scope == "plugin"]
    root_file = [one for one in found if _path(scan, one.definition.file.location) == "~/.mcp.json"]
    if root_file:
        rejected = _settings(scan).get("disabledMcpjsonServers")
        for one in root_file:
            switch(one, on=not (isinstance(rejected, list) and one.definition.name in rejected))
    if not plugins and not scan.exists(_PLUGINS):
        return
    for one in plugins:
        reference = one.definition.file
        switch(one, on=_is_live(scan, _path(scan, reference.location)[2:], reference.parts))
    _name_sources(scan, {_id_of(reference.parts) for reference in _cached(scan, plugins)})


def catalogue(scan: Scan, source: Source, document: object) -> Iterator[Brought]:
    """Give the entries of a marketplace's catalogue that Claude Code runs.

    Those are the entries of installed plugins that have `strict: false` and no manifest of their own: then
    the catalogue stands for the manifest ("Checked"). The rest of a catalogue is an offer.
    """
    entries = document.get("plugins") if isinstance(document, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("strict") is not False or not entry.get("mcpServers"):
            continue
        plugin = f"{entry.get('name')}@{source.parts[0]}"
        for path in _installed(scan).get(plugin, ()):
            root = mapped(path)
            if root and scan.exists(root + "/.claude-plugin/plugin.json"):
                continue
            parts = tuple(root.removeprefix(_CACHE).split("/")) if root.startswith(_CACHE) else ()
            on = _enabled_plugins(scan).get(plugin) is not False and not _from_directory(
                scan, source.parts[0]
            )
            yield Brought(entry["mcpServers"], root, parts, on)
            break


def mapped(path: str) -> str:
    """Map an absolute path of Claude's state into the home, by the part after `/.claude/`; "" for another."""
    _, found, tail = path.partition(_CONFIG)
    parts = tail.split("/")
    return ".claude/" + tail if found and tail and ".." not in parts else ""


def _path(scan: Scan, number: int) -> str:
    return scan.locations[number].path


def _cached(scan: Scan, plugins: list[Found]) -> Iterator[FileRef]:
    for one in plugins:
        if _path(scan, one.definition.file.location)[2:].startswith(_CACHE):
            yield one.definition.file


def _id_of(parts: tuple[str, ...]) -> str:
    """Give a cached plugin's id from the parts of its path: market, plugin, version."""
    return f"{parts[1]}@{parts[0]}"


def _is_live(scan: Scan, pattern: str, parts: tuple[str, ...]) -> bool:
    enabled = _enabled_plugins(scan)
    if pattern.startswith(_SKILLS):
        return enabled.get(f"{parts[0]}@skills-dir") is not False
    if not pattern.startswith(_CACHE):
        return True
    plugin = _id_of(parts)
    if enabled.get(plugin) is False or _from_directory(scan, parts[0]):
        return False
    installed = _installed(scan)
    if not installed:
        return True
    paths = installed.get(plugin)
    return paths is not None and (not paths or _CACHE + "/".join(parts[:3]) in map(mapped, paths))


def _name_sources(scan: Scan, cached: set[str]) -> None:
    installed = _installed(scan)
    named = {plugin for plugin, value in _enabled_plugins(scan).items() if value is not False}
    outside = any(not mapped(path) for paths in installed.values() for path in paths)
    if outside or any(
        _from_directory(scan, plugin.rpartition("@")[2]) for plugin in {*installed, *named, *cached}
    ):
        scan.reading.not_covered.add(PLUGIN_SOURCES)


def _settings(scan: Scan) -> Mapping[str, object]:
    return mapping(scan.state(_SETTINGS, HARNESS))


def _enabled_plugins(scan: Scan) -> Mapping[str, object]:
    return mapping(_settings(scan).get("enabledPlugins"))


def _from_directory(scan: Scan, market: str) -> bool:
    known = mapping(mapping(scan.state(_MARKETS, HARNESS)).get(market))
    return mapping(known.get("source")).get("source") == "directory"


def _installed(scan: Scan) -> dict[str, list[str]]:
    """Give the install paths of every installed plugin, by id; version 1 of the file has one record each."""
    records = mapping(mapping(scan.state(_INSTALLED, HARNESS)).get("plugins"))
    found: dict[str, list[str]] = {}
    for plugin, record in records.items():
        entries = record if isinstance(record, list) else [record]
        paths = [mapping(entry).get("installPath") for entry in entries]
        found[plugin] = [path for path in paths if isinstance(path, str)]
    return found
