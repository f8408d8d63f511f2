# SPDX-License-Identifier: Apache-2.0
"""The console that can be killed: `python -m tests.console.serve_ingest DATABASE_URL`, loopback only.

Everything is imported once; each console is a fork that serves the one listening socket, so that the next one is there at
once and clients that connect meanwhile wait in the socket's queue. A word a line on stdin: `kill`, `stop` (SIGTERM), each
answered when the next console has begun; the end of stdin ends everything.
"""

import json
import os
import signal
import sys

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


def main():
    url = sys.argv[1]
    bound = server.bind("127.0.0.1:0")
    pid = fork(url, bound)
    print(json.dumps({"port": bound.getsockname()[1]}), flush=True)
    try:
        for line in sys.stdin:
            os.kill(pid, signal.SIGKILL if line.strip() == "kill" else signal.SIGTERM)
            _, ended = os.waitpid(pid, 0)
            pid = fork(url, bound)
            print(json.dumps({"code": os.waitstatus_to_exitcode(ended)}), flush=True)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
