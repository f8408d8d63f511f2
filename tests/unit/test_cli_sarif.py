# SPDX-License-Identifier: Apache-2.0
"""SARIF 2.1.0: valid by its schema, and as stable as a finding's identity."""

import json
from pathlib import Path
from typing import get_args

import jsonschema
import msgspec
import pytest

from halod import status
from halod.cli import sarif
from halod.status import Coverage, Finding, Skipped, Status

ASSETS = Path(__file__).resolve().parents[1] / "assets"
SCHEMA = json.loads((ASSETS / "sarif-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft4Validator(SCHEMA)


def finding(**fields):
    return Finding(
        **{
            "harness": "cursor",
            "file": "~/Library/Application Support/a#b/mcp.json",
            "server": "资料库",
            "kind": "unapproved",
            "transport": "http",
            "host": "mcp.example.com",
            "definition_sha256": "0" * 64,
            "detail": "the detail",
            "fix": "the fix",
            "user": "dev",
            "scope": "user",
            "enabled": True,
            **fields,
        }
    )


def run(drift=(), skipped=(), **fields):
    whole = Status(
        **{
            "time": "2026-11-30T09:15:02Z",
            "device": "",
            "hostname": "",
            "os": "linux",
            "halod": "0.1.0",
            "user": "",
            "ring": "ring1",
            "units": ("payments",),
            "digest": "",
            "mode": "allowlist",
            "mcp_drift": tuple(drift),
            "mcp_approved": (),
            "skipped": tuple(skipped),
            "coverage": Coverage(accounts=1, files=7, definitions=12, duration_ms=84),
            "mcp_drift_total": len(drift),
            **fields,
        }
    )
    log = json.loads(msgspec.json.encode(sarif.document(whole)))
    VALIDATOR.validate(log)
    return log["runs"][0]


def test_the_schema_refuses_what_is_no_sarif():
    """The schema that the other tests rely on can fail."""
    assert not VALIDATOR.is_valid({"version": "2.1.0", "runs": [{"tool": {}}]})


@pytest.mark.parametrize(
    ("kind", "level"), [("denied", "error"), ("unapproved", "error"), ("version-drift", "warning")]
)
def test_a_finding_is_a_result_of_the_rule_of_its_kind(kind, level):
    """Rule, level, message and place."""
    one = run([finding(kind=kind)])
    result = one["results"][0]
    assert result["level"] == level
    assert one["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == kind
    assert result["message"]["text"] == '"资料库" in cursor: the detail. Fix: the fix'
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "Library/Application%20Support/a%23b/mcp.json", "uriBaseId": "HOME"}
    assert one["invocations"][0]["executionSuccessful"] is True


def test_every_reason_is_a_valid_result():
    """What was not read is a result of its own, with line and column, and the run counts as incomplete."""
    rows = [
        Skipped(user="dev", harness="codex", file="~/x", reason=reason, line=3, column=7)
        for reason in get_args(status.Reason)
    ]
    one = run(
        skipped=[
            *rows,
            Skipped(user="dev", reason="worker-timeout"),
            Skipped(user="dev", file="~/x", reason="malformed-entry", server="odd"),
        ]
    )
    assert len(one["results"]) == len(rows) + 2
    assert {result["ruleId"] for result in one["results"]} == {"unread"}
    assert one["results"][0]["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 3,
        "startColumn": 7,
    }
    assert "locations" not in one["results"][-2]
    assert one["invocations"][0]["executionSuccessful"] is False


def test_fingerprints_follow_the_identity_not_the_definition():
    """A changed definition is the same result; a second server of that name is another one."""

    def prints(*rows):
        return [result["partialFingerprints"]["halodIdentity/v1"] for result in run(rows)["results"]]

    first = prints(finding(), finding(definition_sha256="1" * 64))
    assert len(set(first)) == 2
    assert first == prints(
        finding(definition_sha256="2" * 64, kind="denied"), finding(definition_sha256="3" * 64)
    )
    assert prints(finding(user="a/b", harness="c")) != prints(finding(user="a", harness="b/c"))


def test_an_inventory_is_a_list_of_notes():
    """Without a policy nothing is wrong."""
    row = finding(
        kind=msgspec.UNSET, detail=msgspec.UNSET, fix=msgspec.UNSET, host=msgspec.UNSET, transport="stdio"
    )
    one = run(mode="inventory", inventory=(row,))
    assert one["results"][0]["level"] == "note"
    assert one["results"][0]["message"]["text"] == '"资料库" in cursor: defined as stdio'
