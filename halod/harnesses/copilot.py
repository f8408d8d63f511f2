# SPDX-License-Identifier: Apache-2.0
"""Copilot CLI: settings.json switches servers by name, and plugins as config.json does (harnesses.md 4)."""

from typing import Final

from halod.harnesses.plugins import PLUGIN_SOURCES
from halod.harnesses.scan import Scan, switch
from halod.harnesses.values import mapping, sequence, texts

HARNESS: Final = "copilot-cli"
_DIRECT: Final = "_direct"


def apply(scan: Scan) -> None:
    """Switch Copilot's servers. `disabled` in the entry is ignored by it, and so here."""
    found = list(scan.found(HARNESS))
    if not found:
        return
    settings = mapping(scan.state("~/.copilot/settings.json", HARNESS))
    off = frozenset(texts(settings.get("disabledMcpServers")))
    for one in found:
        switch(one, on=one.definition.name not in off)
    plugins = [one for one in found if one.definition.scope == "plugin"]
    if not plugins:
        return
    switches = _plugin_switches(scan, settings.get("enabledPlugins"))
    for one in plugins:
        market, plugin, *_ = one.definition.file.parts
        names = (plugin,) if market == _DIRECT else (f"{plugin}@{market}",)
        switch(one, on=all(switches.get(name, True) for name in names))


def _plugin_switches(scan: Scan, enabled: object) -> dict[str, bool]:
    """Give what both files say of plugins, by `plugin@market` (the bare name for one without a market)."""
    switches: dict[str, bool] = {}
    for item in sequence(mapping(scan.state("~/.copilot/config.json", HARNESS)).get("installed_plugins")):
        record = mapping(item)
        market, name = record.get("marketplace"), record.get("name")
        switches[f"{name}@{market}" if market else f"{name}"] = record.get("enabled") is not False
        path = record.get("cache_path")
        if isinstance(path, str) and path and "/.copilot/" not in path:
            scan.reading.not_covered.add(PLUGIN_SOURCES)
    switches.update({name: value is not False for name, value in mapping(enabled).items()})
    return switches
