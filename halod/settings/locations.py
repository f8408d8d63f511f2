# SPDX-License-Identifier: Apache-2.0
"""Reading `scan.extra_locations`: more files of a harness, where a variable moved them (design 4)."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from halod.settings.fields import PATH_LIMIT, Reader
from halod.settings.model import ExtraLocation
from halod.settings.values import Value, called, did_you_mean, shown

if TYPE_CHECKING:
    from halod.harnesses.dialect import Location

FORMATS: Final = ("json", "jsonc", "json5", "toml", "yaml", "yaml-1.1", "markdown+yaml-frontmatter")
_POINTER: Final = re.compile(r"/|(?:/(?:\*|[^/~*\[\]\s]+|\[\])?)+(?:\[\])?")


def read_location(reader: Reader, value: Value) -> ExtraLocation | None:
    """Read one table of the list; None, with every fault recorded, when something is wrong with it."""
    given = value.value
    if not isinstance(given, dict):
        reader.fault(value, f"expected a table with harness and path, got {called(given)}")
        return None
    names = ExtraLocation.__struct_fields__
    values = {key: value.member(key, item) for key, item in given.items()}
    for key, item in values.items():
        if key not in names:
            reader.known(names, item, "key")
    for key in ("harness", "path"):
        if key not in values:
            reader.fault(value, f"{key} is missing")
    readers: dict[str, Callable[[Reader, Value], Any]] = {
        "harness": _harness,
        "path": _home_path,
        "format": _format,
        "tables": _tables,
    }
    read = {key: readers[key](reader, item) for key, item in values.items() if key in names}
    if not {"harness", "path"} <= read.keys() or None in read.values():
        return None
    return ExtraLocation(**read)


def _harness(reader: Reader, value: Value) -> str | None:
    name = reader.label(value)
    if name is None:
        return None
    from halod.harnesses import HARNESS_IDS  # the table takes milliseconds, and few settings need it

    if name in HARNESS_IDS:
        return name
    hint = did_you_mean(name, sorted(HARNESS_IDS)) or "; halod harnesses lists the ids"
    reader.fault(value, f"there is no harness {shown(name)}{hint}")
    return None


def _home_path(reader: Reader, value: Value) -> str | None:
    text = reader.text(value, PATH_LIMIT)
    if text is None:
        return None
    parts = text.split("/")
    if parts[0] != "~" or len(parts) < 2:
        reader.fault(value, "expected a path from the home on, such as ~/work/.claude.json")
    elif any(part in {"", ".", ".."} for part in parts[1:]):
        reader.fault(value, 'must not hold an empty component, "." or ".."')
    elif any(char in text for char in "{}?[]"):
        reader.fault(value, "only * and ** are wildcards here; add one location for each alternative")
    elif any("**" in part and part != "**" for part in parts) or parts[-1] == "**":
        reader.fault(value, "** stands for directories and is a component of its own, never the last one")
    else:
        return text
    return None


def _pointer(reader: Reader, value: Value) -> str | None:
    text = reader.text(value, PATH_LIMIT)
    if text is None or _POINTER.fullmatch(text):
        return text
    reader.fault(value, "expected a table such as /mcpServers, /projects/*/mcpServers, /servers[] or /")
    return None


def _format(reader: Reader, value: Value) -> str | None:
    return reader.choice(value, FORMATS)


def _tables(reader: Reader, value: Value) -> tuple[str, ...] | None:
    return reader.unique(value, "tables such as /mcpServers", _pointer)


def location(extra: ExtraLocation) -> "Location":
    """Give an additional location as the readers take it; what it leaves out is as in the first file.

    `extra` was checked, so its harness exists.
    """
    from halod.harnesses.table import extra_location

    like = extra_location(extra.harness, extra.path)
    form, tables = extra.format or like.format, extra.tables or like.tables
    place = msgspec.structs.replace(like.place, path=extra.path, format=form, tables=tables)
    return msgspec.structs.replace(like, format=form, tables=tables, place=place)
