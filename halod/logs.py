# SPDX-License-Identifier: Apache-2.0
"""What the agent writes to stderr: structlog, set up so that nothing of a definition can be in it.

Invariants:

1. A value is a short text, a number, true, false or nothing. Anything else is replaced by the name of its type,
   and text that looks like a path of a home, a URL, an address or a credential by "redacted" (design 8).
2. An exception is its type, our error code and the line of ours that it passed: never its text, never a
   traceback, never a local variable. Exceptions that nobody caught end up here too.
3. Other libraries' log lines are seen from WARNING on, as their logger's name, level and place: their text may
   hold a path or URL.
4. Writing a line never fails: a service whose log is gone goes on.

Only the agent imports this module; structlog would cost a scan more than the scan.
"""

import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Literal, TextIO

import msgspec
import structlog

from halod import logline
from halod.logline import Log
from halod.status import Status, clean, server_name

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "json", "console"]
Event = logline.Event

TEXT_LIMIT: Final = 300
"""Characters of a text: a line of the journal should fit a screen."""
MOST_FIELDS: Final = 40

_QUIET: Final = ("watchdog", "httpx", "httpcore", "hpack", "h2", "asyncio", "urllib3")
_DIGEST: Final = "sha256:"
_encode = msgspec.json.Encoder().encode


def get(name: str, **values: str | float) -> Log:
    """Give the logger of a part of the agent; `values` stand in each of its lines."""
    log: Log = structlog.get_logger(part=name, **values)
    return log


def configure(
    level: Level = "info",
    form: Format = "auto",
    *,
    stream: TextIO | None = None,
    environment: MutableMapping[str, str] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Set up logging of this process, once, before the first line.

    Args:
        level: the least level that is written.
        form: `auto` is `console` on a terminal that is not a journal, else `json`.
        stream: where lines go; None: stderr.
        environment: None: the process's own.
        now: the clock of the lines.
    """
    target = sys.stderr if stream is None else stream
    variables = os.environ if environment is None else environment
    console = form == "console" or (form == "auto" and logline.on_terminal(target, variables))
    logline.state.level = logline.LEVELS[level]
    structlog.configure(
        processors=[
            _stamp(now),
            logline.exceptions,
            _plain,
            _console(target, variables) if console else _json,
        ],
        wrapper_class=Log,
        logger_factory=lambda *_: logline.Sink(target),
        context_class=dict,
        cache_logger_on_first_use=False,
    )
    logline.silence(dict.fromkeys(_QUIET, logging.WARNING))


def install_hooks() -> None:
    """Log what nobody caught, in any thread, instead of printing a traceback. For the process of the agent."""
    log = get("halod")

    def fault(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        if not issubclass(kind, (KeyboardInterrupt, SystemExit)):
            log.error("a fault inside halod", exc_info=(kind, error, trace))

    sys.excepthook = fault
    threading.excepthook = lambda args: fault(args.exc_type, args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: fault(args.exc_type, args.exc_value, args.exc_traceback)


def cycle_line(status: Status, *, trigger: str, duration_ms: int) -> dict[str, str | int]:
    """Give the values of the one line that a cycle writes: counts, durations, outcome.

    `trigger` is a word of ours ("start", "timer", "change", "signal"); `duration_ms` is the whole cycle,
    `scan_ms` the scan in it. `outcome` is "failed" when there is no answer at all, "incomplete" when something
    could not be read, else "complete".

        log.info("cycle", **cycle_line(status, trigger="timer", duration_ms=93))
    """
    kinds = Counter(row.kind for row in status.mcp_drift)
    events = Counter(item.event for item in status.transitions or ())
    outcome = "failed" if status.error_code else "incomplete" if status.skipped else "complete"
    line: dict[str, str | int] = {
        "outcome": outcome,
        "trigger": trigger,
        "mode": status.mode,
        "accounts": status.coverage.accounts,
        "files": status.coverage.files,
        "definitions": status.coverage.definitions,
        "findings": status.mcp_drift_total,
        "denied": kinds["denied"],
        "unapproved": kinds["unapproved"],
        "version_drift": kinds["version-drift"],
        "skipped": len(status.skipped),
        "opened": events["opened"],
        "changed": events["changed"],
        "resolved": events["resolved"],
        "scan_ms": status.coverage.duration_ms,
        "duration_ms": duration_ms,
    }
    if status.error_code:
        line["code"] = status.error_code
    return line


# --- processors --------------------------------------------------------------------------------------------


def _stamp(now: Callable[[], datetime]) -> Callable[[Any, str, Event], Event]:
    def stamp(_logger: Any, level: str, event: Event) -> Event:  # noqa: ANN401 - structlog's signature
        event["level"] = level
        event["timestamp"] = now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        return event

    return stamp


def _plain(_logger: Any, _level: str, event: Event) -> Event:  # noqa: ANN401 - structlog's signature
    """Let pass what invariant 1 names."""
    return {_key(key): plain(value) for key, value in list(event.items())[:MOST_FIELDS]}


def _key(key: object) -> str:
    return key[:40] if type(key) is str and key.isidentifier() else "key"


def plain(value: object) -> str | float | None:
    """Give a value as it may be logged: itself, "redacted", or the name of its type in angle brackets."""
    kind = type(value)
    if value is None or kind in (int, float, bool):
        return value  # type: ignore[return-value]  # the exact types were tested; a subclass could be anything
    if kind is not str:
        return f"<{kind.__name__[:40]}>"
    text = clean(str(value), TEXT_LIMIT)
    if not text or _is_digest(text):
        return text
    return text if server_name(text).startswith(text[:64]) else "redacted"


def _is_digest(text: str) -> bool:
    """Tell whether a text is the digest of a policy, which tells nothing and looks like a credential."""
    digits = text.removeprefix(_DIGEST)
    return digits != text and len(digits) in (12, 64) and not digits.strip("0123456789abcdef")


def _json(_logger: Any, _level: str, event: Event) -> str:  # noqa: ANN401 - structlog's signature
    """Render a line of JSON: time, level and event first."""
    head = {key: event.pop(key) for key in ("timestamp", "level", "part", "event") if key in event}
    return _encode({**head, **event}).decode()


def _console(stream: TextIO, variables: MutableMapping[str, str]) -> Callable[[Any, str, Event], str]:
    """Give the renderer for people; with a formatter of exceptions of our own, rich is not asked."""
    from structlog.dev import ConsoleRenderer

    colors = stream.isatty() and not variables.get("NO_COLOR") and variables.get("TERM") != "dumb"
    renderer = ConsoleRenderer(
        colors=colors,
        pad_event_to=0,
        pad_level=False,
        sort_keys=False,
        exception_formatter=lambda _stream, _exc_info: None,
    )

    def render(logger: Any, level: str, event: Event) -> str:  # noqa: ANN401 - structlog's signature
        event["timestamp"] = str(event.get("timestamp", ""))[11:19]
        return str(renderer(logger, level, event))

    return render
