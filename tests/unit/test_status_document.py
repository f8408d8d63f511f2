# SPDX-License-Identifier: Apache-2.0
"""The status document: its JSON, its order, its schema, and the cut of a report that is sent."""

import json
import random
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import pytest

from halod import status
from halod.status import Approved, Coverage, Finding, Skipped, Status, Transition

ROOT = Path(__file__).resolve().parents[2]


def finding(number=0, kind="unapproved", **fields):
    return Finding(
        **{
            "harness": "cursor",
            "file": "~/.cursor/mcp.json",
            "server": f"server-{number:05}",
            "kind": kind,
            "transport": "stdio",
            "definition_sha256": f"{number:064x}",
            "detail": "defined as a stdio command",
            "fix": "remove it",
            "user": "dev",
            "scope": "user",
            "enabled": True,
            **fields,
        }
    )


def document(drift=(), skipped=(), approved=(), **fields):
    return Status(
        **{
            "time": "2026-11-30T09:15:02Z",
            "device": "0" * 64,
            "hostname": "mbp-417",
            "os": "macos",
            "halod": "0.1.0",
            "user": "dev",
            "ring": "ring1-canary",
            "units": ("payments",),
            "digest": "sha256:" + "0" * 64,
            "mode": "allowlist",
            "mcp_drift": tuple(drift),
            "mcp_approved": tuple(approved),
            "skipped": tuple(skipped),
            "coverage": Coverage(accounts=1, files=7, definitions=12, duration_ms=84),
            "mcp_drift_total": len(drift),
            **fields,
        }
    )


def test_the_fields_are_those_of_the_contract():
    """Names and presence of fields are as in design 8; what does not apply is left out of a row."""
    text = status.encode(
        document(
            [finding(secret_in_definition=True)],
            [Skipped(user="dev", harness="gemini-cli", file="~/.gemini/settings.json", reason="symlink")],
            [Approved(harness="codex", id="wiki", user="dev", count=1)],
        )
    )
    data = json.loads(text)
    assert list(data) == [
        *(
            "schemaVersion",
            "time",
            "device",
            "hostname",
            "os",
            "halod",
            "user",
            "ring",
            "units",
            "digest",
            "mode",
        ),
        *(
            "mcpDrift",
            "mcpApproved",
            "skipped",
            "coverage",
            "mcpDriftTotal",
            "truncated",
            "lastError",
            "errorCode",
        ),
    ]
    assert set(data["mcpDrift"][0]) == {
        *(
            "harness",
            "file",
            "server",
            "kind",
            "transport",
            "definitionSha256",
            "detail",
            "fix",
            "user",
            "scope",
        ),
        *("enabled", "secretInDefinition"),
    }
    assert set(data["skipped"][0]) == {"user", "harness", "file", "reason"}
    assert set(data["coverage"]) == {"accounts", "files", "definitions", "durationMs", "notCovered"}
    assert status.decode(text) == document(
        [finding(secret_in_definition=True)],
        [Skipped(user="dev", harness="gemini-cli", file="~/.gemini/settings.json", reason="symlink")],
        [Approved(harness="codex", id="wiki", user="dev", count=1)],
    )


def test_a_later_version_is_still_read():
    """Unknown fields are ignored: an older console takes a newer agent's report."""
    data = json.loads(status.encode(document()))
    data["news"] = {"x": 1}
    assert status.decode(json.dumps(data).encode()) == document()


@pytest.mark.parametrize(
    "change",
    [
        {"definitionSha256": "x"},
        {"definitionSha256": "A" * 64},
        {"server": "n" * 129},
        {"kind": "fine"},
        {"scope": "else"},
        {"projects": -1},
        {"detail": "x" * 1025},
    ],
)
def test_a_row_outside_the_rules_is_refused(change):
    """The types hold what they promise when a document is read."""
    data = json.loads(status.encode(document([finding()])))
    data["mcpDrift"][0].update(change)
    with pytest.raises(msgspec.ValidationError):
        status.decode(json.dumps(data).encode())


def test_orders_do_not_depend_on_the_input():
    """User, harness, file, scope, server, hash: one order for one set of rows."""
    rows = [
        finding(n, user=user, harness=harness) for n in range(3) for user in "ab" for harness in ("x", "y")
    ]
    want = sorted(rows, key=status.finding_key)
    random.shuffle(rows)
    assert sorted(rows, key=status.finding_key) == want
    assert [row.user for row in want] == ["a"] * 6 + ["b"] * 6
    skips = [Skipped(user="b", reason="symlink"), Skipped(user="a", reason="malformed", file="~/x", line=2)]
    assert [row.user for row in sorted(skips, key=status.skipped_key)] == ["a", "b"]
    marks = [Approved(harness="h", id=i, user="u", count=1) for i in "ba"]
    assert [row.id for row in sorted(marks, key=status.approved_key)] == ["a", "b"]


def test_a_small_status_is_sent_as_it_is():
    """Nothing is cut that fits."""
    whole = document([finding(n) for n in range(status.SENT_FINDINGS)][:100])
    assert status.shorten(whole) is whole


def test_the_cut_keeps_what_is_worst():
    """256 findings stay: denied, then unapproved, then version-drift, in their old order."""
    kinds = ["version-drift"] * 200 + ["unapproved"] * 150 + ["denied"] * 10
    rows = [finding(n, kind, detail="", fix="") for n, kind in enumerate(kinds)]
    short = status.shorten(document(rows), max_bytes=10**6)
    assert short.truncated
    assert short.mcp_drift_total == 360
    assert [row.kind for row in short.mcp_drift] == ["version-drift"] * 96 + ["unapproved"] * 150 + [
        "denied"
    ] * 10
    assert list(short.mcp_drift) == rows[:96] + rows[200:]


@pytest.mark.parametrize("length", [0, 100, 1000])
@pytest.mark.parametrize("skips", [0, 20, 2000])
def test_a_sent_report_never_exceeds_its_bytes(length, skips):
    """60 KiB hold for long rows, many rows and many skipped files, and some of each kind stay."""
    whole = document(
        [finding(n, detail="d" * length, fix="f" * length) for n in range(300)],
        [Skipped(user="dev", harness="cursor", file=f"~/{n}", reason="malformed") for n in range(skips)],
        [Approved(harness="codex", id=f"id-{n}", user="dev", count=1) for n in range(3000)],
    )
    short = status.shorten(whole)
    assert len(status.encode(short)) <= status.SENT_BYTES
    assert short.truncated
    assert short.mcp_drift
    assert bool(short.skipped) == bool(skips)
    assert status.decode(status.encode(short)) == short


def test_an_inventory_is_cut_too():
    """Inventory rows count as findings."""
    rows = tuple(finding(n, msgspec.UNSET) for n in range(300))
    short = status.shorten(document(mode="inventory", inventory=rows))
    assert short.truncated
    assert 0 < len(short.inventory) <= 256
    assert short.inventory == rows[: len(short.inventory)]
    assert len(status.encode(short)) <= status.SENT_BYTES


def test_transitions_are_left_alone():
    """What opened or closed is never lost to the cut."""
    events = tuple(Transition(id=str(n), time="", event="opened", finding=finding(n)) for n in range(3))
    short = status.shorten(document([finding(n) for n in range(400)], transitions=events))
    assert short.transitions == events


def test_the_schema_accepts_what_is_written():
    """The published schema is valid 2020-12 and holds for a whole document."""
    schema = status.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    whole = document(
        [finding(), finding(1, "denied", host="mcp.example.com", transport="http", projects=2, stale=True)],
        [
            Skipped(user="dev", reason="error", errno="EIO"),
            Skipped(user="dev", reason="malformed-entry", server="x", line=1),
        ],
        inventory=(finding(2, msgspec.UNSET),),
    )
    jsonschema.Draft202012Validator(schema).validate(json.loads(status.encode(whole)))
    broken = json.loads(status.encode(whole))
    broken["mcpDrift"][0]["kind"] = "fine"
    assert not jsonschema.Draft202012Validator(schema).is_valid(broken)


def test_the_schema_in_the_repository_is_current():
    """`tools/status_schema.py` writes docs/status.schema.json; the checked-in file is what it writes."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/status_schema.py"), "--check"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_the_module_imports_nothing_of_the_package():
    """A console or another program can use the wire model alone."""
    code = "import sys, halod.status; print(sorted(m for m in sys.modules if m.startswith('halod')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "['halod', 'halod.status']"
