# SPDX-License-Identifier: Apache-2.0
"""What a running service sends, as the server receives it, field by field (design 8)."""

import hashlib
import json
import os
import re
import signal

import pytest
from jsonschema import Draft202012Validator

from halod import __version__
from halod.device import device_id
from tests.support.server import TOKEN, running
from tests.support.service import ROOT, service

SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "status.schema.json").read_text()))
POLICY = """\
rings: [ring0, ring1]
units: {payments: {}}
mcp:
  servers:
    - {id: tools, rings: [ring0], package: {type: npm, identifier: "@acme/tools", version: 1.2.0}}
    - {id: wiki, units: [payments], url: "https://wiki.acme.example/mcp"}
"""
TOOLS = {"command": "npx", "args": ["-y", "@acme/tools@1.2.0"]}
NOTES = {"command": "npx", "args": ["-y", "CANARY-package@1.0.0", "CANARYarg"]}
REMOTE = {"url": "https://mcp.example.net:8443/CANARYpath?key=CANARYkey"}
WIKI = {"url": "https://wiki.acme.example/mcp"}


@pytest.fixture
def run():
    with service() as run, running() as server:
        token = run.directory / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        run.settings(report={"url": server.url, "token_file": str(token)}, device={"units": ["payments"]})
        run.policy.write_text(POLICY)
        run.console = run.uid
        run.server = server
        yield run


def reports(run):
    """Give every report so far; each is what the schema says."""
    bodies = [json.loads(entry["body"]) for entry in run.server.log()]
    for body in bodies:
        SCHEMA.validate(body)
    return bodies


def newest(run, condition):
    """Wait for a report of which a condition holds, and give it."""
    found = []

    def there():
        found[:] = [body for body in reports(run) if condition(body)]
        return bool(found)

    run.wait(there)
    return found[-1]


def test_every_field_of_a_report(run):
    """Device, people, place, policy, findings, approvals, gaps, transitions, coverage."""
    run.write_servers(tools=TOOLS, notes=NOTES, remote=REMOTE, wiki=WIKI)
    (run.home / ".codeium").mkdir()
    (run.home / ".codeium" / "mcp_config.json").symlink_to("elsewhere.json")
    run.start()
    run.wait_for_cycle()
    body = newest(run, lambda body: True)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", body["time"])
    told = {
        key: body[key]
        for key in ("schemaVersion", "device", "hostname", "os", "halod", "user", "ring", "units")
    }
    assert told == {
        "schemaVersion": 1,
        "device": device_id(),
        "hostname": os.uname().nodename,
        "os": "linux",
        "halod": __version__,
        "user": "dev",
        "ring": "ring0",
        "units": ["payments"],
    }
    assert body["digest"] == "sha256:" + hashlib.sha256(POLICY.encode()).hexdigest()
    assert (body["mode"], body["errorCode"], body["lastError"]) == ("allowlist", "", "")
    assert (body["truncated"], body["mcpDriftTotal"]) == (False, 2)
    notes, remote = body["mcpDrift"]
    assert {
        key: notes[key] for key in ("harness", "file", "server", "kind", "transport", "user", "scope")
    } == {
        "harness": "cursor",
        "file": "~/.cursor/mcp.json",
        "server": "notes",
        "kind": "unapproved",
        "transport": "stdio",
        "user": "dev",
        "scope": "user",
    }
    assert notes["enabled"] is True
    assert notes["detail"]
    assert notes["fix"]
    assert notes.get("stale", False) is False
    assert "host" not in notes
    assert (remote["server"], remote["transport"], remote["host"]) == (
        "remote",
        "http",
        "mcp.example.net:8443",
    )
    assert remote["secretInDefinition"] is True
    assert body["mcpApproved"] == [
        {"harness": "cursor", "id": "tools", "user": "dev", "count": 1},
        {"harness": "cursor", "id": "wiki", "user": "dev", "count": 1},
    ]
    assert [(row["user"], row["file"], row["reason"]) for row in body["skipped"]] == [
        ("dev", "~/.codeium/mcp_config.json", "symlink")
    ]
    coverage = body["coverage"]
    assert (coverage["accounts"], coverage["files"], coverage["definitions"]) == (1, 1, 4)
    assert coverage["durationMs"] > 0
    assert coverage["notCovered"] == ["project-files", "cloud-connectors", "environment-overrides"]
    assert [(one["event"], one["finding"]) for one in body["transitions"]] == [
        ("opened", notes),
        ("opened", remote),
    ]
    assert {one["time"] for one in body["transitions"]} == {body["time"]}
    assert "inventory" not in body
    run.stop()


def test_what_happens_to_findings(run):
    """Changed with the hash before; stale while its file cannot be read; resolved when it is gone."""
    run.write_servers(notes=NOTES)
    run.start()
    run.wait_for_cycle()
    run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
    first = newest(run, lambda body: body["transitions"])["mcpDrift"][0]
    run.write_servers(notes={**NOTES, "args": ["-y", "other@2.0.0"]})
    body = newest(run, lambda body: any(one["event"] == "changed" for one in body["transitions"]))
    (changed,) = body["transitions"]
    assert changed["was"] == first["definitionSha256"] != changed["finding"]["definitionSha256"]
    config = run.home / ".cursor" / "mcp.json"
    config.write_text('{"CANARY": ')
    body = newest(run, lambda body: body["skipped"])
    assert [(row["server"], row["stale"]) for row in body["mcpDrift"]] == [("notes", True)]
    assert body["skipped"][0]["reason"] == "malformed"
    assert (body["transitions"], body["mcpDriftTotal"]) == ([], 1)
    run.write_servers()
    body = newest(run, lambda body: not body["mcpDrift"])
    assert [one["event"] for one in body["transitions"]] == ["resolved"]
    assert (body["mcpDriftTotal"], body["skipped"]) == (0, [])
    ids = [one["id"] for one in run.server.transitions()]
    assert len(ids) == len(set(ids)) == 3
    run.stop()


def test_too_many_findings_are_cut_and_counted(run):
    """256 rows, 60 KiB, and the true number; transitions come in further reports at once."""
    run.write_servers(**{f"server-{at}": NOTES for at in range(300)})
    run.start()
    run.wait_for_cycle()
    run.wait(lambda: len(run.server.transitions()) == 300)
    for body in reports(run):
        assert (body["truncated"], body["mcpDriftTotal"]) == (True, 300)
        assert 0 < len(body["mcpDrift"]) <= 256
        assert len(body["transitions"]) <= 64
    assert all(len(entry["body"]) <= 60 * 1024 for entry in run.server.log())
    run.stop()


def test_what_is_wrong_is_in_the_report(run):
    """A policy with a fault, then settings with one: errorCode and words, and the last good policy goes on."""
    run.start()
    run.wait_for_cycle()
    good = newest(run, lambda body: True)["digest"]
    run.policy.write_text("mcp: {servers: [{id: x}]}\n")
    run.process.send_signal(signal.SIGHUP)
    body = newest(run, lambda body: body["errorCode"])
    assert (body["errorCode"], body["digest"], body["mode"]) == ("policy-invalid", good, "allowlist")
    assert f"the last good policy goes on: {good[:19]}, in force since " in body["lastError"]
    run.policy.write_text(POLICY)
    run.settings(scan={"interval": 1})
    run.process.send_signal(signal.SIGHUP)
    body = newest(run, lambda body: body["errorCode"] == "reload-refused")
    assert body["lastError"] == "the new settings cannot be used; the service goes on with those of before"
    run.stop()


def test_nobody_at_the_console_is_no_name(run):
    """`user` is the person at the machine, also when others are scanned; without transitions none are sent."""
    run.console = None
    run.settings(report={"transitions": False})
    run.start()
    run.wait_for_cycle()
    body = newest(run, lambda body: True)
    assert (body["user"], [row["user"] for row in body["mcpDrift"]]) == ("", ["dev"])
    assert "transitions" not in body
    run.stop()
