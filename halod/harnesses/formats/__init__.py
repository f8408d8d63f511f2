# SPDX-License-Identifier: Apache-2.0
"""Bytes of a config file to plain data. Pure: no I/O, nothing is followed, nothing is run.

`decode` is the door for every text format; `sqlite` opens databases. Invariants:

1. On any content `decode` returns or raises `Malformed`, in time linear in its size. No other exception.
2. A `Malformed` has a position and nothing of the text, and no exception is chained to it.
3. The result is dicts, lists, str, `Number`, bool and None, and may lack what no pointer reaches.
"""

from collections.abc import Callable
from typing import Final

from halod.harnesses.formats.base import Malformed, Number, TooLarge
from halod.harnesses.formats.frontmatter import decode_frontmatter
from halod.harnesses.formats.json5 import decode_json5
from halod.harnesses.formats.json_pruned import plan
from halod.harnesses.formats.json_whole import decode_whole
from halod.harnesses.formats.tomlish import decode_toml
from halod.harnesses.formats.xmlish import decode_xml
from halod.harnesses.formats.yamlish import decode_yaml

__all__ = ["Malformed", "Number", "TooLarge", "decode", "prepare"]

PRUNE_BYTES: Final = 256 << 10  # below, decoding all of a JSON file costs less than a type of its own
_JSON: Final = frozenset(["json", "jsonc", "json-with-comments", "json-with-comments-no-trailing-commas"])
_OTHERS: Final[dict[str, Callable[[bytes | bytearray], object]]] = {
    "json5": decode_json5,
    "toml": decode_toml,
    "yaml": decode_yaml,
    "yaml-1.1": lambda data: decode_yaml(data, "1.1"),
    "markdown+yaml-frontmatter": decode_frontmatter,
    "xml": decode_xml,
}


def decode(
    format: str,  # noqa: A002 - the word of harnesses.json
    data: bytes | bytearray,
    tables: tuple[str, ...],
    also: tuple[str, ...] = (),
) -> object:
    """Decode a config file, keeping at least what `tables` and `also` point at (see `pointers`).

    `format` is a format word of `harnesses.json` (and `yaml-1.1`). A bytearray may be changed in place. A
    blank file and a `null` document are {}. A JSON or YAML document that is one scalar is malformed. XML
    gives a tree (see `xmlish`); a JSON file above 256 KiB loses what no pointer reaches.

    Raises:
        Malformed: the content does not parse, with line and column where known.
        TooLarge: a Malformed for a text that would take its decoder too long (TOML, YAML, JSON5, XML:
            megabytes; JSON: 16 MiB of what is wanted).
        KeyError: an unknown format, which is a fault of the caller.
    """
    decoder = _OTHERS.get(format) or (None if format in _JSON else _OTHERS[format])
    try:
        value = decoder(data) if decoder else _decode_json(data, tables + also)
        if value is None:
            return {}
        if isinstance(value, (dict, list)):
            return value
        fault = Malformed(1, 1)
    except Malformed as error:
        fault = type(error)(error.line, error.column)
    except (RecursionError, MemoryError, ValueError):
        fault = Malformed()
    raise fault


def prepare(tables: tuple[str, ...], also: tuple[str, ...] = ()) -> None:
    """Make the types for big JSON files with these pointers now, before a fork, instead of in each worker."""
    plan(tables + also)


def _decode_json(data: bytes | bytearray, pointers: tuple[str, ...]) -> object:
    if len(data) > PRUNE_BYTES:
        chosen = plan(pointers)
        if not chosen.root.whole:
            return chosen.decode(data)
    return decode_whole(data)
