# SPDX-License-Identifier: Apache-2.0
"""The YAML block at the start of a Markdown file.

The block opens with `---` alone on the very first line and closes with the next line that is `---` or
`...`. A file without one has no settings and is empty, not malformed. A block that is not closed is read to
the end of the file, as gray-matter does; when that is not YAML, it is no block, unless it names an MCP table:
readers differ in what closes a block (`----`) and opens one (`---yaml`), and unread must not look clean.

Agent files are written by hand, with descriptions like `Use this: when ...` that are not YAML; their tools
read them all the same. So when the block does not parse, it is tried again with such one-line values quoted.
"""

import re
from typing import Final

from halod.harnesses.formats.base import Malformed, without_bom
from halod.harnesses.formats.yamlish import BYTES, decode_yaml

_OPENING: Final = re.compile(rb"---[ \t]*(?:ya?ml[ \t]*)?\r?\n", re.IGNORECASE)
_TABLE: Final = re.compile(rb"^[ \t\"']*mcp[-_]?servers[\"']?[ \t]*:", re.IGNORECASE | re.MULTILINE)
_CLOSING: Final = re.compile(rb"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_LOOSE: Final = re.compile(rb"^([A-Za-z_][A-Za-z0-9_-]*:[ \t]+)([^\s\"'\[{|>][^\r\n]*)", re.MULTILINE)


def decode_frontmatter(data: bytes | bytearray) -> object:
    """Decode the front matter of a Markdown file; {} when there is none.

    Raises:
        Malformed: the block does not parse, also with its one-line values quoted.
    """
    data = without_bom(data)
    opening = _OPENING.match(data)
    if not opening:
        return {}
    closing = _CLOSING.search(data, opening.end())
    # The opening line stays, as YAML's document mark: lines then count as in the file.
    block = b"---\n" + bytes(data[opening.end() : closing.start() if closing else BYTES])
    try:
        return decode_yaml(block)
    except Malformed as error:
        if not (closing or _TABLE.search(block)):
            return {}
        fault = error
    try:
        return decode_yaml(_LOOSE.sub(_quoted, block))
    except Malformed:
        raise fault from None


def _quoted(match: re.Match[bytes]) -> bytes:
    """Write a plain one-line value in single quotes, in which only the quote itself is doubled."""
    return match[1] + b"'" + match[2].rstrip().replace(b"'", b"''") + b"'"
