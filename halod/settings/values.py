# SPDX-License-Identifier: Apache-2.0
"""Values of settings with their origin, what the types say about a key, and the words of messages. Pure."""

import re
from collections.abc import Collection
from typing import Final

import msgspec

from halod.settings.locate import Path, line_of, locate
from halod.settings.model import Kind

LABEL_LIMIT: Final = 64


class Source:
    """One file of settings: its name in messages, and its text where positions can be told (TOML)."""

    def __init__(self, name: str, text: str | None = None) -> None:
        self.name = name
        self._text = text
        self._lines: dict[Path, int] | None = None

    def line(self, path: Path) -> int:
        """Give the line of a key; 0 when the file has no lines. The text is walked at the first fault."""
        if self._text is None:
            return 0
        if self._lines is None:
            self._lines = locate(self._text)
        return line_of(self._lines, path)


class Value(msgspec.Struct, frozen=True):
    """A value, the file that it is from, and where in it."""

    value: object
    source: Source
    path: Path

    def member(self, key: str | int, value: object) -> "Value":
        """Give a part of this value."""
        return Value(value, self.source, (*self.path, key))

    @property
    def name(self) -> str:
        """Give the key in the form `table.key`."""
        return ".".join(str(part) for part in self.path if isinstance(part, str))


class Described(msgspec.Struct, frozen=True):
    """What the types say about a key: how it is read, its words, its choices, and its default as shown."""

    kind: Kind
    words: str
    choices: tuple[str, ...] = ()
    default: str = ""


def described(table: type[msgspec.Struct]) -> dict[str, Described]:
    """Give what the type of a table says about each of its keys."""
    from typing import get_args, get_type_hints

    found: dict[str, Described] = {}
    for key, hint in get_type_hints(table, include_extras=True).items():
        if key.startswith("_") or key not in table.__struct_fields__:
            continue
        inner, meta = get_args(hint)[0], get_args(hint)[-1]
        extra = meta.extra or {"kind": "label", "default": ""}
        choices = tuple(get_args(inner)) if extra["kind"] == "choice" else ()
        found[key] = Described(extra["kind"], meta.description or "", choices, extra["default"])
    return found


_SECRET_KEYS: Final = re.compile(
    r"(?:.*_)?(?:token|secret|password|passphrase|enroll_key|api_key|private_key)"
)


def secret_advice(key: str) -> str:
    """Say where a secret belongs when a key's name says that its value is one."""
    if not _SECRET_KEYS.fullmatch(key.lower().replace("-", "_")):
        return ""
    name = "enroll_key_file" if "enroll" in key.lower() else "token_file"
    return (
        "no secret stands in the settings, which every account may read: put it in a file of root's,"
        f" mode 0600, and name that in report.{name}"
    )


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Give `; did you mean "x"?` when a known word is near, else nothing."""
    near = nearest(word, known)
    return f'; did you mean "{near}"?' if near else ""


def nearest(word: str, known: Collection[str]) -> str | None:
    """Find the known word that a slip of the pen may have meant; hyphens and case do not count."""
    from difflib import get_close_matches  # only settings with a fault pay for it

    folded = word[:LABEL_LIMIT].casefold().replace("-", "_")
    candidates = {candidate.casefold().replace("-", "_"): candidate for candidate in known}
    near = get_close_matches(folded, list(candidates), n=1, cutoff=0.65)
    return candidates[near[0]] if near else None


def shown(text: str) -> str:
    """Quote a key or name for a message: printable, at most 60 characters."""
    short = text if len(text) <= 60 else text[:59] + "…"
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in short) + '"'


def called(value: object) -> str:
    """Name the type of a value as TOML does."""
    if isinstance(value, bool):
        return "true or false"
    names: tuple[tuple[type, str], ...] = (
        (str, "text"),
        (int, "a number"),
        (float, "a number with a fraction"),
        (list, "a list"),
        (dict, "a table"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "a date or other value")
