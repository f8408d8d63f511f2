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
import threading
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, TextIO

import msgspec
import structlog

from halod.status import clean

Event = MutableMapping[str, Any]

TEXT_LIMIT: Final = 300
MOST_FIELDS: Final = 40
_LEVELS: Final[Mapping[str, int]] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_encode = msgspec.json.Encoder().encode


class _State:
    level = _LEVELS["info"]


_state = _State()


class Log(structlog.BoundLoggerBase):
    """A logger: an event in words of ours, and keyword values. No `%` arguments, so nothing is formatted in."""

    def debug(self, event: str, **values: object) -> None:
        """Log what only helps to find a fault in the console."""
        self._say("debug", event, values)

    def info(self, event: str, **values: object) -> None:
        """Log what happens in the ordinary course."""
        self._say("info", event, values)

    def warning(self, event: str, **values: object) -> None:
        """Log what an administrator may have to look at."""
        self._say("warning", event, values)

    def error(self, event: str, **values: object) -> None:
        """Log what an administrator has to mend."""
        self._say("error", event, values)

    def exception(self, event: str, **values: object) -> None:
        """Log as an error, with the type and place of the exception that is being handled."""
        self._say("error", event, {"exc_info": True, **values})

    def _say(self, level: str, event: str, values: dict[str, object]) -> None:
        if _LEVELS[level] >= _state.level:
            self._proxy_to_logger(level, event, **values)


class _Sink:
    """Writes lines to a stream, and gives up silently when that fails."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Write one line."""
        try:
            with self._lock:
                self._stream.write(line + "\n")
                self._stream.flush()
        except (OSError, ValueError):
            return

    debug = info = warning = error = write


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
    plain = form == "plain" or (form == "auto" and _on_terminal(target))
    _state.level = _LEVELS[level]
    structlog.configure(
        processors=[_stamp(now), _exceptions, _values, _plain if plain else _json],
        wrapper_class=Log,
        logger_factory=lambda *_: _Sink(target),
        context_class=dict,
        cache_logger_on_first_use=False,
    )
    _silence()


def _stamp(now: Callable[[], datetime]) -> Callable[[Any, str, Event], Event]:
    def stamp(_logger: Any, level: str, event: Event) -> Event:  # noqa: ANN401 - structlog's signature
        event["level"] = level
        event["time"] = now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        return event

    return stamp


def _exceptions(_logger: Any, _level: str, event: Event) -> Event:  # noqa: ANN401 - structlog's signature
    given = event.pop("exc_info", None)
    if isinstance(given, BaseException):
        given = (type(given), given, given.__traceback__)
    elif given and not isinstance(given, tuple):
        given = sys.exc_info()
    event.pop("stack_info", None)
    if not given or given[0] is None:
        return event
    kind, error, trace = given
    event["error"] = kind.__name__
    if isinstance(error, OSError) and isinstance(error.errno, int):
        event["errno"] = error.errno
    place = _place(trace)
    if place:
        event["at"] = place
    return event


def _place(trace: TracebackType | None) -> str:
    """Give `module:line` of the innermost frame of ours."""
    place = ""
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if isinstance(module, str) and module.partition(".")[0] == "halod":
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


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


def _on_terminal(stream: TextIO) -> bool:
    """Tell whether a person reads the stream: a terminal, and not the journal (systemd.exec(5))."""
    try:
        if not stream.isatty():
            return False
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM", "") != f"{status.st_dev}:{status.st_ino}"


class _Foreign(logging.Handler):
    """Turns a record of another library into a line without its text."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log name, level and place of a record."""
        error = record.exc_info[0] if record.exc_info else None
        log = get("library")
        say = log.error if record.levelno >= logging.ERROR else log.warning
        values = {} if error is None else {"error": error.__name__}
        say("a library logged", library=record.name, at=f"{record.module}:{record.lineno}", **values)


def _silence() -> None:
    """Route the standard library's logging here, from WARNING on."""
    root = logging.getLogger()
    for handler in [item for item in root.handlers if isinstance(item, _Foreign)]:
        root.removeHandler(handler)
    root.addHandler(_Foreign(logging.WARNING))
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "alembic", "sqlalchemy", "httpx", "httpcore"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.ERROR if name.startswith("uvicorn") else logging.WARNING)
        logger.propagate = True
    logging.raiseExceptions = False
    logging.captureWarnings(capture=True)
