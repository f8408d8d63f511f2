# SPDX-License-Identifier: Apache-2.0
"""Consoles that can be killed: `python -m tests.console.serve_ingest`, loopback only.

Everything is imported once; each console is a fork that serves the one listening socket, so that the next one is there at
once and clients that connect meanwhile wait in the socket's queue. Lines on stdin: `serve DATABASE_URL` opens a new socket;
`kill` and `stop` (SIGTERM) end the console and begin the next; `end` ends it. The end of stdin ends everything.
"""

import http.client
import json
import os
import signal
import sys

import psycopg  # noqa: F401 - before the forks

from halod.console import app, logs, server
from halod.console.call import Console
from halod.console.clock import SystemClock
from halod.console.metrics import Metrics
from halod.console.settings import Limits, Settings
from halod.console.store.engine import Store

ROOMY = Limits(reports_per_minute=1_000_000, requests_per_minute=1_000_000, refused_per_minute=1_000_000)


def serve(url, bound):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logs.configure("warning", "json")
    settings = Settings(database_url=url, listen="127.0.0.1:%d" % bound.getsockname()[1], limits=ROOMY)  # noqa: UP031
    store = Store.open(url)
    console = Console(settings=settings, store=store, clock=SystemClock(), metrics=Metrics())
    server.run(app.build(console, jobs=False), settings, bound)
    store.close()


def fork(url, bound):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            serve(url, bound)
            code = 0
        finally:
            os._exit(code)
    return pid


def wait_for(bound):
    """Wait until the console answers: only one that has begun ends in an orderly way, or in the middle of its work."""
    connection = http.client.HTTPConnection("127.0.0.1", bound.getsockname()[1], timeout=60)
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    connection.close()


def end(pid, number):
    os.kill(pid, number)
    _, ended = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(ended)


def main():
    url, bound, pid = "", None, 0
    try:
        for line in sys.stdin:
            word, _, rest = line.strip().partition(" ")
            answer = {}
            if pid:
                if word != "end":
                    wait_for(bound)
                answer["code"] = end(pid, signal.SIGTERM if word == "stop" else signal.SIGKILL)
                pid = 0
            if word == "serve":
                url, bound = rest, server.bind("127.0.0.1:0")
                answer["port"] = bound.getsockname()[1]
            if word == "end":
                bound.close()
            else:
                pid = fork(url, bound)
            print(json.dumps(answer), flush=True)
    finally:
        if pid:
            end(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
