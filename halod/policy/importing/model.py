# SPDX-License-Identifier: Apache-2.0
"""A server.json as checked data: what an import can see of a server, its packages and its endpoints.

All text is that of a stranger: it is bounded, and whoever shows it escapes it. What a variable or a header is set
to is not kept, as it may be a secret; of an argument marked as one only its name is.
"""

from typing import Literal

import msgspec

from halod.errors import UsageError

Status = Literal["", "active", "deprecated", "deleted"]


class ImportRefused(UsageError):
    """A document, or a part of it, that is not turned into an entry. `rows` list what there is to choose from."""

    code = "import"

    def __init__(self, message: str, *, advice: str = "", rows: tuple[str, ...] = ()) -> None:
        super().__init__(message, advice=advice)
        self.rows = rows


class Variable(msgspec.Struct, frozen=True):
    """An environment variable or a header: `fixed` tells that the document gives it a value, never which."""

    name: str
    required: bool = False
    secret: bool = False
    fixed: bool = False


class Argument(msgspec.Struct, frozen=True):
    """The words of one argument as a client would write them; `secret` when its value is not shown."""

    words: tuple[str, ...]
    secret: bool = False


class Candidate(msgspec.Struct, frozen=True):
    """One of `packages`, counted from 1. With a `fault` it is listed and never pinned."""

    number: int
    type: str = ""
    identifier: str = ""
    version: str = ""
    base: str = ""
    sha256: str = ""
    hint: str = ""
    runtime: tuple[Argument, ...] = ()
    arguments: tuple[Argument, ...] = ()
    environment: tuple[Variable, ...] = ()
    fault: str = ""


class Remote(msgspec.Struct, frozen=True):
    """One of `remotes`, counted from 1. With a `fault` it is listed and never pinned."""

    number: int
    type: str = ""
    url: str = ""
    headers: tuple[Variable, ...] = ()
    fault: str = ""


class Server(msgspec.Struct, frozen=True):
    """One version of a server. `status` is the registry's word, "" when nothing told it.

    `schema` is the date of the shape ("" when the document does not say); `published` is as the registry wrote it.
    """

    name: str
    version: str
    schema: str = ""
    packages: tuple[Candidate, ...] = ()
    remotes: tuple[Remote, ...] = ()
    status: Status = ""
    status_message: str = ""
    published: str = ""
    notes: tuple[str, ...] = ()


class Wanted(msgspec.Struct, frozen=True):
    """The server that was asked for: exactly this name, and this version unless it is "" (the latest)."""

    name: str
    version: str = ""
