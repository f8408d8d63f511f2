# SPDX-License-Identifier: Apache-2.0
"""Help for tests of tokens: the authorization server as a process, and a clock that nobody waits for."""

import contextlib
import json
import pathlib
import subprocess
import sys

from halod.token.model import Clock

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENT = "halo-public"
RESOURCE = "https://mcp-wiki.acme.example/mcp"


class RunningIssuer:
    """An authorization server in another process."""

    def __init__(self, process, scheme):
        self._process = process
        self.issuer = f"{scheme}://127.0.0.1:{json.loads(process.stdout.readline())['port']}"

    def _ask(self, **command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())["answer"]

    def plan(self, **places):
        """Say what the next requests to a place get."""
        self._ask(plan=places)

    def set(self, **values):
        """Change the server."""
        self._ask(set=values)

    def seed(self, resource=RESOURCE):
        """Give a refresh token that counts."""
        return self._ask(seed=resource)

    def log(self):
        """Give every request so far."""
        return self._ask(log=True)["log"]

    def reused(self):
        """Give how often a refresh token came twice."""
        return self._ask(log=True)["reused"]


@contextlib.contextmanager
def running(*, cert=None):
    """Run an authorization server while the block runs."""
    command = [sys.executable, "-m", "tests.server.authorization", *(["--cert", str(cert)] if cert else [])]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield RunningIssuer(process, "https" if cert else "http")
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


class Time:
    """A clock that waiting moves."""

    def __init__(self, now=1_800_000_000.0):
        self.at = now
        self.waits = []
        self.clock = Clock(now=lambda: self.at, steady=lambda: self.at, wait=self._wait)

    def _wait(self, seconds):
        self.waits.append(seconds)
        self.at += seconds


def settings(issuer, **more):
    """The text of a halo.toml."""
    auth = {"issuer": issuer, "client_id": CLIENT, **more}
    return "[auth]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in auth.items())
