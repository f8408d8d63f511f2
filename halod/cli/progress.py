# SPDX-License-Identifier: Apache-2.0
"""How far a scan of many accounts is: one line on a terminal's standard error, gone when the scan ends.

Nothing is written elsewhere: a pipe or a log gets no progress, and standard output stays the document's alone.
"""

from typing import Final, Self, TextIO

_FROM: Final = 4
"""Accounts from which it is shown: fewer are over before a person has read the line."""


class Progress:
    """Counts accounts that are done. Use it as a context: however the scan ends, the line is taken away."""

    def __init__(self, stream: TextIO, total: int, *, dumb: bool) -> None:
        self._stream = stream if total >= _FROM and not dumb and stream.isatty() else None
        self._total = total
        self._done = 0

    def __enter__(self) -> Self:
        self._show()
        return self

    def __exit__(self, *_how: object) -> None:
        if self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def step(self) -> None:
        """Count one more account."""
        self._done += 1
        self._show()

    def _show(self) -> None:
        if self._stream is not None:
            self._stream.write(f"\r\x1b[Kscanned {self._done} of {self._total} accounts")
            self._stream.flush()
