# SPDX-License-Identifier: Apache-2.0
"""The rare lines of the supervisor, in a closed vocabulary: it loads no log library and has nothing to tell
but events of processes. The form is that of `halod.logs`: JSON, or a plain line for a person on a terminal.
"""

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Literal

import msgspec

Event = Literal[
    "agent-died",
    "agent-broken",
    "agent-stuck",
    "reload-refused",
    "watcher-lost",
    "fork-failed",
]

EVENTS: Final[Mapping[Event, tuple[str, str]]] = {
    "agent-died": ("error", "the agent ended unasked; the service ends"),
    "agent-broken": ("error", "the agent asked for what it may not; the service ends"),
    "agent-stuck": ("warning", "the agent did not end in time and was killed"),
    "reload-refused": ("error", "the new settings cannot be used; the service goes on with the old ones"),
    "watcher-lost": ("warning", "a watcher ended unasked; it is started again, the timer goes on meanwhile"),
    "fork-failed": ("error", "a process could not be started"),
}


def say(event: Event, **numbers: int) -> None:
    """Write one line to stderr. Never raises; `numbers` are ids, signals and exit codes."""
    level, words = EVENTS[event]
    with suppress(OSError, ValueError):
        os.write(2, line(level, event, words, numbers, terminal=os.isatty(2)))


def line(level: str, event: str, words: str, numbers: Mapping[str, int], *, terminal: bool) -> bytes:
    """Give the line, with its end."""
    if terminal:
        tail = "".join(f" {key}={value}" for key, value in numbers.items())
        return f"halod: {level}: {words}{tail}\n".encode()
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
    values = {"timestamp": stamp, "level": level, "part": "supervisor", "event": words, "code": event}
    return msgspec.json.encode({**values, **numbers}) + b"\n"


def fault(message: str, advice: str = "") -> None:
    """Write why the service cannot start: a message of ours (`halod.errors`), as every command does."""
    from halod.status import clean

    with suppress(OSError, ValueError):
        sys.stderr.write(f"halod: error: {clean(f'{message}; {advice}' if advice else message)}\n")
        sys.stderr.flush()
