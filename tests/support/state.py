# SPDX-License-Identifier: Apache-2.0
"""Statuses, findings and cycles for the tests of the agent's state."""

from halod.seen import Seen
from halod.status import Coverage, Finding, Status

FILES = ("~/.cursor/mcp.json", "~/.codeium/mcp_config.json", "~/.gemini/settings.json")


def finding(server="notes", sha="0", **fields):
    base = {
        "harness": "cursor",
        "file": FILES[0],
        "server": server,
        "kind": "unapproved",
        "transport": "stdio",
        "definition_sha256": (sha * 64)[:64],
        "detail": "defined as a stdio command",
        "fix": "remove it",
        "user": "dev",
        "scope": "user",
        "enabled": True,
    }
    return Finding(**{**base, **fields})


def status(*findings, time="2026-11-30T09:15:02Z", **fields):
    base = {
        "time": time,
        "device": "d" * 64,
        "hostname": "mbp-417",
        "os": "linux",
        "halod": "0.1.0",
        "user": "dev",
        "ring": "ring1",
        "units": (),
        "digest": "",
        "mode": "allowlist",
        "mcp_drift": findings,
        "mcp_approved": (),
        "skipped": (),
        "coverage": Coverage(accounts=1, files=1, definitions=1, duration_ms=1),
        "mcp_drift_total": len(findings),
    }
    return Status(**{**base, **fields})


def all_seen(*users):
    """Vouch for everything: no file was read, hence all are absent."""
    return [Seen(user=user, well=True) for user in users or ("dev",)]
