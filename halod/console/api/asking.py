# SPDX-License-Identifier: Apache-2.0
"""What a call may ask: the parameters of an address, how they are read, and how they are described. Pure.

A parameter that an address does not have is refused: a filter whose name is misspelt must not show everything.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from halod.console.problem import Problem
from halod.console.store.paging import DEFAULT_LIMIT, MOST, MOST_INTEGER, TEXT_LIMIT, checked, parse_limit

_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_NO_NUL: Final = "^[^\\u0000]*$"


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter of the query or the path. Without `choices` and `number` it is text."""

    name: str
    text: str
    """What it means."""
    choices: tuple[str, ...] = ()
    number: bool = False
    least: int = 0
    in_path: bool = False
    default: str = ""

    def schema(self) -> dict[str, Any]:
        """Describe it as JSON Schema."""
        if self.choices:
            found: dict[str, Any] = {"type": "string", "enum": list(self.choices)}
        elif self.number:
            most = MOST if self.name == "limit" else MOST_INTEGER
            found = {"type": "integer", "minimum": self.least, "maximum": most, "format": "int64"}
        else:
            least = {"minLength": 1} if self.in_path else {}
            found = {"type": "string", **least, "maxLength": TEXT_LIMIT, "pattern": _NO_NUL}
        if self.name == "cursor":
            found = {"type": "string", "pattern": "^[A-Za-z0-9_-]*$"}
        if self.default:
            found["default"] = int(self.default) if self.number else self.default
        return found

    def read(self, value: str) -> str | int:
        """Give the value. Raises Problem 400 when it is none of this parameter."""
        if self.choices:
            if value not in self.choices:
                raise Problem(400, f"{self.name} is one of {', '.join(self.choices)}")
            return value
        if self.name == "limit":
            return parse_limit(value)
        if self.number:
            number = int(value) if _NUMBER.fullmatch(value) else -1
            if not self.least <= number <= MOST_INTEGER:
                raise Problem(400, f"{self.name} is a whole number from {self.least}")
            return number
        if self.name != "cursor":
            checked(value)
        return value


CURSOR: Final = Parameter(name="cursor", text="`next` of the page before.")
LIMIT: Final = Parameter(
    name="limit", text="Most rows of the page.", number=True, least=1, default=str(DEFAULT_LIMIT)
)


class Asked(msgspec.Struct, frozen=True):
    """What a call asked, by the parameters of its address; what was not given has its default."""

    values: dict[str, str | int]

    def text(self, name: str) -> str:
        """Give a text; "" when it was not given."""
        return str(self.values[name])

    def number(self, name: str) -> int:
        """Give a number; 0 when it was not given and has no default."""
        return int(self.values[name] or 0)

    def pick(self, *names: str) -> dict[str, Any]:
        """Give these as keywords."""
        return {name: self.values[name] for name in names}

    def given(self) -> dict[str, str | int]:
        """Give what differs from nothing, for the audit log."""
        return {name: value for name, value in self.values.items() if value not in {"", 0}}


def read(parameters: Iterable[Parameter], query: Iterable[tuple[str, str]], path: Mapping[str, str]) -> Asked:
    """Read what was asked. Raises Problem 400: an unknown name, a name twice, a value that is none."""
    known = {one.name: one for one in parameters}
    values: dict[str, str | int] = {
        one.name: int(one.default or 0) if one.number else one.default for one in known.values()
    }
    seen = set()
    for name, value in query:
        one = known.get(name)
        if one is None or one.in_path:
            raise Problem(400, "the address has a parameter that is not known here")
        if name in seen:
            raise Problem(400, f"{name} is given twice")
        seen.add(name)
        values[name] = one.read(value)
    for name, value in path.items():
        values[name] = known[name].read(value)
    return Asked(values)
