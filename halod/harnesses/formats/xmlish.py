# SPDX-License-Identifier: Apache-2.0
"""XML (JetBrains settings) to a neutral tree.

An element is `{"tag": str, "attributes": {str: str}, "children": [element], "text": str}`; `text` is all
character data directly in it, joined. A document type declaration, and with it every entity beyond the five
of XML itself, is malformed; nothing outside the text is ever fetched. The text is UTF-8 whatever its
declaration says.
"""

from typing import Any, Final
from xml.parsers import expat

from halod.harnesses.formats.base import Malformed, TooLarge, without_bom

DEPTH: Final = 400
BYTES: Final = 2 << 20  # about two seconds at worst


def decode_xml(data: bytes | bytearray) -> object:
    """Decode an XML file to its root element; {} for a blank one.

    Raises:
        TooLarge: more than 2 MiB.
        Malformed: it does not parse, has a DOCTYPE or is nested deeper than 400 levels.
    """
    if len(data) > BYTES:
        raise TooLarge
    if not without_bom(data).strip():
        return {}
    line = column = 0
    try:
        return _Tree().parse(bytes(data))
    except expat.ExpatError as error:
        line, column = error.lineno, error.offset + 1
    raise Malformed(line, column)


class _Tree:
    """Collects expat's calls into elements; the first one in `open` is a stand-in above the root."""

    __slots__ = ("open", "parser", "texts")

    def __init__(self) -> None:
        self.open: list[dict[str, Any]] = [{"children": []}]
        self.texts: list[list[str]] = [[]]
        self.parser = expat.ParserCreate("UTF-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse

    def parse(self, data: bytes) -> object:
        self.parser.Parse(data, True)  # noqa: FBT003 - expat takes no keywords
        return self.open[0]["children"][0]

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self.open) > DEPTH:
            self._refuse()
        element = {"tag": tag, "attributes": attributes, "children": [], "text": ""}
        self.open[-1]["children"].append(element)
        self.open.append(element)
        self.texts.append([])

    def _end(self, _tag: str) -> None:
        self.open.pop()["text"] = "".join(self.texts.pop())

    def _text(self, text: str) -> None:
        self.texts[-1].append(text)

    def _refuse(self, *_declaration: object) -> None:
        raise Malformed(self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1)
