# SPDX-License-Identifier: Apache-2.0
"""What the console writes to stderr: one line an event, JSON or, on a terminal, plain.

Invariants:

1. An event is a text of ours; a value is a short text, a number, true, false or nothing. Anything else is
   replaced by the name of its type.
2. An exception is its type and the line of ours that it passed: never its text (a driver's holds parameters),
   never a traceback, never a local variable.
3. Other libraries' lines are seen from WARNING on, as their logger's name and place; the HTTP server's from ERROR on,
   or whoever sends garbage would write the log.
4. Writing a line never fails.

Who asks is logged by address, as it is: whoever runs a console has to find the machine that attacks it. The address
of a page is logged as its route (`/devices/{device}`): no query, no id, no login link is ever in a line.
"""

import logging
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import msgspec
import structlog

from halod import logline
from halod.logline import Log
from halod.status import clean

Event = logline.Event

TEXT_LIMIT: Final = 300
MOST_FIELDS: Final = 40
_FOREIGN: Final = {
    **dict.fromkeys(("uvicorn", "uvicorn.error", "uvicorn.access"), logging.ERROR),
    **dict.fromkeys(("alembic", "sqlalchemy", "httpx", "httpcore"), logging.WARNING),
}
_encode = msgspec.json.Encoder().encode


def get(part: str) -> Log:
    """Give the logger of a part of the console. Every program calls `configure` before its first line."""
    log: Log = structlog.wrap_logger(None, wrapper_class=Log, part=part)
    return log


def configure(
    level: str = "info",
    form: str = "auto",
    *,
    stream: TextIO | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Set up logging of this process, once, before the first line.

    Args:
        level: the least level that is written: debug, info, warning, error.
        form: plain, json, or auto: `plain` on a terminal that is not a journal, else `json`.
        stream: where lines go; None: stderr.
        now: the clock of the lines.
    """
    target = sys.stderr if stream is None else stream
    plain = form == "plain" or (form == "auto" and logline.on_terminal(target, os.environ))
    logline.state.level = logline.LEVELS[level]
    structlog.configure(
        processors=[_stamp(now), logline.exceptions, _values, _plain if plain else _json],
        wrapper_class=Log,
        logger_factory=lambda *_: logline.Sink(target),
        context_class=dict,
        cache_logger_on_first_use=False,
    )
    logline.silence(_FOREIGN)


def _stamp(now: Callable[[], datetime]) -> Callable[[Any, str, Event], Event]:
    def stamp(_logger: Any, level: str, event: Event) -> Event:  # noqa: ANN401 - structlog's signature
        event["level"] = level
        event["time"] = now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        return event

    return stamp


def _values(_logger: Any, _level: str, event: Event) -> Event:  # noqa: ANN401 - structlog's signature
    return {key[:40]: _value(value) for key, value in list(event.items())[:MOST_FIELDS]}


def _value(value: object) -> str | float | None:
    kind = type(value)
    if value is None or kind in (int, float, bool):
        return value  # type: ignore[return-value]  # the exact types were tested
    return clean(str(value), TEXT_LIMIT) if kind is str else f"<{kind.__name__[:40]}>"


def _json(_logger: Any, _level: str, event: Event) -> str:  # noqa: ANN401 - structlog's signature
    head = {key: event.pop(key) for key in ("time", "level", "part", "event") if key in event}
    return _encode({**head, **event}).decode()


def _plain(_logger: Any, _level: str, event: Event) -> str:  # noqa: ANN401 - structlog's signature
    time, level, part, said = (event.pop(key, "") for key in ("time", "level", "part", "event"))
    rest = " ".join(f"{key}={_quoted(value)}" for key, value in event.items())
    return f"{str(time)[11:19]} {level:7} {part}: {said} {rest}".rstrip()


def _quoted(value: object) -> str:
    text = _encode(value).decode() if isinstance(value, (bool, type(None))) else str(value)
    return _encode(text).decode() if not text or any(c in text for c in ' "=') else text
