# SPDX-License-Identifier: Apache-2.0
r"""Wanted parts of a big JSON file, without building the rest (libs.md 0.3 and 1, ADR 0005).

A msgspec type is generated per set of pointers: wanted keys are fields, whole values stay raw bytes,
everything else is skipped in one pass. The raw pieces, small, go through `json_whole`.

Invariants:

1. Beside the buffer only the wanted pieces are held; the buffer, when it is a bytearray, is changed in place.
2. What is read equals what `json_whole` reads at the same pointers. msgspec refuses lone surrogate escapes
   even in values it skips, so on failure every `\\` and every `\ud` gets its backslash replaced by a byte
   that the file does not use, and the pieces get it back: exact, linear, and all in C.
"""

import codecs
import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from halod.harnesses.formats.base import BOM, Malformed, TooLarge, position
from halod.harnesses.formats.blanker import blank
from halod.harnesses.formats.json_whole import TOLERANT_BYTES, decode_whole, parse, requote
from halod.harnesses.formats.pointers import Wanted, wanted

_AT: Final = re.compile(r"\(byte (\d+)\)$")
_BLANKS: Final = b" \t\r\n"
_SAFE_CUT: Final = re.compile(rb"[^\\u0-9a-fA-F]")  # no escape goes across it
_NO_ESCAPE: Final = re.compile(rb"\\u[dD](?![0-9a-fA-F]{3})")
_CHUNK: Final = 1 << 20
WANTED_BYTES: Final = 16 << 20  # of all wanted parts: two seconds, and half a gigabyte of numbers at worst
# Bytes to stand for a backslash: DEL is in hardly any text; the others may be missing from a file that has
# it.
_MARKERS: Final = b"\x7f`^~|$%@"
_RAW: Final = msgspec.json.Decoder(msgspec.Raw)
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])


@lru_cache(maxsize=64)
def plan(pointers: tuple[str, ...]) -> "Plan":
    """Make (once) the types for a set of pointers; a supervisor calls it before it forks."""
    return Plan(wanted(pointers))


class Plan:
    """A tree of wanted parts and the msgspec decoder made from it."""

    __slots__ = ("decoder", "root")

    def __init__(self, root: Wanted) -> None:
        self.root = root
        self.decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_type(root))

    def decode(self, data: bytes | bytearray) -> object:
        """Decode the wanted parts of a file.

        Raises:
            TooLarge: the wanted parts together have more than 16 MiB.
            Malformed: the file does not parse.
        """
        return _Reading(self, data).decode()


def _type(node: Wanted) -> Any:  # noqa: ANN401 - a type made at run time has no static type
    """Make the type that keeps what `node` wants; null is let through, another kind fails validation."""
    if node.whole:
        return msgspec.Raw
    kinds: Any = None
    if node.star:
        kinds = dict[str, _type(node.star)] | None  # type: ignore[misc]
    elif node.names:
        names = list(node.names)
        fields = [(f"f{i}", _type(node.names[name]), msgspec.UNSET) for i, name in enumerate(names)]
        rename = {f"f{i}": name for i, name in enumerate(names)}
        kinds = msgspec.defstruct("Part", fields, rename=rename, gc=False) | None
    if node.items:
        kinds = list[_type(node.items)] | kinds  # type: ignore[misc]
    return kinds


def _writable(data: bytes | bytearray) -> bytearray:
    return data if isinstance(data, bytearray) else bytearray(data)


class _Reading:
    """One file on its way through the plan: the buffer as it stands and the byte that marks backslashes."""

    __slots__ = ("bom", "data", "marker", "plan", "room", "tolerant")

    def __init__(self, plan_: Plan, data: bytes | bytearray, *, tolerant: bool = True) -> None:
        self.plan = plan_
        self.tolerant = tolerant
        self.room = WANTED_BYTES
        self.marker = b""
        self.bom = data.startswith(BOM)
        if self.bom:  # as blanks, because cutting them off would copy the buffer
            data = _writable(data)
            data[: len(BOM)] = b" " * len(BOM)
        self.data = data

    def decode(self) -> object:
        """Decode strictly, then after each repair again, then the tolerant way when the file is small."""
        line = column = 0
        message = ""
        for repair in (self._as_is, self._mask_surrogates, self._replace_invalid):
            if repair(message):
                try:
                    return self._strict()
                except msgspec.DecodeError as error:
                    message = str(error)
                    line, column = self._position(message)
                except RecursionError:
                    break
        else:
            if self.tolerant and len(self.data) <= TOLERANT_BYTES:
                return self._tolerantly(self._unmasked(self.data[len(BOM) :] if self.bom else self.data))
        raise Malformed(line, column)

    def _tolerantly(self, data: bytes | bytearray) -> object:
        """Decode without comments and trailing commas; as a whole only where msgspec cannot read it at all."""
        try:
            return _Reading(self.plan, blank(data), tolerant=False).decode()
        except TooLarge:
            raise
        except Malformed:
            return decode_whole(data)

    def _position(self, message: str) -> tuple[int, int]:
        """Find the place in msgspec's message; a truncated file is wrong at its end."""
        at = _AT.search(message)
        if not at and "truncated" not in message:
            return 0, 0
        line, column = position(self.data, int(at[1]) if at else len(self.data))
        return line, column - len(BOM) if self.bom and line == 1 else column

    # --- repairs, given msgspec's message: True when the buffer changed, so that another try makes sense

    def _as_is(self, _message: str) -> bool:
        return True

    def _mask_surrogates(self, _message: str) -> bool:
        r"""Put the marker in place of the backslash of every `\ud` (and of `\\`, to tell them apart).

        What is no escape after all (`\ud8x`) stays as it is, with all behind it: msgspec refuses it.
        """
        if not self.tolerant:
            return False
        if b"\\ud" not in self.data and b"\\uD" not in self.data:
            return False
        marker = next((bytes([code]) for code in _MARKERS if self._is_free(code)), b"")
        if not marker:
            return False
        data = _writable(self.data)
        start = 0
        while start < len(data):
            cut = _SAFE_CUT.search(data, start + _CHUNK)
            stop = cut.end() if cut else len(data)
            chunk = data[start:stop].replace(b"\\\\", marker * 2)
            if _NO_ESCAPE.search(chunk):
                break
            data[start:stop] = chunk.replace(b"\\ud", marker + b"ud").replace(b"\\uD", marker + b"uD")
            start = stop
        self.data, self.marker = data, marker
        return True

    def _is_free(self, code: int) -> bool:
        """Tell whether a byte is nowhere in the file, nor written as an escape that a key would show."""
        spellings = b"%c" % code, b"\\u%04x" % code, b"\\u%04X" % code
        return not any(spelling in self.data for spelling in spellings)

    def _replace_invalid(self, message: str) -> bool:
        """Replace invalid UTF-8 by U+FFFD: msgspec checks it in the keys of a `*` level only."""
        if "UTF-8" not in message:
            return False
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        clean = bytearray()
        for start in range(0, len(self.data), _CHUNK):
            clean += decoder.decode(self.data[start : start + _CHUNK]).encode()
        clean += decoder.decode(b"", final=True).encode()
        changed = clean != self.data
        self.data = clean
        return changed

    def _unmasked(self, data: bytes | bytearray) -> bytes | bytearray:
        return data.replace(self.marker, b"\\") if self.marker else data

    # --- from typed or raw values to plain data

    def _strict(self) -> object:
        try:
            return self._plain(self.plan.root, self.plan.decoder.decode(self.data))
        except msgspec.ValidationError:
            pass  # a level is of another kind than the pointers say
        return self._loose(self.plan.root, _RAW.decode(self.data))

    def _plain(self, node: Wanted, value: object) -> object:
        """Turn what the typed decode made into plain data."""
        if isinstance(value, msgspec.Raw):
            return self._piece(value)
        if isinstance(value, dict) and node.star:
            return {self._key(key): self._plain(node.star, item) for key, item in value.items()}
        if isinstance(value, list) and node.items:
            return [self._plain(node.items, item) for item in value]
        if isinstance(value, msgspec.Struct):
            fields = zip(node.names.items(), value.__struct_fields__, strict=True)
            values = ((name, child, getattr(value, field)) for (name, child), field in fields)
            return {
                name: self._plain(child, item) for name, child, item in values if item is not msgspec.UNSET
            }
        return None

    def _loose(self, node: Wanted, raw: msgspec.Raw) -> object:
        """Walk level by level where kinds do not fit: out of reach, a collection is empty, a scalar stays."""
        kind = bytes(memoryview(raw)[:1])
        if node.whole or kind not in b"{[":
            return self._piece(raw)
        if kind == b"[":
            return [self._loose(node.items, item) for item in _LIST.decode(raw)] if node.items else []
        if not (node.star or node.names):
            return {}
        found = {self._key(key): item for key, item in _OBJECT.decode(raw).items()}
        below = {key: node.star or node.names.get(key) for key in found}
        return {key: self._loose(child, found[key]) for key, child in below.items() if child}

    def _key(self, key: str) -> str:
        marker = self.marker.decode()
        if not marker or marker not in key:
            return key
        try:
            return requote(key, marker)
        except ValueError:  # what the marker hid from msgspec is no escape at all; the message quotes it
            pass
        raise Malformed

    def _piece(self, raw: msgspec.Raw) -> object:
        self.room -= len(memoryview(raw))
        if self.room < 0:
            raise TooLarge
        return parse(self._unmasked(bytes(raw)).decode("utf-8", "replace"))
