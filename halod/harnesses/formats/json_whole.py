# SPDX-License-Identifier: Apache-2.0
"""JSON text to data with the standard decoder, which keeps what the hash needs.

Numbers come as `Number`, spelled as written and of any length; lone surrogate escapes stay in their
strings; the last of duplicate keys counts; invalid UTF-8 becomes U+FFFD as in Node; NaN and Infinity are
refused, as are control characters in strings. Nesting: more than about 950 levels is malformed (the
interpreter's limit).
"""

import json
from json.decoder import JSONDecodeError, JSONDecoder
from typing import Final, NoReturn

from halod.harnesses.formats.base import Malformed, Number, without_bom
from halod.harnesses.formats.blanker import blank

TOLERANT_BYTES: Final = 16 << 20  # design 3.6: comments and trailing commas are accepted up to here
_BLANKS: Final = " \t\r\n"


def _refuse(_constant: str) -> NoReturn:
    raise Malformed


_DECODER: Final = JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=_refuse)


def parse(text: str) -> object:
    """Decode one strict JSON text; {} for a blank one.

    Raises:
        Malformed: it does not parse or is nested too deep.
    """
    if not text.strip(_BLANKS):
        return {}
    try:
        return _DECODER.decode(text)
    except JSONDecodeError as error:
        line, column = error.lineno, error.colno
    except RecursionError:
        line = column = 0
    raise Malformed(line, column)


def decode_whole(data: bytes | bytearray) -> object:
    """Decode a JSON file, with comments and trailing commas where it has them and is not above 16 MiB.

    Raises:
        Malformed: it does not parse either way.
    """
    data = without_bom(data)
    try:
        return parse(data.decode("utf-8", "replace"))
    except Malformed:
        if len(data) > TOLERANT_BYTES:
            raise
    return parse(blank(data).decode("utf-8", "replace"))


def requote(text: str, marker: str) -> str:
    r"""Give the string that `text` stands for when each `marker` is read as a backslash of a JSON string."""
    return str(json.loads(json.dumps(text, ensure_ascii=False).replace(marker, "\\")))
