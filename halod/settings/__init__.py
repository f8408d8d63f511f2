# SPDX-License-Identifier: Apache-2.0
"""halod.toml: what the administrator of a machine sets (docs/settings.md).

model     the tables and keys as types, where things lie on each system, faults
fields    one reader for each kind of value
locate    the line of a key in a TOML text
managed   managed preferences of macOS
reading   file and preferences to checked Settings
"""

from halod.settings.model import (
    Device,
    ExtraLocation,
    Log,
    Policy,
    Problem,
    Report,
    Scan,
    Settings,
    SettingsError,
    State,
    places,
)
from halod.settings.reading import load, parse

__all__ = [
    "Device",
    "ExtraLocation",
    "Log",
    "Policy",
    "Problem",
    "Report",
    "Scan",
    "Settings",
    "SettingsError",
    "State",
    "load",
    "parse",
    "places",
]
