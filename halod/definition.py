# SPDX-License-Identifier: Apache-2.0
"""A server definition as a user wrote it, and its sha256.

Invariants:

1. A Definition holds secrets. It cannot be shown: `repr`, `str` and `format` give its type only, and
   pickling, copying or encoding it raises TypeError. What may leave is made from it in `drift` and `status`.
2. The hash is that of design.md section 4: the URL's bytes, or the command and each argument followed by NUL.
"""

import hashlib
from collections.abc import Sequence
from typing import Literal, NoReturn

import msgspec

Scope = Literal["user", "project", "plugin", "agent"]
Transport = Literal["stdio", "http"]
Feature = Literal["headers-helper", "env-file", "inline-code", "tls-off", "auth-endpoint", "sandbox-off"]


class FileRef(msgspec.Struct, frozen=True):
    """Where a definition stands: a location number and what its wildcards matched.

    `parts` holds one string per wildcard component of the location's path, in order; for `**` the string is
    the matched components joined by `/` (empty when it matched none).
    """

    location: int
    parts: tuple[str, ...] = ()


class Definition:
    """One server entry: a name and either a command with arguments (stdio) or a URL (http).

    `env` is every key and value of the entry's environment, in order, as text. `features` names what else in
    the entry can run code or redirect (design 4). Everything but `harness`, `file`, `scope`, `transport`,
    `features` and `enabled` is the user's text and must not leave the process.
    """

    __slots__ = (
        "args",
        "command",
        "cwd",
        "enabled",
        "env",
        "features",
        "file",
        "harness",
        "name",
        "scope",
        "transport",
        "url",
    )

    def __init__(
        self,
        *,
        harness: str,
        file: FileRef,
        name: str,
        scope: Scope,
        transport: Transport,
        command: str = "",
        args: Sequence[str] = (),
        url: str = "",
        env: Sequence[tuple[str, str]] = (),
        cwd: str = "",
        features: frozenset[Feature] = frozenset(),
        enabled: bool = True,
    ) -> None:
        self.harness = harness
        self.file = file
        self.name = name
        self.scope: Scope = scope
        self.transport: Transport = transport
        self.command = command
        self.args = tuple(args)
        self.url = url
        self.env = tuple(env)
        self.cwd = cwd
        self.features = features
        self.enabled = enabled

    @property
    def sha256(self) -> str:
        """The definition's hash: 64 lower-case hex digits."""
        if self.transport == "http":
            return url_sha256(self.url)
        return stdio_sha256(self.command, self.args)

    def __repr__(self) -> str:
        """Give the type's name only: a Definition in a log line must not tell anything."""
        return "<Definition>"

    def __format__(self, _spec: str) -> str:
        """Like `repr`: nothing of the content, whatever the format asks for."""
        return "<Definition>"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        """Refuse pickling and copying: a Definition stays in the process that read it."""
        raise TypeError("a Definition cannot be serialised")


def stdio_sha256(command: str, args: Sequence[str]) -> str:
    """Hash a command line: each word's UTF-8 bytes followed by one NUL (design 4), as 64 hex digits.

    Lone surrogates are encoded with `surrogatepass`. Readers refuse words that hold a NUL, so the encoding
    is unambiguous.
    """
    words = "\0".join((command, *args, ""))
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


def url_sha256(url: str) -> str:
    """Hash a URL's UTF-8 bytes as written (design 4), as 64 hex digits."""
    return hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()
