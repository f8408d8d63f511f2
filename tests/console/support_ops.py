# SPDX-License-Identifier: Apache-2.0
"""Help for the tests of operations: a clock, a console without an application, calls, and a receiver of webhooks."""

import contextlib
import json
import logging
import os
import pathlib
import subprocess
import sys
import threading

import structlog
from starlette.requests import Request

from halod.console import logs
from halod.console.access import Actor, Role
from halod.console.call import Call, Console
from halod.console.metrics import Metrics
from halod.console.settings import Hook, Settings

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # that of the specification's own test vectors
NOW = 1_796_000_000  # 2026-11-30, a whole minute away from nothing


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, now=NOW):
        self.time = now

    def now(self):
        return self.time

    def monotonic(self):
        return float(self.time)

    def go(self, seconds):
        self.time += seconds


def console_of(store, clock=None, **settings):
    """A console on a store."""
    return Console(
        settings=Settings(database_url="", **settings),
        store=store,
        clock=clock or Clock(),
        metrics=Metrics(),
    )


ADMIN = Actor(kind="api-token", name="ada", role=Role.ADMIN)


def call(console, method="GET", path="/", *, body=b"", actor=ADMIN, query="", params=None, **headers):
    """A call as the gate gives it to an endpoint."""
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "path_params": params or {},
    }
    return Call(console=console, request=Request(scope), actor=actor, body=body, address="192.0.2.7")


def hook(tmp_path, url, *, name="chat", secrets=(SECRET,), **fields):
    """A webhook of the settings, with its secret in a file."""
    path = tmp_path / f"{name}.secret"
    path.write_text("\n".join(secrets) + "\n")
    os.chmod(path, 0o600)
    return Hook(name=name, url=url, secret_file=str(path), **fields)


class Receiver:
    """A receiver in another process."""

    def __init__(self, process, scheme):
        self._process = process
        self.port = json.loads(process.stdout.readline())["port"]
        self.url = f"{scheme}://127.0.0.1:{self.port}/hooks/halo"

    def ask(self, **command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())["answer"]

    def plan(self, *words):
        """Say what it does with the next requests; the last word stays."""
        self.ask(plan=words)

    def log(self):
        """Every request so far."""
        return self.ask()

    def bodies(self):
        return [json.loads(one["body"]) for one in self.log()]


@contextlib.contextmanager
def receiving(*, secret=SECRET, cert=None):
    """Run a receiver while the block runs."""
    command = [sys.executable, "-m", "tests.console.receiver", "--secret", secret]
    if cert:
        command += ["--cert", str(cert)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    # A test that is stopped closes our end of stdin, which ends it.
    try:
        yield Receiver(process, "https" if cert else "http")
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()


@contextlib.contextmanager
def logged(stream):
    """Write the console's log to a stream, as JSON, while the block runs."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    logs.configure("debug", "json", stream=stream)
    try:
        yield
    finally:
        structlog.reset_defaults()
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(capture=False)


def in_threads(*functions):
    """Run functions at the same time; raise what one of them raised."""
    faults = []

    def run(function):
        try:
            function()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if faults:
        raise faults[0]
