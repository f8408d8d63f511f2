# SPDX-License-Identifier: Apache-2.0
"""Help for tests against the reference server: starts it as a process, and talks to it over its pipes."""

import contextlib
import json
import pathlib
import socket
import subprocess
import sys

from tests.support.guard import HANG, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = "CANARYtoken-3f9c2b7a"
ENROL_KEY = "CANARYenrol-77aa01"


class RunningServer:
    """A reference server in another process."""

    def __init__(self, process, scheme):
        self._process = process
        self.port = json.loads(process.stdout.readline())["port"]
        self.origin = f"{scheme}://127.0.0.1:{self.port}"
        self.url = f"{self.origin}/api/v1/fleet/report"
        self.policy_url = f"{self.origin}/api/v1/policy"

    def ask(self, **command):
        """Give one command and return its answer."""
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())["answer"]

    def plan(self, *words):
        """Say what happens to the next requests; the last word stays."""
        self.ask(plan=words)

    def serve(self, envelope, *words):
        """Say what the signed policy is from now on, and what happens to the next who ask for it."""
        self.ask(policy=envelope.decode(), policy_plan=words or ["ok"])

    def asked(self):
        """Give every question for the policy so far."""
        return [entry for entry in self.log() if self.policy_url.endswith(entry["path"])]

    def log(self):
        """Give every request so far."""
        return self.ask(log=True)

    def settle(self):
        """Wait until every request that was given up is in the log: it uses up a word of the plan.

        Connections are taken in their order, so those before one of ours are all known when that one is.
        """
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANG) as last:
            until(lambda: self.ask(awaited=True) == [last.getsockname()[1]], lambda: self.ask(awaited=True))

    def transitions(self):
        """Give the transitions that were taken, in order, each once."""
        return [one for _, one in self.ask(transitions=True)]


@contextlib.contextmanager
def running(*, cert=None, client_ca=None, tokens=(TOKEN,), enrol_key=ENROL_KEY):
    """Run a reference server while the block runs."""
    command = [sys.executable, "-m", "tests.server", "--enrol-key", enrol_key]
    for token in tokens:
        command += ["--token", token]
    if cert:
        command += ["--cert", str(cert)]
    if client_ca:
        command += ["--client-ca", str(client_ca)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield RunningServer(process, "https" if cert else "http")
    finally:
        process.stdin.close()
        try:
            process.wait(HANG)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
