# SPDX-License-Identifier: Apache-2.0
"""Does a definition visibly carry a credential? (`secretInDefinition`, design 8)

A hint for the person, not a scanner: userinfo in a URL, an option or assignment whose name says so, a bearer
token, the known prefixes of well-known issuers, `key=` in a query. Environment and headers of the entry
are not looked at: they are not in the hash that is reported. Invariants:

1. A value that only refers to a secret (`${VAR}`, `{env:VAR}`, `%VAR%`, `<token>`) is none.
2. Time is linear in the text, and at most TEXT_LIMIT characters of one definition are looked at.
"""

import re
from typing import Final

from halod.definition import Definition
from halod.status import has_token_prefix

TEXT_LIMIT: Final = 512 * 1024
"""Characters of one definition that are looked at: no command line that starts is longer."""

# The last word of a name that holds a secret (`--github-token`, `clientSecret`).
_LAST: Final = frozenset({
    "authorization", "bearer", "connectionstring", "cookie", "credential", "credentials", "dsn", "jwt",
    "passphrase", "passwd", "password", "pat", "pwd", "secret", "token",
})  # fmt: skip
# These count glued to another word too: `AUTHTOKEN`.
_GLUED: Final = ("token", "secret", "password", "passwd", "apikey", "accesskey", "secretkey", "privatekey")
# Keys that are secrets; a sort key, a primary key or a public key is none.
_KEY_KINDS: Final = frozenset({
    "access", "account", "admin", "api", "app", "application", "auth", "client", "encryption", "license",
    "master", "private", "secret", "service", "shared", "signing", "storage", "subscription", "x",
})  # fmt: skip
# Words that make it a number, a switch or a place: `--max-token`, `--no-password`.
_HARMLESS: Final = frozenset({"max", "min", "num", "count", "no", "public"})
# A reference, not a value: nothing but variables and placeholders, perhaps after a scheme word.
_REFERENCE: Final = re.compile(
    r"(?:\$\{[^{}]{0,200}\}|\$\([^()]{0,200}\)|\$[A-Za-z_][A-Za-z0-9_]{0,80}|\{\{?[^{}]{0,200}\}\}?|%[A-Za-z0-9_]{1,80}%|<[^<>]{1,80}>)+"
)
_SCHEME_WORD: Final = re.compile(r"(?:bearer|basic|token|apikey)[ \t]+", re.IGNORECASE)
_BEARER: Final = re.compile(r"\b(?:bearer|basic)(?:[ \t]+|%20)([^\s\"',;]+)", re.IGNORECASE)
_USERINFO: Final = re.compile(r"://([^/?#\s@]*)@")
_QUERY: Final = re.compile(r"[?&;]([A-Za-z0-9_.-]{1,64})=([^&#;\s]+)")
_QUERY_NAMES: Final = frozenset({"sig", "signature", "code", "auth", "sas", "hash", "sv"})
_OPTION: Final = re.compile(r"--?([A-Za-z][A-Za-z0-9_.-]{1,80})(?:=(.*))?", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]{1,80})=(.+)", re.DOTALL)
_HEADER: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]{1,80})\s{0,8}:\s{0,8}(\S.*)", re.DOTALL)
_HEADER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,80}")
_HEADER_OPTIONS: Final = frozenset({"-H", "--header", "--headers"})
_SEPARATOR: Final = re.compile(r"[-_.]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# A switch's value, and the path of a file that holds the secret.
_NO_VALUES: Final = frozenset({"true", "false", "none", "null"})
_PATHS: Final = ("/", "./", "../", "~/", "file:")
# The shortest text that tells itself: `://x@` and `?sv=1` have five characters.
_SHORTEST: Final = 5
_KEY_MATERIAL: Final = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")


def secret_in_definition(definition: Definition) -> bool:
    """Tell whether the arguments or the URL of a definition visibly carry a credential."""
    if definition.transport == "http":
        return secret_in_url(definition.url)
    return secret_in_words((definition.command, *definition.args))


def secret_in_url(url: str) -> bool:
    """Tell whether a URL visibly carries a credential."""
    return _in_text(url[:TEXT_LIMIT])


def secret_in_words(line: tuple[str, ...]) -> bool:
    """Tell whether a command line, or its arguments alone, visibly carry a credential."""
    room = TEXT_LIMIT
    words = []
    for word in line:
        words.append(word[:room])
        room -= len(word)
        if room <= 0:
            break
    return any(map(_in_text, words)) or any(map(_in_word, words)) or _in_neighbours(words)


def secret_in_header(name: str, value: str) -> bool:
    """Tell whether a header visibly carries a credential: by its name, or by its value."""
    text = value[:TEXT_LIMIT]
    return (_is_secret_name(name) and _is_value(text)) or _in_text(text)


def _in_text(text: str) -> bool:
    """What tells itself wherever it stands. The plain tests in front keep most words from the patterns."""
    if len(text) < _SHORTEST:
        return False
    if has_token_prefix(text) or ("-----BEGIN" in text and _KEY_MATERIAL.search(text) is not None):
        return True
    if any(_is_value(match[1]) for match in _BEARER.finditer(text)):
        return True
    if "://" in text and any(_is_userinfo(match[1]) for match in _USERINFO.finditer(text)):
        return True
    return "=" in text and any(_is_secret_query(match[1], match[2]) for match in _QUERY.finditer(text))


def _is_userinfo(text: str) -> bool:
    name, colon, password = text.partition(":")
    if not colon and name == "git":  # ssh://git@host: the account of every git host, and no secret
        return False
    return _is_value(password if colon else name)


def _is_secret_query(name: str, value: str) -> bool:
    return _is_value(value) and (name.lower() in _QUERY_NAMES or _is_secret_name(name))


def _in_word(word: str) -> bool:
    """`--token=V`, `TOKEN=V`, `Name: V`: a name and its value in one word."""
    if "=" not in word and ":" not in word:
        return False
    for pattern in (_OPTION, _ASSIGNMENT, _HEADER):
        match = pattern.fullmatch(word)
        if match is not None and match[2] and _is_secret_name(match[1]) and _is_value(match[2]):
            return True
    return False


def _in_neighbours(words: list[str]) -> bool:
    """`--token V`, and `-H Name V`: a name and its value in two words."""
    for at in range(len(words) - 1):
        word, value = words[at], words[at + 1]
        option = _OPTION.fullmatch(word)
        named = option is not None and option[2] is None and _is_secret_name(option[1])
        if at and words[at - 1] in _HEADER_OPTIONS and _HEADER_NAME.fullmatch(word) is not None:
            named = _is_secret_name(word)
        if named and not value.startswith("-") and _is_value(value):
            return True
    return False


def _is_secret_name(name: str) -> bool:
    """Tell whether a name says that its value is a secret: by its last words, in any way of writing them."""
    parts = [part for part in _SEPARATOR.split(_CAMEL.sub("-", name).lower()) if part]
    if not parts or not _HARMLESS.isdisjoint(parts):
        return False
    last = parts[-1]
    if last == "key":
        return len(parts) == 1 or parts[-2] in _KEY_KINDS
    return last in _LAST or last.endswith(_GLUED) or "".join(parts[-2:]) in _LAST


def _is_value(text: str) -> bool:
    """Tell whether `text` is a value, not only a reference to one."""
    value = _SCHEME_WORD.sub("", text.strip().strip("\"'"), count=1)
    if not value or value.lower() in _NO_VALUES or value.startswith(_PATHS):
        return False
    return _REFERENCE.fullmatch(value) is None
