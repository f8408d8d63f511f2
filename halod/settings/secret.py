# SPDX-License-Identifier: Apache-2.0
"""The one line of a token's or key's file. What it holds is never in a message."""

import os
import stat
from typing import Final

import msgspec

LONGEST: Final = 4096
"""Characters: a bearer token is a few hundred, and servers cap headers at 8 KiB."""


class Secret(msgspec.Struct, frozen=True):
    """A file that was read. `text` is "" when it holds no token; `mode` as in stat(2)."""

    text: str
    mode: int

    def __repr__(self) -> str:
        """Give the type's name only."""
        return "<Secret>"


def is_token(text: str) -> bool:
    """Tell whether `text` can be a bearer token (RFC 6750 section 2.1): visible ASCII, LONGEST characters at most."""
    return 0 < len(text) <= LONGEST and text.isascii() and text.isprintable() and " " not in text


def read(path: str) -> Secret:
    """Read a file without the line end that editors add. What is no regular file is not read. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        mode = os.fstat(descriptor).st_mode
        data = os.read(descriptor, LONGEST + 3) if stat.S_ISREG(mode) else b""
    finally:
        os.close(descriptor)
    text = data.decode("latin-1").rstrip("\r\n")
    return Secret(text if is_token(text) else "", mode)
