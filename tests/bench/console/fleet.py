# SPDX-License-Identifier: Apache-2.0
"""An invented fleet for measuring: status documents, the same in every process that asks for the same device.

The first `LOADED` devices are those that the load generator reports for: each has 20 findings. The others have 4.75 on
average, so that 100,000 devices have half a million.
"""

import base64
import functools
import hashlib
import json
import random

LOADED = 2000
FINDINGS = 20
RINGS = ("ring0", "ring1-canary", "ring2-early", "ring3-ga")
HARNESSES = ("claude-code", "cursor", "codex", "gemini-cli", "vscode", "opencode")
KINDS = ("unapproved", "version-drift", "denied")
REASONS = ("malformed", "symlink", "too-large", "unreadable")
UNITS = 200
ENTRIES = 150
POPULAR = 400
VERSIONS = 8
SHA, TID = "5a" * 32, "bench-transition-id"
"""In the body of a changed report: where the changed definition's hash and the transition's id belong."""


@functools.cache
def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def device_of(nth):
    return hashlib.sha256(f"device {nth}".encode()).hexdigest()


def token_of(nth):
    """Give a device's token: of the real form, and known to the load generator without a look-up."""
    raw = hashlib.sha256(f"bench token {nth}".encode()).digest()
    return "hld_" + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def version_of(number, version):
    """Give the hash of one of the few definitions that a popular server has."""
    return sha256(f"popular {number} {version % VERSIONS}")


def document(nth, devices):
    """Give the status of a device of a fleet of so many."""
    draw = random.Random(nth)
    count = FINDINGS if nth < LOADED else draw.choice((0, 3, 4, 5, 5, 6, 7, 8))
    ring = RINGS[min(int(draw.expovariate(0.8)), 3)]
    units = sorted(
        {f"unit-{min(int(draw.expovariate(0.05)), UNITS - 1)}" for _ in range(draw.choice((0, 1, 1, 1, 2)))}
    )
    rows = list({row["server"]: row for row in (_finding(draw, devices) for _ in range(2 * count))}.values())[
        :count
    ]
    skipped = draw.randrange(1, 4) if draw.random() < 0.03 else 0
    return {
        "schemaVersion": 1, "time": "2026-11-30T09:15:02Z", "device": device_of(nth), "hostname": f"mbp-{nth:06}",
        "os": draw.choice(("macos", "linux")), "halod": "0.1.0", "user": "dev", "ring": ring, "units": units,
        "digest": "sha256:" + sha256(f"policy {min(int(draw.expovariate(1.2)), 9)}"), "mode": "allowlist",
        "mcpDrift": rows, "mcpDriftTotal": len(rows), "lastError": "", "errorCode": "", "truncated": False,
        "mcpApproved": [
            {"harness": harness, "id": f"entry-{entry}", "user": "dev", "count": 1}
            for harness, entry in sorted({(draw.choice(HARNESSES), draw.randrange(ENTRIES)) for _ in range(4)})
        ],
        "skipped": [
            {"user": "dev", "harness": draw.choice(HARNESSES), "file": f"~/.config/{each}.json",
             "reason": draw.choice(REASONS), "server": "", "line": 0, "column": 0, "errno": ""}
            for each in range(skipped)
        ],
        "coverage": {"accounts": 1, "files": 7, "definitions": count + 4, "durationMs": 12,
                     "notCovered": ["cloud-connectors"]},
    }  # fmt: skip


def _finding(draw, devices):
    """Half are of a few servers that everybody has, in some versions; half are rare ones."""
    harness = draw.choice(HARNESSES)
    if draw.random() < 0.5:
        number = min(int(draw.expovariate(0.03)), POPULAR - 1)
        server, digest = f"popular-{number:03}", version_of(number, draw.randrange(VERSIONS))
        host = f"mcp-{number}.example.com" if number % 3 == 0 else ""
    else:
        number = draw.randrange(max(devices // 2, 1))
        server, digest, host = f"rare-{number:06}", hashlib.sha256(f"rare {number}".encode()).hexdigest(), ""
    return {
        "harness": harness, "file": f"~/.{harness}/mcp.json", "server": server, "kind": KINDS[number % 3],
        "transport": "http" if host else "stdio", "host": host, "definitionSha256": digest, "user": "dev", "scope": "user",
        "enabled": True, "secretInDefinition": number % 40 == 0, "projects": 0, "stale": False,
        "detail": "defined as a stdio command; the registry has no such package",
        "fix": f'remove "{server}", or have it approved. Ask in the ai-tools channel: https://wiki.acme.example/mcp',
    }  # fmt: skip


def unchanged(nth, devices):
    """Give the body of a report that says what is known."""
    return json.dumps({**document(nth, devices), "transitions": []}, separators=(",", ":")).encode()


def changed(nth, devices):
    """Give the body of a report with one definition changed, in pieces: between them belong hash, hash and id.

    The hash stands in the finding and in the transition; the order of the pieces is that of the body.
    """
    made = document(nth, devices)
    first = {**made["mcpDrift"][0], "server": f"popular-{nth % POPULAR:03}-bench", "kind": "unapproved",
             "transport": "stdio", "host": "", "definitionSha256": SHA}  # fmt: skip
    made["mcpDrift"] = [first, *made["mcpDrift"][1:]]
    happened = {
        "id": TID,
        "time": "2026-11-30T09:15:02Z",
        "event": "changed",
        "finding": first,
        "was": "ab" * 32,
    }
    body = json.dumps({**made, "transitions": [happened]}, separators=(",", ":")).encode()
    head, rest = body.split(SHA.encode(), 1)
    middle, tail = rest.split(SHA.encode())
    if TID.encode() in middle:  # the id stands before the finding
        before, after = middle.split(TID.encode())
        return head, before, after, tail
    raise AssertionError("the order of a transition's fields is another one")
