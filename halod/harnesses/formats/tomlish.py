# SPDX-License-Identifier: Apache-2.0
"""TOML to data.

Floats are `Number` as written; integers are `Number` of their decimal value, because tomli hands over no
text of them (`0x1F` becomes `31`; Codex refuses numbers among arguments anyway); dates and times become
their ISO text. Invalid UTF-8, duplicate tables and keys, and integers of more than 4,300 digits are
malformed.
"""

import re
from typing import Final

import tomli

from halod.harnesses.formats.base import Malformed, Number, TooLarge, strict_text

BYTES: Final = 2 << 20  # about two seconds at worst
# A key of many parts costs their square for each line that has it; people write up to five.
_DEEP: Final = re.compile(
    r"""(?:^|[\[{,])[ \t]*(?:(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){64}""", re.MULTILINE
)


def decode_toml(data: bytes | bytearray) -> object:
    """Decode a TOML file.

    Raises:
        TooLarge: more than 2 MiB, or a key of more than 64 parts.
        Malformed: it does not parse or is nested too deep.
    """
    if len(data) > BYTES:
        raise TooLarge
    line = column = 0
    text = strict_text(data)
    if _DEEP.search(text) is not None:
        raise TooLarge
    try:
        return _plain(tomli.loads(text, parse_float=Number))
    except tomli.TOMLDecodeError as error:
        line, column = error.lineno, error.colno
    except (ValueError, RecursionError):
        pass
    raise Malformed(line, column)


def _plain(value: object) -> object:
    """Replace what JSON has no kind for; as deep as tomli lets a document be."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, (str, bool)):
        return value
    return Number(value) if isinstance(value, int) else str(value)
