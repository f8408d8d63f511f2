# SPDX-License-Identifier: Apache-2.0
"""One entry of a server table, by its dialect, to a definition (design 4).

Invariants:

1. Pure: no I/O, and nothing of an entry in an exception.
2. What is hashed is what is written: no variable is expanded, nothing is trimmed.
3. An entry with both halves gives the half that the harness takes; where that is not known, both.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from halod.definition import Definition, FileRef, Scope
from halod.harnesses.dialect import Dialect
from halod.harnesses.features import features
from halod.harnesses.model import Found
from halod.harnesses.shapes import INLINE, SHAPES


class Unusable(Exception):
    """The entry should define a server and does not: `malformed-entry`. Carries nothing."""


class Origin:
    """Where an entry stands: what all entries of one table share."""

    __slots__ = ("dialect", "file", "harness", "scope")

    def __init__(self, harness: str, file: FileRef, scope: Scope, dialect: Dialect) -> None:
        self.harness = harness
        self.file = file
        self.scope: Scope = scope
        self.dialect = dialect


_JSON_NUMBER: Final = (int, float)
_ABSENT: Final[tuple[object, ...]] = (None, "")
_PAIR: Final = 2
_LINE: Final = 16 << 10  # characters; the time of shlex is the square of a word's length
_GIVEN_TWICE: Final = frozenset({"command", "url", "args", "env", "cwd"})


def read_entry(name: str, entry: object, origin: Origin) -> Found | None:
    """Read one entry.

    Returns None for what the harness does not treat as a server of the user's: built-ins, settings of an
    extension, bare switches. Raises Unusable for an entry that should define a server and does not.
    """
    if not isinstance(entry, dict):
        raise Unusable
    dialect = origin.dialect
    if dialect.folded:
        entry = _folded(entry, dialect)
    if entry and dialect.toggles.issuperset(entry):
        return None
    shaped = SHAPES[dialect.shape](entry)
    if shaped is None:
        return None
    if shaped is not entry and dialect.shape == "cline" and _GIVEN_TWICE.intersection(entry):
        raise Unusable  # a server beside its own `transport`: which of them counts is not known
    made = []
    for half in _halves(shaped, dialect):
        if half == "stdio":
            made.append(_stdio(name, shaped, origin))
        else:
            made += [_http(name, shaped, origin, url) for url in _urls(shaped, dialect)]
    if len(made) > _PAIR:
        raise Unusable
    return Found(made[0], made[1] if len(made) > 1 else None)


def _folded(entry: Mapping[str, object], dialect: Dialect) -> dict[str, object]:
    """Spell the keys as the dialect does. Of two spellings of one key Go takes the last, or merges maps."""
    names = (*dialect.command, dialect.args, *dialect.env, *dialect.urls, *dialect.types, dialect.disabled)
    known = {name.casefold(): name for name in names}
    folded: dict[str, object] = {}
    for key, value in entry.items():
        name = known.get(key.casefold(), key)
        before = folded.get(name)
        if name not in folded:
            folded[name] = value
        elif isinstance(before, dict) and isinstance(value, dict):
            folded[name] = {**before, **value}
        elif before != value:
            raise Unusable  # which is the last depends on how the files are merged
    return folded


def _pick(entry: Mapping[str, object], keys: Sequence[str], dialect: Dialect) -> object:
    """Give the value of the first key that has one; None for none."""
    for key in keys:
        value = entry.get(key)
        if _given(value) or (dialect.nullish and value is not None):
            return value if _given(value) else None
    return None


def _urls(entry: Mapping[str, object], dialect: Dialect) -> Sequence[object]:
    """Give the URL that the harness takes; all of them where the order of the keys is not known."""
    if dialect.ordered or dialect.nullish:
        return (_pick(entry, dialect.urls, dialect),)
    found: list[object] = []
    for key in dialect.urls:
        value = entry.get(key)
        if _given(value) and value not in found:
            found.append(value)
    return found


def _halves(entry: Mapping[str, object], dialect: Dialect) -> Sequence[str]:
    """Say which half of the entry is the definition; the command first where both are judged."""
    kind = _kind(entry, dialect)
    command = _pick(entry, dialect.command, dialect) is not None
    url = _pick(entry, dialect.urls, dialect) is not None
    if command and url:
        return _both(kind, dialect)
    if not (command or url):
        raise Unusable
    half = "stdio" if command else "http"
    if dialect.typed and kind not in ("", half):
        raise Unusable
    return (half,)


def _both(kind: str, dialect: Dialect) -> Sequence[str]:
    match dialect.both:
        case "url":
            return ("http",)
        case "command":
            return ("stdio",)
        case "type-else-command":
            return (kind or "stdio",)
        case "type-stdio-else-url":
            return ("stdio",) if kind == "stdio" else ("http",)
        case "worse":
            return ("stdio", "http")


def _kind(entry: Mapping[str, object], dialect: Dialect) -> str:
    """Give what the entry's type says: stdio, http, or "" for none and for a word that is not known."""
    for key in dialect.types:
        word = entry.get(key)
        if not isinstance(word, str):
            continue
        if word in dialect.stdio_words:
            return "stdio"
        if word in dialect.http_words:
            return "http"
    return ""


def _enabled(entry: Mapping[str, object], dialect: Dialect) -> bool:
    """Say what the entry's own switch says, as far as the harness honours it.

    Only `true` and `false` themselves switch: another value is no reason to call a server off.
    """
    if dialect.disabled and entry.get(dialect.disabled) is True:
        return False
    return not (dialect.enabled and entry.get(dialect.enabled) is False)


def _given(value: object) -> bool:
    return value not in _ABSENT and value != []


def _stdio(name: str, entry: Mapping[str, object], origin: Origin) -> Definition:
    dialect = origin.dialect
    value = _pick(entry, dialect.command, dialect)
    if isinstance(value, list) and dialect.array:
        command, *args = _words(value)
        if dialect.appended:
            args += _args(entry.get(dialect.args), split=dialect.split)
    elif type(value) is str:
        command, args = _word(value), _args(entry.get(dialect.args), split=dialect.split)
    else:
        raise Unusable
    found = features(entry, substitutes=dialect.substitutes)
    return Definition(
        harness=origin.harness,
        file=origin.file,
        name=name,
        scope=origin.scope,
        transport="stdio",
        command=command,
        args=args,
        env=_environment(entry, dialect),
        cwd=_first_text(entry, dialect.cwd),
        features=found | {"inline-code"} if entry.get(INLINE) else found,
        enabled=_enabled(entry, dialect),
    )


def _http(name: str, entry: Mapping[str, object], origin: Origin, url: object) -> Definition:
    """Make the remote half; a command, its environment and its directory have no part in it."""
    if type(url) is not str or "\0" in url:
        raise Unusable
    return Definition(
        harness=origin.harness,
        file=origin.file,
        name=name,
        scope=origin.scope,
        transport="http",
        url=url,
        features=features(entry, substitutes=origin.dialect.substitutes),
        enabled=_enabled(entry, origin.dialect),
    )


def _args(value: object, *, split: bool) -> list[str]:
    if value is None:
        return []
    if split and type(value) is str:
        return _split(value)
    if not isinstance(value, list):
        raise Unusable
    return _words(value)


def _split(value: str) -> list[str]:
    """Split the older form of Hermes' arguments, one quoted string (harnesses.md 30)."""
    if len(value) > _LINE:
        raise Unusable
    try:
        return [_word(word) for word in shlex.split(value)]
    except ValueError:
        raise Unusable from None


def _words(values: Sequence[object]) -> list[str]:
    return [_word(value) for value in values]


def _word(value: object) -> str:
    """Give one word of a command line: a string as written, a number or boolean as its JSON text.

    `null` is the word null, as in the harnesses that start such an entry (harnesses.md, "Checked").
    """
    text = _scalar(value)
    if text is None or "\0" in text:
        raise Unusable
    return text


def _scalar(value: object) -> str | None:
    if isinstance(value, str):
        return str(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, _JSON_NUMBER) else None


def _environment(entry: Mapping[str, object], dialect: Dialect) -> list[tuple[str, str]]:
    """Give the environment as pairs of text, in order. An odd value does not spoil the entry (case 21).

    A variable whose value the file does not hold (`env_vars` of Codex, `env_keys` of Goose) has a reference
    to itself as value, so that no rule can take it for a harmless one.
    """
    pairs: list[tuple[str, str]] = []
    for key in dialect.env:
        value = entry.get(key)
        if isinstance(value, dict):
            pairs += [(str(name), _odd(setting)) for name, setting in value.items()]
        elif isinstance(value, list):
            pairs += [_assignment(item) for item in value if isinstance(item, str)]
    for key in dialect.env_names:
        value = entry.get(key)
        if isinstance(value, list):
            pairs += [(name, "${" + name + "}") for name in map(_name, value) if name]
    return pairs


def _odd(value: object) -> str:
    text = _scalar(value)
    if text is None:
        return "[]" if isinstance(value, list) else "{}"
    return text


def _assignment(item: str) -> tuple[str, str]:
    name, sign, value = item.partition("=")
    return (name, value) if sign else (name, "${" + name + "}")


def _name(item: object) -> str:
    """Give the variable's name from `"NAME"` or `{name = "NAME", source = ...}`."""
    if isinstance(item, dict):
        item = item.get("name")
    return item if isinstance(item, str) else ""


def _first_text(entry: Mapping[str, object], keys: Sequence[str]) -> str:
    for key in keys:
        value = entry.get(key)
        if isinstance(value, str) and value:
            return str(value)
    return ""
