# SPDX-License-Identifier: Apache-2.0
"""Cline: files of older releases that a newer one has moved away (harnesses.md 10).

The mark is in Cline's global state, with the path of each file that was moved (cline/cline, the migration of
legacy settings); a mark in a settings file itself counts for that file, one in the new file for all.
"""

from typing import Final

from halod.harnesses.scan import Scan, switch
from halod.harnesses.values import mapping

HARNESS: Final = "cline"
_SETTINGS: Final = ".cline/data/settings/cline_mcp_settings.json"
_STATE: Final = "~/.cline/data/globalState.json"


def apply(scan: Scan) -> None:
    """Switch off what lies in a file that is marked as migrated."""
    for found in scan.found(HARNESS):
        location = scan.locations[found.definition.file.location]
        mark = location.place.migrated
        if mark:
            switch(found, on=not _is_migrated(scan, location.path[2:], mark))


def _is_migrated(scan: Scan, path: str, mark: str) -> bool:
    if mapping(scan.documents.get(path)).get(mark) or mapping(scan.documents.get(_SETTINGS)).get(mark):
        return True
    state = mapping(scan.state(_STATE, HARNESS)).get(mark)
    sources = mapping(state).get("sources")
    if not sources:
        return bool(state)
    tail = "/" + path.removeprefix("Library/Application Support/").removeprefix(".config/")
    paths = (mapping(source).get("path") for source in mapping(sources).values())
    return any(isinstance(moved, str) and moved.endswith(tail) for moved in paths)
