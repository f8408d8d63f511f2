# SPDX-License-Identifier: Apache-2.0
"""Lines of the console's log: what may be in them."""

import io
import json
import logging
import warnings

import pytest

from halod.console import logs


@pytest.fixture
def said():
    stream = io.StringIO()
    logs.configure("debug", "json", stream=stream)
    yield stream
    logs.configure()
    logging.captureWarnings(capture=False)


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line(said):
    logs.get("gate").info("request", status=200, ok=True, none=None, text="a\x1b[31m\u202e\nb")
    (line,) = lines(said)
    assert line["time"].endswith("Z")
    assert (line["level"], line["part"], line["event"]) == ("info", "gate", "request")
    assert (line["status"], line["ok"], line["none"]) == (200, True, None)
    assert not set("\x1b\u202e\n") & set(line["text"])


def test_only_plain_values_are_shown(said):
    class Sneaky(str):
        __slots__ = ()

    logs.get("x").info(
        "e", a={"CANARY": 1}, b=b"CANARY", c=["CANARY"], d=Sneaky("CANARY"), e=object(), f="x" * 5000
    )
    (line,) = lines(said)
    assert "CANARY" not in json.dumps(line)
    assert (line["a"], line["b"], line["c"], line["d"]) == ("<dict>", "<bytes>", "<list>", "<Sneaky>")
    assert len(line["f"]) <= logs.TEXT_LIMIT


def test_an_exception_is_its_type_and_place(said):
    try:
        int("CANARY")
    except ValueError:
        logs.get("x").exception("it failed")
    try:
        raise FileNotFoundError(2, "CANARY", "/CANARY")
    except OSError as error:
        logs.get("x").warning("it failed", exc_info=error)
    first, second = lines(said)
    assert "CANARY" not in said.getvalue()
    assert first["error"] == "ValueError"
    assert second["errno"] == 2


def test_other_libraries_are_quoted_by_name_only(said):
    logging.getLogger("uvicorn.error").warning("CANARY")
    logging.getLogger("uvicorn.error").error("CANARY %s", "CANARY")
    logging.getLogger("sqlalchemy.engine").error("CANARY")
    logging.getLogger("httpx").info("CANARY")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("CANARY", stacklevel=1)
    found = lines(said)
    assert "CANARY" not in said.getvalue()
    assert [line["library"] for line in found] == ["uvicorn.error", "sqlalchemy.engine", "py.warnings"]


def test_levels_and_forms():
    stream = io.StringIO()
    logs.configure("warning", "plain", stream=stream)
    try:
        logs.get("gate").info("no")
        logs.get("gate").warning("yes", route="/x", words="a b", empty="", ok=False)
    finally:
        logs.configure()
        logging.captureWarnings(capture=False)
    (line,) = stream.getvalue().splitlines()
    assert line[9:] == 'warning gate: yes route=/x words="a b" empty="" ok=false'


def test_a_log_that_is_gone_is_no_fault():
    stream = io.StringIO()
    logs.configure("info", "json", stream=stream)
    try:
        stream.close()
        logs.get("x").info("nobody hears")
    finally:
        logs.configure()
        logging.captureWarnings(capture=False)
