# SPDX-License-Identifier: Apache-2.0
"""Managed preferences: settings that a device management server lays over halod.toml on macOS.

The property list of the domain `dev.halos.halod` has one dictionary per table, with the keys of halod.toml:
`report` -> `url`. Every account of the machine can read it, so it holds no secret: a key that would is
refused, as is text that looks like a key or certificate instead of the path of its file.
"""

import plistlib
from typing import Any, Final
from xml.parsers.expat import ExpatError

from halod.settings.fields import Reader
from halod.settings.model import Problem
from halod.settings.values import Source

MAX_BYTES: Final = 256 * 1024


def decode(name: str, data: bytes, reader: Reader) -> tuple[Source, dict[str, Any]]:
    """Decode a property list, XML or binary; when it is none, that is recorded and it counts as empty.

    The profile's own keys (`Payload...`), which some servers leave in it, are no settings.
    """
    source = Source(name)
    document: object = None
    if len(data) <= MAX_BYTES:
        try:
            document = plistlib.loads(data)
        except (plistlib.InvalidFileException, ExpatError, ValueError, OverflowError, IndexError, KeyError,
                AttributeError, TypeError, RecursionError, MemoryError):  # fmt: skip
            document = None
    if not isinstance(document, dict):
        reader.problems.append(Problem(name, 0, "is no property list with a dictionary of tables"))
        return source, {}
    return source, {str(key): value for key, value in document.items() if not _of_profile(key)}


def _of_profile(key: object) -> bool:
    return isinstance(key, str) and key.startswith("Payload")
