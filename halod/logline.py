# SPDX-License-Identifier: Apache-2.0
"""How a line is logged, by the agent (`logs`) and by the console (`console.logs`): what neither may do differently.

Invariants:

1. An exception is its type, our error code and the line of ours that it passed: never its text, never a traceback,
   never a local variable.
2. Other libraries' lines are their logger's name, level and place: their text may hold a path, a URL or a parameter.
3. Writing a line never fails.

What a value may be is for `logs` and `console.logs` to say: the agent's rule is the stricter one.
"""

import logging
import os
import sys
import threading
from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any, Final, TextIO

import structlog

from halod.errors import HalodError

Event = MutableMapping[str, Any]
LEVELS: Final[Mapping[str, int]] = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Log(structlog.BoundLoggerBase):
    """A logger: an event in words of ours, and keyword values. No `%` arguments, so nothing is formatted in."""

    def debug(self, event: str, **values: object) -> None:
        """Log what only helps to find a fault."""
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
        if LEVELS[level] >= state.level:
            self._proxy_to_logger(level, event, **values)


class _State:
    """What `configure` decided last."""

    level = LEVELS["info"]


state = _State()


class Sink:
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


def exceptions(_logger: Any, _level: str, event: Event) -> Event:  # noqa: ANN401 - structlog's signature
    """Replace an exception by its type, our code, and the last line of ours that it passed."""
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
    if isinstance(error, HalodError):
        event["code"] = error.code
    elif isinstance(error, OSError) and isinstance(error.errno, int):
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


def on_terminal(stream: TextIO, variables: MutableMapping[str, str]) -> bool:
    """Tell whether a person reads the stream: a terminal, and not the journal (systemd.exec(5))."""
    try:
        if not stream.isatty():
            return False
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return variables.get("JOURNAL_STREAM", "") != f"{status.st_dev}:{status.st_ino}"


class _Foreign(logging.Handler):
    """Turns a record of another library into a line without its text."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log name, level and place of a record."""
        level = "error" if record.levelno >= logging.ERROR else "warning"
        error = record.exc_info[0] if record.exc_info else None
        log: Log = structlog.wrap_logger(None, wrapper_class=Log, part="library")
        say = log.error if level == "error" else log.warning
        values = {} if error is None else {"error": error.__name__}
        say("a library logged", library=record.name, at=f"{record.module}:{record.lineno}", **values)


def silence(levels: Mapping[str, int]) -> None:
    """Route the standard library's logging here, from WARNING on; `levels` has those of single loggers."""
    root = logging.getLogger()
    for handler in [item for item in root.handlers if isinstance(item, _Foreign)]:
        root.removeHandler(handler)
    root.addHandler(_Foreign(logging.WARNING))
    root.setLevel(logging.WARNING)
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(level)
        logger.propagate = True
    logging.raiseExceptions = False
    logging.captureWarnings(capture=True)
