# SPDX-License-Identifier: Apache-2.0
"""From a saved file to a finding that the server accepted: `python tests/bench/latency.py [--saves N] [--busy N]`.

Prints, and never fails (budgets of design 11: 2 s at p99 quiet, 12 s for a file rewritten once a second). A whole service
and the reference server run on loopback. Each save gives one server another command; the clock stops when the server has taken
the transition, seen by asking it every 5 ms. The floor is the second that the agent waits for more events (design 9).
"""

import argparse
import contextlib
import json
import os
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.server import TOKEN, running  # noqa: E402
from tests.support.service import service  # noqa: E402


def quantile(values, part):
    """Give a quantile of values."""
    return sorted(values)[min(len(values) - 1, round(part * (len(values) - 1)))]


def accepted(server, hashes, deadline=30.0):
    """Wait until the server has taken one more transition; give the seconds."""
    began = time.perf_counter()
    while len(server.transitions()) <= hashes:
        if time.perf_counter() - began > deadline:
            raise TimeoutError("the server did not take the transition")
        time.sleep(0.005)
    return time.perf_counter() - began


def quiet(run, server, saves):
    """Save ~/.cursor/mcp.json, one save at a time."""
    spent = []
    for number in range(saves):
        known = len(server.transitions())
        run.write_servers(notes={"command": "npx", "args": ["-y", f"notes-mcp@1.0.{number}", "CANARYarg"]})
        spent.append(accepted(server, known))
        time.sleep(0.1)
    return spent


class Busy:
    """~/.claude.json as Claude Code keeps it: rewritten once a second, mostly with nothing new."""

    def __init__(self, run):
        self.run, self.command, self.lock = run, "none", threading.Lock()
        self.count = 0
        self.ended = threading.Event()

    def write(self):
        with self.lock:
            self.count += 1
            servers = {"hot": {"command": "npx", "args": ["-y", self.command]}}
            beside = self.run.home / ".claude.json.new"
            beside.write_text(json.dumps({"numStartups": self.count, "mcpServers": servers}))
            if os.geteuid() == 0:
                os.chown(beside, self.run.uid, self.run.gid)
            beside.rename(self.run.home / ".claude.json")

    def rewrite(self):
        while not self.ended.wait(1.0):
            self.write()


def busy(run, server, saves):
    """Change a server in the file that is rewritten all the time."""
    spent = []
    file = Busy(run)
    known = len(server.transitions())
    file.write()
    accepted(server, known)
    thread = threading.Thread(target=file.rewrite)
    thread.start()
    try:
        time.sleep(20)  # the file's back-off is at its longest then
        for number in range(saves):
            known = len(server.transitions())
            with file.lock:
                file.command = f"hot-mcp@2.0.{number}"
            file.write()
            spent.append(accepted(server, known))
            time.sleep(12)
    finally:
        file.ended.set()
        thread.join()
    return spent


def line(what, spent, budget):
    """One line of figures."""
    print(
        f"{what}: p50 {quantile(spent, 0.5):.2f} s, p99 {quantile(spent, 0.99):.2f} s, of {len(spent)} saves"
        f" (budget {budget} s at p99; the agent's own wait for more events 1.00 s)"
    )


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--saves", type=int, default=200)
    parser.add_argument("--busy", type=int, default=10, help="changes of the file rewritten once a second")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(service())
        server = stack.enter_context(running())
        token = run.directory / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        run.settings(report={"url": server.url, "token_file": str(token)})
        run.start()
        run.wait_for_cycle()
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        time.sleep(3)
        line("save to accepted finding, quiet", quiet(run, server, args.saves), 2)
        if args.busy:
            line("save to accepted finding, file rewritten once a second", busy(run, server, args.busy), 12)
        run.stop()


if __name__ == "__main__":
    main()
