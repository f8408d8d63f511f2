# SPDX-License-Identifier: Apache-2.0
"""What the parts of the token room hand to each other.

Invariant: no token, device code or text of a server is in a repr, a message or an exception chain.
"""

import re
import time
from collections.abc import Callable
from typing import Final

import msgspec

from halod.errors import UsageError

TOKEN_LIMIT: Final = 16 * 1024
"""Characters of a token: servers cap headers at 8 or 16 KiB."""
_BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


def is_bearer(text: str) -> bool:
    """Tell whether a text can be a bearer token (RFC 6750 section 2.1)."""
    return len(text) <= TOKEN_LIMIT and _BEARER.fullmatch(text) is not None


class TokenRefused(UsageError):
    """There is no token: the message says why, and holds none."""


class Unreachable(TokenRefused):
    """The authorization server did not answer as one now; it may later."""


class Clock(msgspec.Struct, frozen=True):
    """Wall time and steady time in seconds, and how to wait."""

    now: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep


class Asked(msgspec.Struct, frozen=True):
    """For what a token is wanted: of which server, for which client, scopes and resource."""

    issuer: str
    client_id: str
    scopes: tuple[str, ...]
    resource: str


class Tokens(msgspec.Struct, frozen=True):
    """What is kept. `expires_at` is wall time in seconds; `refresh_token` is "" when the server gave none."""

    issuer: str
    client_id: str
    scopes: tuple[str, ...]
    resource: str
    access_token: str
    refresh_token: str
    expires_at: float
    version: int = 1

    def __repr__(self) -> str:
        """Give the type's name only."""
        return "<Tokens>"

    __str__ = __repr__

    def are_for(self, asked: Asked) -> bool:
        """Tell whether these tokens are what is asked for: the file's name is a hash of it, scopes aside."""
        mine = (self.issuer, self.client_id, self.scopes, self.resource, self.version)
        return mine == (asked.issuer, asked.client_id, asked.scopes, asked.resource, 1)


class Endpoints(msgspec.Struct, frozen=True):
    """Where the authorization server is asked; `device` is "" when it has no device authorization."""

    token: str
    device: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What came back: a status and a bounded body, or `fault` in words of ours and nothing else."""

    status: int = 0
    body: bytes = b""
    fault: str = ""

    def __repr__(self) -> str:
        """Give the type's name only: the body may hold tokens."""
        return "<Answer>"

    __str__ = __repr__


Send = Callable[[str, dict[str, str] | None], Answer]
"""Asks a URL: GET without a form, POST with one."""

Tell = Callable[[str], None]
"""Shows a line to the person."""
