# SPDX-License-Identifier: Apache-2.0
"""The reader of what devices send: whatever the bytes are, it gives a clean report or one of two refusals."""

import itertools
import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.console.ingest import wire
from halod.console.ingest.apply import take
from halod.status import clean, encode, is_host, is_name
from tests.console.support_ingest import DEVICE, NOW, document, happened, rows
from tests.support.state import finding, status

CANARY = "CANARYwire"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
HOSTILE = st.text(
    st.characters(codec="utf-8") | st.sampled_from("\u202e\u200b\x00\x1b\n\t\ufeff<>'\"=+@"), max_size=200
)
FULL = document(
    finding("notes", host="mcp.acme.example", transport="http"),
    transitions=[happened("t1", "changed", was="1" * 64)],
    units=("a",),
)
FULL["skipped"] = [
    {"user": "dev", "harness": "cursor", "file": "~/f", "reason": "symlink", "errno": "ELOOP", "line": 3}
]
FULL["mcpApproved"] = [{"harness": "codex", "id": "wiki", "user": "dev", "count": 1}]


def places(value, path=()):
    """Give the path of everything in a document."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from places(below, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return {**value, key: replaced(value[key], rest, new)}
    return [replaced(one, rest, new) if at == key else one for at, one in enumerate(value)]


PLACES = [path for path in places(FULL) if path]


def texts(value):
    import msgspec

    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from texts(one)


def check_silent(refused):
    assert refused.args == ()
    assert refused.__context__ is None or refused.__suppress_context__


def check_clean(made):
    for one in texts(made):
        assert one == clean(one, 1024), one
        one.encode()
    for row in (*made.findings, *(one.finding for one in made.transitions)):
        assert is_name(row.server)
        assert is_host(row.host)
        assert row.sha256 == "" or len(row.sha256) == 64
        assert row.kind
    assert len(made.units) <= wire.MOST_UNITS
    assert 0 <= made.drift_total < 2**31


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PLACES), JSON | HOSTILE)
def test_anything_anywhere(path, new):
    """One place of a good document replaced by anything: a clean report, or one of two refusals without its text."""
    body = json.dumps(replaced(FULL, path, new)).encode()
    try:
        read = wire.read(body)
    except (wire.Malformed, wire.NotAStatus) as refused:
        check_silent(refused)
        return
    made = wire.report(read, DEVICE)
    check_clean(made)
    assert made == wire.report(wire.read(body), DEVICE)


@settings(max_examples=100, deadline=None)
@given(
    st.binary(max_size=60)
    | st.text(string.printable, max_size=60).map(str.encode)
    | JSON.map(json.dumps).map(str.encode)
)
def test_any_bytes(body):
    """Neither a crash nor a status."""
    with pytest.raises((wire.Malformed, wire.NotAStatus)):
        wire.read(body)
    with pytest.raises((wire.Malformed, wire.NotAStatus)):
        wire.read_enrolment(body)


def test_content_is_what_does_not_change_by_itself():
    """Time, duration and transitions are not in it, nor fields that are not known; everything else is."""
    first = wire.read(json.dumps(FULL).encode()).content
    same = json.loads(json.dumps(FULL))
    same |= {"time": "2027-01-01T00:00:00Z", "transitions": [], "later": 1}
    same["coverage"]["durationMs"] = 99
    assert wire.read(json.dumps(same, indent=1).encode()).content == first
    for path in PLACES:
        if path[0] in ("time", "transitions", "schemaVersion") or path[-1] == "durationMs":
            continue
        value = FULL
        for key in path:
            value = value[key]
        if isinstance(value, str):
            other = value + "x"
        elif isinstance(value, bool):
            other = not value
        elif isinstance(value, int):
            other = value + 1
        else:
            continue
        assert wire.read(json.dumps(replaced(FULL, path, other)).encode()).content != first, path


def test_what_an_agent_sends_is_read_whole():
    """Nothing of a report of today is lost or changed."""
    made = wire.report(wire.read(json.dumps(FULL).encode()), DEVICE)
    (row,) = made.findings
    assert (row.server, row.host, row.sha256, row.detail, row.enabled) == (
        "notes",
        "mcp.acme.example",
        "0" * 64,
        "defined as a stdio command",
        True,
    )
    assert (made.transitions[0].tid, made.transitions[0].was) == ("t1", "1" * 64)
    assert (made.skipped[0].errno, made.skipped[0].line) == ("ELOOP", 3)
    assert (made.approved[0].entry, made.approved[0].count) == ("wiki", 1)
    assert (made.accounts, made.files, made.units) == (1, 1, ("a",))


def test_the_total_is_not_less_than_what_is_there():
    read = wire.read(json.dumps({**FULL, "mcpDriftTotal": 0}).encode())
    assert wire.report(read, DEVICE).drift_total == 1


def test_what_approves_the_same_is_added_up():
    """The key of a row is there once, whatever is sent."""
    rows = [{"harness": "codex", "id": "wiki", "user": "dev", "count": count} for count in (1, 2, 2**31 - 1)]
    made = wire.report(wire.read(json.dumps({**FULL, "mcpApproved": rows}).encode()), DEVICE)
    assert [one.count for one in made.approved] == [2**31 - 1]


def test_deep_documents_do_not_cost_the_process():
    """Nesting in what is not known, as deep as 64 KiB go."""
    for opening in (b"[", b'{"a":'):
        body = b'{"later": ' + opening * (60_000 // len(opening))
        with pytest.raises(wire.Malformed):
            wire.read(body)


def test_a_full_report_is_read_quickly_enough():
    """The largest report that an agent sends is taken (its speed is in the benchmark)."""
    rows = [finding(f"server-{n}", sha="1") for n in range(200)]
    body = encode(status(*rows))
    assert len(body) < wire.MOST_BYTES
    assert len(wire.report(wire.read(body), DEVICE).findings) == 200


def test_a_long_file_is_kept_apart_from_others_like_it():
    """PostgreSQL has no index row above 2,704 bytes: a file is cut to 640, and ends in the hash of all of it."""
    files = ["~/" + "\U0001f600" * 1000 + end for end in "ab"]
    made = wire.report(
        wire.read(json.dumps(changed({}, *({"file": file} for file in files))).encode()), DEVICE
    )
    one, other = (row.file for row in made.findings)
    assert one != other
    assert max(len(one.encode()), len(other.encode())) <= wire.FILE_BYTES
    assert one.startswith("~/\U0001f600")


def changed(fields, *rows):
    """A status with findings of these fields."""
    made = document(*(finding() for _ in rows), **fields)
    made["mcpDrift"] = [{**one, **row} for one, row in zip(made["mcpDrift"], rows, strict=True)]
    return made


def test_the_longest_identity_of_a_finding_is_taken_by_both_engines(store):
    """Every part at its limit, in characters of four bytes that do not compress."""
    letters = itertools.count(0x20000)

    def text(size):
        return "".join(chr(next(letters)) for _ in range(size))

    row = {name: text(128) for name in ("user", "harness", "server")}
    row |= {"file": "~/" + text(1000), "scope": text(64), "kind": text(64)}
    take(store, [{**changed({}, row), "device": "d" * 128, "ring": text(128), "units": [text(128)]}], now=NOW)
    assert [one["device"] for one in rows(store)] == ["d" * 128]
