# SPDX-License-Identifier: Apache-2.0
"""What a log line holds, and that nothing of a definition can be in it."""

import io
import json
import logging
import os
import pty
import sys
import threading
import warnings
from datetime import UTC, datetime

import pytest
import structlog

from halod import logs
from halod.definition import Definition, FileRef
from halod.errors import EnvironmentFault
from halod.launch.model import Launch
from halod.status import Coverage, Finding, Skipped, Status, Transition

NOON = datetime(2026, 11, 30, 12, 0, 1, 250_000, UTC)
CANARY = "CANARY-in-a-secret"


@pytest.fixture(autouse=True)
def as_it_was():
    """Give the process its logging back."""
    root, quiet = logging.getLogger(), [logging.getLogger(name) for name in logs._QUIET]
    handlers, levels = list(root.handlers), [(item, item.level) for item in (root, *quiet)]
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    raises = logging.raiseExceptions
    yield
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    logging.raiseExceptions = raises
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    for item, level in levels:
        item.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def stream():
    """Log JSON into memory."""
    target = io.StringIO()
    logs.configure("debug", "json", stream=target, now=lambda: NOON)
    return target


def fail(error):
    raise error


def lines(stream) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def secret_definition() -> Definition:
    return Definition(
        harness="cursor",
        file=FileRef(0),
        name=CANARY,
        scope="user",
        transport="stdio",
        command=CANARY,
        args=[CANARY],
    )


def test_a_line_is_one_json_object_with_time_level_part_and_event_first(stream):
    logs.get("delivery").info("sent", status=204, ms=1.5, again=False, reason=None)
    assert stream.getvalue() == (
        '{"timestamp":"2026-11-30T12:00:01.250Z","level":"info","part":"delivery","event":"sent",'
        '"status":204,"ms":1.5,"again":false,"reason":null}\n'
    )


@pytest.mark.parametrize(("level", "seen"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_lines_below_the_level_are_not_written(level, seen):
    target = io.StringIO()
    logs.configure(level, "json", stream=target)
    log = logs.get("x")
    for say in (log.debug, log.info, log.warning, log.error):
        say("something")
    assert len(lines(target)) == seen


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (secret_definition(), "<Definition>"),
        (Launch(outcome="identified", bin=CANARY), "<Launch>"),
        (CANARY.encode(), "<bytes>"),
        (bytearray(CANARY.encode()), "<bytearray>"),
        ([CANARY], "<list>"),
        ({CANARY: CANARY}, "<dict>"),
        ((CANARY,), "<tuple>"),
        (ValueError(CANARY), "<ValueError>"),
        (type("Text", (str,), {})(CANARY), "<Text>"),
        (f"/home/dev/{CANARY}", "redacted"),
        (f"cannot open ~/{CANARY}", "redacted"),
        (f"https://mcp.acme.example/{CANARY}", "redacted"),
        (f"{CANARY}@acme.example", "redacted"),
        ("ghp_" + "A1b2" * 9, "redacted"),
        ("f" * 64, "redacted"),
        ("sha256:" + "f" * 64, "sha256:" + "f" * 64),
        ("sha256:" + "f" * 12, "sha256:" + "f" * 12),
        ("halos.acme.example:8443", "halos.acme.example:8443"),
        ("two\nlines\x1b[31m\u202e", "two lines[31m"),
        ("", ""),
        (float("inf"), None),
        (10**30, 10**30),
    ],
)
def test_a_value_is_plain_or_its_type_or_redacted(stream, value, shown):
    logs.get("x").info("event", value=value)
    (line,) = lines(stream)
    assert line["value"] == shown
    assert "CANARY" not in stream.getvalue()


def test_a_long_text_is_cut(stream):
    logs.get("x").info("event", value="word " * 1000)
    assert len(lines(stream)[0]["value"]) <= logs.TEXT_LIMIT


def test_keys_and_the_event_pass_the_same_rule(stream):
    logs.get("x").info(f"read /home/dev/{CANARY}", **{f"/home/{CANARY}": 1})
    logs.get("x").info(secret_definition())
    first, second = lines(stream)
    assert (first["event"], first["key"]) == ("redacted", 1)
    assert second["event"] == "<Definition>"
    assert "CANARY" not in stream.getvalue()


def test_a_number_of_fields_is_enough(stream):
    logs.get("x").info("event", **{f"k{number}": number for number in range(100)})
    assert len(lines(stream)[0]) <= logs.MOST_FIELDS


@pytest.mark.parametrize("form", ["json", "console"])
def test_an_exception_is_its_type_and_our_code(form):
    target = io.StringIO()
    logs.configure("info", form, stream=target, environment={})
    log = logs.get("x")
    local = CANARY
    for error in (ValueError(local), EnvironmentFault(local), OSError(2, local, local)):
        error.__context__ = KeyError(local)
        try:
            fail(error)
        except Exception:
            log.exception("failed")
        log.error("failed", exc_info=error)
    text = target.getvalue()
    assert "CANARY" not in text
    assert "Traceback" not in text
    for words in ("ValueError", "EnvironmentFault", "environment", "FileNotFoundError", "errno"):
        assert words in text


def test_an_exception_names_the_line_of_ours_that_it_passed(stream):
    try:
        logs.cycle_line(None, trigger="x", duration_ms=1)  # type: ignore[arg-type]
    except AttributeError:
        logs.get("x").exception("failed")
    (line,) = lines(stream)
    assert line["error"] == "AttributeError"
    assert line["at"].startswith("halod.logs:")


def test_without_an_exception_there_is_none_to_show(stream):
    logs.get("x").exception("nothing is handled")
    logs.get("x").info("no", exc_info=False, stack_info=CANARY)
    assert all("error" not in line for line in lines(stream))
    assert "CANARY" not in stream.getvalue()


def test_what_nobody_caught_is_logged_without_its_text(stream):
    logs.install_hooks()

    def fail():
        raise RuntimeError(CANARY)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    try:
        fail()
    except RuntimeError:
        sys.excepthook(*sys.exc_info())
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert [line["error"] for line in lines(stream)] == ["RuntimeError", "RuntimeError"]
    assert "CANARY" not in stream.getvalue()


@pytest.mark.parametrize("name", logs._QUIET)
def test_libraries_are_silent_below_warning_and_never_print_text(stream, name):
    logger = logging.getLogger(f"{name}.part")
    logger.debug("/home/dev/%s", CANARY)
    logger.info("/home/dev/%s", CANARY)
    assert lines(stream) == []
    logger.warning("/home/dev/%s", CANARY)
    try:
        fail(ValueError(CANARY))
    except ValueError:
        logger.exception("/home/dev/%s", CANARY)
    warned, failed = lines(stream)
    assert (warned["library"], warned["level"]) == (f"{name}.part", "warning")
    assert (failed["level"], failed["error"]) == ("error", "ValueError")
    assert warned["at"].startswith("test_logs:")
    assert warned.keys() == {"timestamp", "level", "part", "event", "library", "at"}
    assert failed.keys() == warned.keys() | {"error"}
    assert "CANARY" not in stream.getvalue()


def test_configuring_again_writes_each_line_once(stream):
    logs.configure("info", "json", stream=stream)
    logging.getLogger("httpx").warning("x")
    assert len(lines(stream)) == 1


def test_python_warnings_come_without_text(stream):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn(CANARY, stacklevel=1)
        logging.captureWarnings(capture=False)
    assert lines(stream)[0]["library"] == "py.warnings"
    assert "CANARY" not in stream.getvalue()


class Broken(io.StringIO):
    """A stream whose reader went away."""

    def write(self, _text):
        raise BrokenPipeError


def test_a_stream_that_is_gone_costs_nothing():
    logs.configure("info", "json", stream=Broken())
    logs.get("x").error("nobody hears this")
    closed = io.StringIO()
    closed.close()
    logs.configure("info", "json", stream=closed)
    assert logs.get("x").error("nor this") is None


def on_a_terminal(environment, form="auto"):
    """Log one line to a pseudo-terminal and give what arrives there."""
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal:
        variables = environment(os.fstat(follower)) if callable(environment) else environment
        logs.configure("info", form, stream=terminal, environment=variables, now=lambda: NOON)
        logs.get("cycle").info("scanned", files=3, name="two words")
        got = os.read(leader, 10_000).decode()
    os.close(leader)
    return got


def test_on_a_terminal_a_person_reads_it():
    got = on_a_terminal({"NO_COLOR": "1"})
    assert got.startswith("12:00:01 [info] scanned")
    assert "files=3" in got
    assert "two words" in got
    assert "\x1b" not in got
    assert "\x1b[" in on_a_terminal({"TERM": "xterm"})


def test_a_journal_gets_json_even_where_it_is_a_terminal():
    got = on_a_terminal(lambda status: {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
    assert json.loads(got)["event"] == "scanned"
    assert on_a_terminal({"JOURNAL_STREAM": "1:2", "NO_COLOR": "1"}).startswith("12:00:01")
    assert json.loads(on_a_terminal({}, "json"))["files"] == 3


def test_a_pipe_gets_json(tmp_path):
    with (tmp_path / "log").open("w+") as file:
        logs.configure("info", "auto", stream=file, environment={})
        logs.get("x").info("event")
        file.seek(0)
        assert json.loads(file.read())["event"] == "event"


def test_stderr_is_where_lines_go(capsys):
    logs.configure("info", "json")
    logs.get("x").info("event")
    captured = capsys.readouterr()
    assert json.loads(captured.err)["event"] == "event"
    assert captured.out == ""


def finding(kind) -> Finding:
    return Finding(
        harness="cursor",
        file=f"~/.cursor/{CANARY}",
        server=CANARY,
        kind=kind,
        transport="stdio",
        definition_sha256="0" * 64,
        user="dev",
        scope="user",
        enabled=True,
    )


def status(**fields) -> Status:
    base = {
        "time": "2026-11-30T12:00:00Z",
        "device": "",
        "hostname": "h",
        "os": "linux",
        "halod": "0",
        "user": "dev",
        "ring": "",
        "units": (),
        "digest": "",
        "mode": "allowlist",
        "mcp_drift": (),
        "mcp_approved": (),
        "skipped": (),
        "coverage": Coverage(accounts=1, files=7, definitions=12, duration_ms=8),
        "mcp_drift_total": 0,
    }
    return Status(**{**base, **fields})


def test_a_cycle_is_one_line_of_counts(stream):
    rows = (finding("denied"), finding("unapproved"), finding("unapproved"))
    moved = tuple(
        Transition(id=str(n), time="t", event=event, finding=rows[0])
        for n, event in enumerate(("opened", "resolved"))
    )
    logs.get("cycle").info(
        "cycle",
        **logs.cycle_line(
            status(mcp_drift=rows, mcp_drift_total=3, transitions=moved), trigger="timer", duration_ms=93
        ),
    )
    (line,) = lines(stream)
    assert line == {
        "timestamp": "2026-11-30T12:00:01.250Z",
        "level": "info",
        "part": "cycle",
        "event": "cycle",
        "outcome": "complete",
        "trigger": "timer",
        "mode": "allowlist",
        "accounts": 1,
        "files": 7,
        "definitions": 12,
        "findings": 3,
        "denied": 1,
        "unapproved": 2,
        "version_drift": 0,
        "skipped": 0,
        "opened": 1,
        "changed": 0,
        "resolved": 1,
        "scan_ms": 8,
        "duration_ms": 93,
    }
    assert "CANARY" not in stream.getvalue()


def test_the_outcome_of_a_cycle_is_told():
    missing = status(skipped=(Skipped(user="dev", reason="no-account"),))
    assert logs.cycle_line(missing, trigger="timer", duration_ms=1)["outcome"] == "incomplete"
    failed = logs.cycle_line(status(error_code="policy"), trigger="timer", duration_ms=1)
    assert (failed["outcome"], failed["code"]) == ("failed", "policy")
