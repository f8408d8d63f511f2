# SPDX-License-Identifier: Apache-2.0
"""Codex: `[plugins.*]` in config.toml switches plugins and single servers of theirs (harnesses.md 2)."""

from typing import Final

from halod.harnesses.scan import Scan, switch
from halod.harnesses.values import mapping

HARNESS: Final = "codex"
_CONFIG: Final = ".codex/config.toml"


def apply(scan: Scan) -> None:
    """Switch the servers of plugins as config.toml says."""
    plugins = mapping(mapping(scan.documents.get(_CONFIG)).get("plugins"))
    for found in scan.found(HARNESS):
        definition = found.definition
        if definition.scope != "plugin":
            continue
        parts = definition.file.parts
        plugin = mapping(plugins.get(f"{parts[1]}@{parts[0]}"))
        server = mapping(mapping(plugin.get("mcp_servers")).get(definition.name))
        switch(found, on=plugin.get("enabled") is not False and server.get("enabled") is not False)
