# SPDX-License-Identifier: Apache-2.0
"""Help for tests of the import: the replaying registry as a process, and documents of every shape."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
from unittest import mock
from urllib.parse import quote

from halod.policy.importing.document import read
from halod.policy.importing.model import ImportRefused

ROOT = pathlib.Path(__file__).resolve().parents[2]
OFFICIAL = "io.modelcontextprotocol.registry/official"
SCHEMAS = "https://static.modelcontextprotocol.io/schemas"
DIGEST = "0123456789abcdef" * 4
OTHER = "f" * 64
PYPI = {
    "registryType": "pypi",
    "identifier": "Time_MCP.pypi",
    "version": "1.0",
    "transport": {"type": "stdio"},
}
NUGET = {"registryType": "nuget", "identifier": "TimeMcpServer", "version": "1.0.8", "runtimeHint": "dnx"}
MCPB = {"registryType": "mcpb", "identifier": "https://x.example/mcp.mcpb", "fileSha256": OTHER}
HTTP = {"type": "streamable-http", "url": "https://MCP.acme.example:443/mcp"}


class RunningRegistry:
    """A replaying registry in another process."""

    def __init__(self, process, scheme):
        self._process = process
        self.port = json.loads(process.stdout.readline())["port"]
        self.origin = f"{scheme}://127.0.0.1:{self.port}"

    def _ask(self, **command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())["answer"]

    def answer(self, path, *answers):
        """Say what a path gives, one after the other."""
        self._ask(answers={path: list(answers)})

    def publish(self, document, version="latest"):
        """Give a document where a registry has it."""
        name = document["server"]["name"]
        path = f"/v0.1/servers/{quote(name, safe='')}/versions/{quote(version, safe='')}"
        self.answer(path, {"body": json.dumps(document)})
        return name

    def log(self):
        """Give (path, headers) of every request so far."""
        return self._ask(log=True)


@contextlib.contextmanager
def running(*, cert=None):
    """Run a replaying registry while the block runs."""
    command = [sys.executable, "-m", "tests.server.registry", *(["--cert", str(cert)] if cert else [])]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield RunningRegistry(process, "https" if cert else "http")
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def npm(**more):
    """An npm package, as documents have it."""
    return {
        "registryType": "npm",
        "identifier": "@acme/notes-mcp",
        "version": "1.0.26",
        "transport": {"type": "stdio"},
        **more,
    }


def oci(**more):
    """An image, as documents have it since 2025-10-11."""
    return {
        "registryType": "oci",
        "identifier": f"ghcr.io/acme/notes-mcp:1.7.2@sha256:{DIGEST}",
        "transport": {"type": "stdio"},
        **more,
    }


def server(*packages, schema="2025-12-11", **more):
    """A bare server.json with these packages."""
    document = {
        "$schema": f"{SCHEMAS}/{schema}/server.schema.json",
        "name": "io.github.acme/notes-mcp",
        "description": "Notes",
        "version": "1.0.0",
        "packages": list(packages),
        **more,
    }
    return {key: value for key, value in document.items() if value is not None}


def envelope(document, status="active", **official):
    """What a registry gives for one version; status None leaves its word out."""
    meta = (
        {}
        if status is None
        else {OFFICIAL: {"status": status, "publishedAt": "2026-10-01T00:00:00Z", **official}}
    )
    return {"server": document, "_meta": meta}


def loaded(document):
    """A document as the importer reads it."""
    return read(json.dumps(document).encode())


def why_not(call, *words, **named):
    """The refusal that a call must end with."""
    try:
        done = call(*words, **named)
    except ImportRefused as refused:
        return refused
    raise AssertionError(f"not refused: {done}")


@contextlib.contextmanager
def fed(data):
    """Give bytes as standard input while the block runs; gives what is printed."""
    stdin, out, err = io.TextIOWrapper(io.BytesIO(data)), io.StringIO(), io.StringIO()
    with mock.patch("sys.stdin", stdin), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err
