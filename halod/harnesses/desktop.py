# SPDX-License-Identifier: Apache-2.0
"""Claude Desktop's extensions: one server each, in the manifest (harnesses.md 7, MCPB specification 0.3).

`platform_overrides` replace parts of the command on one system; a location names the system whose Desktop
reads it, so its overrides are laid over the entry as Desktop does.
"""

from typing import Final

from halod.harnesses.scan import Scan, Source, switch
from halod.harnesses.tables import Contents, Slot
from halod.harnesses.values import mapping

HARNESS: Final = "claude-desktop"


def contents(document: object, source: Source) -> Contents:
    """Give an extension's one entry, under the name that the manifest gives the extension."""
    if not isinstance(document, dict):
        return Contents([], wrong=document not in (None, []))
    server = document.get("server")
    name = document.get("name")
    label = name if isinstance(name, str) and name else source.parts[0]
    if server is None:
        return Contents([])
    config = mapping(server).get("mcp_config")
    if not isinstance(config, dict):
        return Contents([Slot(label, config, "/server/mcp_config", mapping(server))])
    system = "darwin" if source.path.startswith("Library/") else "linux"
    override = mapping(mapping(config.get("platform_overrides")).get(system))
    merged = {**config, **override}
    if "env" in override:
        merged["env"] = {**mapping(config.get("env")), **mapping(override.get("env"))}
    return Contents([Slot(label, merged, "/server/mcp_config", mapping(server))])


def apply(scan: Scan) -> None:
    """Switch extensions as their settings file says (`isEnabled`)."""
    for found in scan.found(HARNESS):
        reference = found.definition.file
        if not reference.parts:
            continue
        base = scan.locations[reference.location].path.partition("Claude Extensions/")[0]
        pattern = f"{base}Claude Extensions Settings/*.json"
        name = f"{reference.parts[0]}.json"
        settings = scan.side_of(HARNESS, pattern[2:].replace("*.json", name), (name,), pattern=pattern)
        switch(found, on=mapping(settings).get("isEnabled") is not False)
