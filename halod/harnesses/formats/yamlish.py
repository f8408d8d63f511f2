# SPDX-License-Identifier: Apache-2.0
"""YAML to data, from parser events, with the scalar rules of the harness.

One document only. Anchors, aliases, tags, merge keys and keys that are not scalars are malformed: no harness
writes them, and they are how a small file becomes a large one. Of duplicate keys the last counts (Hermes; the
others refuse the file). Mapping keys are their text as written. Numbers are `Number`, spelled as written.

* 1.2, the core schema: `off`, `no`, `22:22`, `0b1` and dates are strings.
* 1.1 as PyYAML's safe loader resolves it (Hermes): `off` is false, `22:22` is 1342, `010` is 8; integers
  that are not plain decimal come as their decimal value, dates as their text.

Invariants: no recursion of ours; at most `DEPTH` levels; libyaml where it is there, else PyYAML's own parser.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

import yaml
from yaml import events

from halod.harnesses.formats.base import Malformed, Number, TooLarge, strict_text

_Parser: TypeAlias = Any  # PyYAML declares neither: get_event, peek_event, check_event
_Event: TypeAlias = Any  # start_mark; anchor and tag of nodes; value and implicit of scalars

DEPTH: Final = 400
_FAST: Final = bool(yaml.__with_libyaml__)
_PARSER: Final = yaml.CSafeLoader if _FAST else yaml.SafeLoader
BYTES: Final = 2 << 20 if _FAST else 256 << 10  # a second or two either way

_NULL: Final = frozenset(["", "~", "null", "Null", "NULL"])
_BOOL: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER: Final = re.compile(
    r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)

_SWITCHES: Final = {"yes": True, "on": True, "no": False, "off": False}
_BOOL_11: Final = {
    **_BOOL,
    **{
        spelling: on for word, on in _SWITCHES.items() for spelling in (word, word.capitalize(), word.upper())
    },
}
_FLOAT_11: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_INT_11: Final = re.compile(
    r"([-+]?)(?:0b(?P<binary>[01_]+)|0x(?P<hex>[0-9a-fA-F_]+)|0(?P<octal>[0-7_]+)|(?P<plain>0|[1-9][0-9_]*)"
    r"|(?P<sixty>[1-9][0-9_]*(?::[0-5]?[0-9])+))"
)
_BASES: Final = {"binary": 2, "hex": 16, "octal": 8}
_LONGEST: Final = 1000  # characters; a longer number stays as written, its value would cost too much to tell


def decode_yaml(data: bytes | bytearray, version: str = "1.2") -> object:
    """Decode a YAML file of the given version (`"1.1"` or `"1.2"`); {} for one without content.

    Raises:
        TooLarge: more than 2 MiB (256 KiB without libyaml).
        Malformed: it does not parse, is nested deeper than 400 levels, or uses what is refused.
    """
    if len(data) > BYTES:
        raise TooLarge
    return load(strict_text(data), version)


def load(text: str, version: str = "1.2") -> object:
    """Like `decode_yaml`, of a text."""
    line = column = 0
    try:
        return _Composer(_PARSER(text), _RESOLVERS[version]).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    except (yaml.YAMLError, RecursionError):  # a character YAML does not allow; the slow parser's depth
        pass
    raise Malformed(line, column)


class _Composer:
    """Builds data from events on a stack of its own."""

    __slots__ = ("parser", "resolve")

    def __init__(self, parser: _Parser, resolve: Callable[[str], object]) -> None:
        self.parser = parser
        self.resolve = resolve

    def document(self) -> object:
        """Build the only document; a scalar alone is no config."""
        self.parser.get_event()
        if self.parser.check_event(events.StreamEndEvent):
            return {}
        self.parser.get_event()
        first = self.parser.peek_event()
        value = self._node()
        self.parser.get_event()
        if not self.parser.check_event(events.StreamEndEvent):
            _refuse(self.parser.peek_event())
        if not (value is None or isinstance(value, dict | list)):
            _refuse(first)
        return {} if value is None else value

    def _node(self) -> object:
        """Build one node and everything below it."""
        root: list[object] = []
        open_: list[_Open] = [_Open(root)]
        while True:
            event = self.parser.get_event()
            if isinstance(event, events.CollectionEndEvent):
                open_.pop()
            else:
                below = self._add(open_[-1], event)
                if below is not None:
                    open_.append(_Open(below))
            if len(open_) == 1:
                return root[0]
            if len(open_) > DEPTH + 1:
                _refuse(event)

    def _add(self, into: "_Open", event: _Event) -> dict[str, object] | list[object] | None:
        """Add a key, a scalar or an empty collection; give the collection, whose content comes next."""
        if isinstance(event, events.AliasEvent) or event.anchor is not None or event.tag is not None:
            _refuse(event)
        value: object
        below: dict[str, object] | list[object] | None = None
        if isinstance(event, events.ScalarEvent):
            value = self.resolve(event.value) if event.implicit[0] else event.value
        else:
            value = below = {} if isinstance(event, events.MappingStartEvent) else []
        if isinstance(into.collection, list):
            into.collection.append(value)
        elif into.key is not None:
            into.collection[into.key] = value
            into.key = None
        elif below is not None or (event.value == "<<" and event.implicit[0]):
            _refuse(event)
        else:
            into.key = event.value
        return below


class _Open:
    """A collection that is being filled, and in a mapping the key whose value comes next."""

    __slots__ = ("collection", "key")

    def __init__(self, collection: dict[str, object] | list[object]) -> None:
        self.collection = collection
        self.key: str | None = None


def _refuse(event: _Event) -> NoReturn:
    raise Malformed(event.start_mark.line + 1, event.start_mark.column + 1)


def _resolve_12(text: str) -> object:
    """Give a plain scalar's value by the core schema (YAML 1.2.2, 10.3.2)."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    return Number(text) if _NUMBER.fullmatch(text) else text


def _resolve_11(text: str) -> object:
    """Give a plain scalar's value as PyYAML's safe loader does (yaml.org/type, less `y` and `n`)."""
    if text in _NULL or text in _BOOL_11:
        return _BOOL_11.get(text)
    whole = _INT_11.fullmatch(text)
    if not (whole or _FLOAT_11.fullmatch(text)):
        return text
    if len(text) > _LONGEST:
        return Number(text)
    if not whole:
        return Number(text.replace("_", "") if ":" not in text else str(_sixty(text, float)))
    if whole["plain"]:
        return Number(text.replace("_", ""))
    return _integer(text, whole)


def _integer(text: str, match: re.Match[str]) -> object:
    """Give the value of an integer that is not plain decimal; the text where the digits are only `_`."""
    if match["sixty"]:
        return Number(_sixty(text, int))
    kind = match.lastgroup or ""
    digits = match[kind].replace("_", "")
    if not digits:
        return text
    return Number(int(match[1] + digits, _BASES[kind]))


def _sixty(text: str, part: type[int] | type[float]) -> float:
    """Add up a base-60 number: `22:22` is 1342."""
    sign = -1 if text.startswith("-") else 1
    total: float = part(0)
    for digits in text.lstrip("+-").replace("_", "").split(":"):
        total = total * 60 + part(digits)
    return sign * total


_RESOLVERS: Final = {"1.1": _resolve_11, "1.2": _resolve_12}
