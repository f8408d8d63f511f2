# SPDX-License-Identifier: Apache-2.0
"""Real `halo-server serve` processes, and machines that report as agents do: for the tests of replicas.

A machine sends one report at a time and, as docs/report-api.md has it, the same one again until the answer is 2xx. What
it was told is accepted is kept, so that the database can be compared with it.
"""

import contextlib
import hashlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

REPORT = "/api/v1/fleet/report"
HARNESSES = ("cursor", "claude-code", "codex")
SECONDS = 90
PAUSE = 0.05
"""Seconds between a failure and the next try; agents wait longer."""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Replica:
    """One `halo-server serve`; `start` after `stop` or `kill` takes the same port."""

    def __init__(self, directory, name, config):
        self.port = free_port()
        self.address = ("127.0.0.1", self.port)
        self._config = str(config)
        self._log = directory / f"{name}.log"
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
        code = "import sys; from halod.console.cli import main; sys.exit(main())"
        with open(self._log, "ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-c", code, "serve", "--config", self._config),
                    *("--listen", f"127.0.0.1:{self.port}", "--log-format", "json"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        end = time.monotonic() + SECONDS
        while not self._ready():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < end, self.log()
            time.sleep(0.05)
        return self

    def _ready(self):
        connection = http.client.HTTPConnection(*self.address, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self, number=signal.SIGTERM):
        """End it and give the exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def kill(self):
        self.stop(signal.SIGKILL)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def log(self):
        return self._log.read_text(encoding="utf-8", errors="replace")


def document(device, findings, transitions=(), **other):
    """Give a status of docs/report-api.md."""
    return {
        "schemaVersion": 1, "time": "2026-11-30T09:15:02Z", "device": device, "hostname": f"host-{device}", "os": "linux",
        "halod": "0.1.0", "user": "dev", "ring": "ring1-canary", "units": ["engineering"], "digest": "sha256:" + "a" * 64,
        "mode": "allowlist", "mcpDrift": findings, "mcpDriftTotal": len(findings), "transitions": list(transitions),
        "mcpApproved": [], "skipped": [], "lastError": "", "errorCode": "", "truncated": False,
        "coverage": {"accounts": 1, "files": 4, "definitions": len(findings), "durationMs": 12, "notCovered": []}, **other,
    }  # fmt: skip


def finding(server, version, harness="cursor"):
    """Give a row of mcpDrift."""
    return {
        "harness": harness, "file": f"~/.{harness}/mcp.json", "server": server, "kind": "unapproved", "transport": "stdio",
        "host": "", "definitionSha256": hashlib.sha256(f"{server} {version}".encode()).hexdigest(), "user": "dev",
        "scope": "user", "enabled": True, "secretInDefinition": False, "projects": 0, "stale": False,
        "detail": "not in the registry", "fix": f"remove {server}",
    }  # fmt: skip


def transition(tid, event, row, was=""):
    """Give what happened to a row of mcpDrift."""
    return {"id": tid, "time": "2026-11-30T09:15:02Z", "event": event, "finding": row, "was": was}


class Machine:
    """One device. `told` are the ids of transitions whose report was accepted, in order; `seen` the last status."""

    def __init__(self, nth, token):
        self.device = hashlib.sha256(f"machine {nth}".encode()).hexdigest()
        self.token = token
        self.told = []
        self.seen = {}
        self.tries = self.accepted = 0
        self._now = {}
        self._draw = random.Random(nth)
        self._number = 0

    def _happen(self):
        """Let something happen, or nothing; give the transitions."""
        if self._draw.random() < 0.4:
            return []
        server = f"server-{self._draw.randrange(8)}"
        old = self._now.get(server)
        self._number += 1
        row = finding(
            server, self._draw.randrange(50), self._draw.choice(HARNESSES) if old is None else old["harness"]
        )
        if old is None:
            event, self._now[server] = "opened", row
        elif self._draw.random() < 0.5:
            event, row = "resolved", self._now.pop(server)
        else:
            event, self._now[server] = "changed", row
        was = old["definitionSha256"] if event == "changed" else ""
        return [transition(f"t{self._number}", event, row, was)]

    def report(self, send, give_up=SECONDS):
        """Send one report until it is accepted."""
        transitions = self._happen()
        rows = list(self._now.values())
        body = json.dumps(document(self.device, rows, transitions)).encode()
        end = time.monotonic() + give_up
        while True:
            self.tries += 1
            status = send(self.token, body)
            if status // 100 == 2:
                break
            assert status in (0, 408, 429, 500, 502, 503), status
            assert time.monotonic() < end, f"never accepted: {status}"
            time.sleep(PAUSE)
        self.accepted += 1
        self.told += [one["id"] for one in transitions]
        self.seen = {(row["harness"], row["server"]): row["definitionSha256"] for row in rows}


class Sender:
    """Sends reports over a connection that is kept; 0 stands for no answer."""

    def __init__(self, address):
        self._connection = http.client.HTTPConnection(*address, timeout=SECONDS)

    def __call__(self, token, body):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            self._connection.request("POST", REPORT, body, headers)
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return 0
        return answer.status

    def close(self):
        with contextlib.suppress(OSError):
            self._connection.close()
