# SPDX-License-Identifier: Apache-2.0
"""The inventory for people: many accounts with progress, a readable table of 300 findings, forms that agree."""

import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from datetime import date

import pytest

from halod.accounts import Account
from halod.assemble import Machine, Scanned, assemble
from halod.cli.colour import Paint
from halod.cli.table import render
from halod.policy.load import parse
from halod.policy.scope import scope
from halod.roles.scan import Task, scan_home
from halod.roles.supervisor import run as supervise
from halod.roles.worker import Job
from tests.support.guard import HANG

MAIN = "import sys; from halod.cli import main; sys.exit(main())"
POLICY = b"mcp: {servers: [{id: tool, package: {type: npm, identifier: '@acme/tool', version: 1.2.0}}]}\n"


def make_home(folder, servers=1):
    path = folder / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    table = {
        f"server-{at}": {"command": "npx", "args": ["-y", f"x{at}", "CANARYarg"]} for at in range(servers)
    }
    table["tool"] = {"command": "npx", "args": ["-y", "@acme/tool@1.2.0"]}
    path.write_text(json.dumps({"mcpServers": table}), "utf-8")
    (folder / ".gemini").mkdir()
    (folder / ".gemini/settings.json").write_text(
        '{"mcpServers":{"wiki":{"url":"https://mcp.example.com/CANARYp"}}}', "utf-8"
    )
    (folder / ".codex").mkdir()
    (folder / ".codex/config.toml").write_text("[", "utf-8")
    return folder


def scan(home, *more):
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "scan", "--home", str(home), *more],
        capture_output=True,
        check=False,
        timeout=HANG,
        cwd="/",
    )
    assert b"CANARY" not in done.stdout + done.stderr
    return done


def test_sarif_and_json_of_a_run_agree(tmp_path):
    """Each finding and each unread file of the document is a result, and nothing else is."""
    home, policy = make_home(tmp_path / "home", 5), tmp_path / "halos.yaml"
    policy.write_bytes(POLICY)
    for more in ([], ["--policy", str(policy)]):
        status = json.loads(scan(home, "--format", "json", *more).stdout)
        results = json.loads(scan(home, "--format", "sarif", *more).stdout)["runs"][0]["results"]
        rows = [*status["mcpDrift"], *status.get("inventory", [])]
        kinds = sorted(
            [*[row.get("kind", "inventory") for row in rows], *["unread" for _ in status["skipped"]]]
        )
        assert sorted(result["ruleId"] for result in results) == kinds
        files = sorted(row["file"].removeprefix("~/") for row in [*rows, *status["skipped"]])
        places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
        assert sorted(places) == files
        text = json.dumps(results)
        assert all(row["server"] in text for row in rows)
        prints = [
            json.dumps(result["partialFingerprints"]) for result in results if result["ruleId"] != "unread"
        ]
        assert len(set(prints)) == len(prints)


def test_harness_filter_in_every_form(tmp_path):
    """Only the named tools are read, and what is not read is not told as unread."""
    home = make_home(tmp_path / "home")
    status = json.loads(scan(home, "--format", "json", "--harness", "gemini-cli").stdout)
    assert [row["server"] for row in status["inventory"]] == ["wiki"]
    assert status["skipped"] == []
    page = scan(home, "--harness", "gemini-cli", "--harness", "codex").stdout.decode()
    assert "wiki" in page
    assert "server-0" not in page
    assert "config.toml" in page


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_many_accounts_with_progress_on_a_terminal(tmp_path):
    """Two hundred accounts: a line on the terminal that counts and goes away; nothing of it elsewhere."""
    for at in range(200):
        make_home(tmp_path / f"u{at:03}")
    code = (
        "import sys, os; from halod import accounts; from halod.accounts import Account; from halod.cli import main\n"
        f"accounts.everyone = lambda: [Account(name=f'user{{n:03}}', uid=os.getuid(), gid=os.getgid(), groups=(), home=f'{tmp_path}/u{{n:03}}') for n in range(200)]\n"
        "sys.exit(main(['scan', '--all-users', '--format', 'json']))"
    )
    plain = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, timeout=HANG, cwd="/"
    )
    assert plain.stderr == b""
    status = json.loads(plain.stdout)
    assert status["coverage"]["accounts"] == 200
    assert len(status["inventory"]) == 600
    assert {row["reason"] for row in status["skipped"]} == {"malformed"}
    main_end, child_end = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.DEVNULL,
        stderr=child_end,
        cwd="/",
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(child_end)
    shown = b""
    while True:
        try:
            piece = os.read(main_end, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(main_end)
    assert child.wait(HANG) == 3
    counted = [int(number) for number in re.findall(rb"scanned (\d+) of 200 accounts", shown)]
    assert counted == list(range(201))
    assert shown.endswith(b"\r\x1b[K")
    assert b"\n" not in shown


def test_the_table_is_readable_at_300_findings(tmp_path):
    """Each finding is named, no line is wider than the page, and the page says how many there are."""
    home = make_home(tmp_path / "home", 300)
    policy = parse(POLICY, "halos.yaml")
    registry = scope(policy, "", (), date(2026, 11, 30))
    job = Job.of(
        Account(name="dev", uid=os.getuid(), gid=os.getgid(), groups=(), home=str(home)), Task.of(registry)
    )
    outcomes = list(supervise([job], scan_home))
    scanned = [Scanned(user="dev", answer=outcome.answer) for outcome in outcomes]
    status = assemble(scanned, Machine(time="2026-11-30T09:15:02Z"), policy=policy, registry=registry)
    assert status.mcp_drift_total == 301
    for room in (60, 100):
        page = render(status, Paint(enabled=False), room)
        lines = page.splitlines()
        assert (
            max(
                sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
                for line in lines
                if "sha256" not in line
            )
            <= room + 25
        )
        assert all(f"server-{at}" in page for at in range(300))
        assert "301" in page
        assert len(lines) < 300 * 7
