# SPDX-License-Identifier: Apache-2.0
"""Figures of the console beside their floors and budgets: `make bench-console` (design 11). Prints tables; judges nothing.

    python -m tests.bench.console.run [--devices N] [--seconds N] [--engines sqlite,postgresql] [--rounds N] [--recount]

A database is filled with a fleet (100,000 devices, half a million findings, five million transitions), a real
`halo-server serve` serves it at loopback, and a load generator, which is a process of its own, reports for 2,000 of the
devices, 20 findings each. PostgreSQL is a server of its own with durable commits. Server, database and load generator
share the machine's cores. Everything is in a temporary directory.

--devices 2000 --seconds 5 --rounds 10 takes a minute or two.
"""

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from halod.console.access import Role
from halod.console.security import login, tokens
from halod.console.store.engine import Store
from halod.console.store.migrate import upgrade
from tests.bench.console import fleet, floor, seed
from tests.bench.console.pages import Browser, cases
from tests.console import support_postgres
from tests.console.support_replicas import Replica

BUDGETS = {"unchanged": 2000, "changed": 500}
PAGE_BUDGET = 0.100
MIB = 1024 * 1024


def say(text=""):
    print(text, flush=True)


def progress(text):
    print(f"  ({text})", file=sys.stderr, flush=True)


class Memory:
    """Memory of processes, in MiB."""

    def __init__(self, server, database):
        self._server, self._database = psutil.Process(server), database

    def all(self):
        """Give PSS of the server, what of it is anonymous (no file's, which the kernel can drop), PSS of the database."""
        server = _pss([self._server]), _anonymous(self._server.pid)
        if self._database is None:
            return *server, 0.0
        main = psutil.Process(self._database)
        return *server, _pss([main, *main.children()])


def _pss(processes):
    total = 0
    for one in processes:
        with contextlib.suppress(psutil.Error, AttributeError):
            total += one.memory_full_info().pss
    return total / MIB


def _anonymous(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Pss_Anon:")) / 1024
    return 0.0


def cpu_of(pids):
    """Give the CPU seconds of processes and of the children that they waited for."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            for one in (psutil.Process(pid), *psutil.Process(pid).children()):
                with contextlib.suppress(psutil.Error):
                    total += sum(one.cpu_times()[:2])
    return total


def load(port, mode, args, number, pids):
    """Run the load generator; give what it measured, and how many cores the processes `pids` used meanwhile."""
    spec = {
        "port": port, "mode": mode, "seconds": args.seconds, "warmup": 3, "connections": args.connections,
        "devices": args.devices, "first": number,
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.console.load", json.dumps(spec)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.readline()
        before, begun = cpu_of(pids), time.monotonic()
        process.stdin.write("go\n")
        process.stdin.flush()
        found = json.loads(process.stdout.readline())
        found["server_cpu"] = (cpu_of(pids) - before) / (time.monotonic() - begun)
        return found


class Engine:
    """One engine: its database, and what is measured on it."""

    def __init__(self, name, args, directory, server):
        self.name, self.args, self.directory, self.server = name, args, directory, server
        self.url = server.url("postgres") if server else f"sqlite:///{directory / 'console.db'}"
        self.rows = []

    def measure(self):
        store = Store.open(self.url)
        upgrade(store)
        seed.fill(store, self.args.devices, int(time.time()), progress)
        sizes = seed.sizes(store)
        say(f"\n## {self._title(store)}\n")
        say("Rows: " + ", ".join(f"{count:,} {name}" for name, count in sizes.items()))
        if self.args.recount:
            say(f"\nCounts equal a recount: {'yes' if seed.check(store) else 'NO'}")
        link, token = self._people(store)
        store.close()
        config = self.directory / "halo-server.toml"
        limits = "[limits]\nreports_per_minute = 1000000\nrequests_per_minute = 1000000\nservers_in_30_days = 1000000\n"
        config.write_text(f'database_url = "{self.url}"\n{limits}')
        replica = Replica(self.directory, self.name, config)
        try:
            replica.start()
            self._serve(replica, link, token)
        finally:
            replica.close()
        self._floors()
        self._reports()

    def _title(self, store):
        with store.read() as c:
            word = "sqlite_version()" if store.sqlite else "current_setting('server_version')"
            version = c.exec_driver_sql(f"SELECT {word}").scalar()
        return f"{'SQLite' if store.sqlite else 'PostgreSQL'} {version}"

    def _people(self, store):
        now = int(time.time())
        with store.write() as c:
            token = tokens.issue_api(c, name="bench", role=Role.ADMIN, now=now, days=1, by="bench")
            return login.make_link(c, now=now), token

    def _serve(self, replica, link, token):
        memory = Memory(replica.process.pid, self.server.pid if self.server else None)
        begun = memory.all()
        self.pids = [replica.process.pid, *([self.server.pid] if self.server else [])]
        browser = Browser(replica.port, link, token)
        if self.args.rounds:
            self._pages(browser)
        after_pages = memory.all()
        self.loads = {}
        for number, mode in enumerate(("unchanged", "changed")):
            first = number * 1_000_000 + int(time.time()) % 100_000
            self.loads[mode] = load(replica.port, mode, self.args, first, self.pids)
            progress(f"{mode}: {self.loads[mode]}")
        self.memory = {"started": begun, "after the pages": after_pages, "after the reports": memory.all()}

    def _pages(self, browser):
        say(f"\n### Pages and lists, {self.args.rounds} requests each\n")
        say("| what | p50 ms | p95 ms | CPU ms each | largest KiB | p95 / budget |")
        say("|---|--:|--:|--:|--:|--:|")
        late = []
        for name, paths in cases(browser):
            before = cpu_of(self.pids)
            times, size = browser.timed(paths, self.args.rounds)
            cpu = (cpu_of(self.pids) - before) / (len(times) + 1)
            p50, p95 = times[len(times) // 2], times[int(len(times) * 0.95)]
            say(
                f"| `{name}` | {p50 * 1000:.1f} | {p95 * 1000:.1f} | {cpu * 1000:.1f} | {size / 1024:.0f} | {p95 / PAGE_BUDGET:.2f} |"
            )
            if p95 > PAGE_BUDGET:
                late.append(name)
        say(f"\nBeyond the budget of {PAGE_BUDGET * 1000:.0f} ms at p95: {', '.join(late) or 'none'}")

    def _floors(self):
        store = Store.open(self.url)
        count = min(self.args.devices, fleet.LOADED)
        floor.lay_out(store, count)
        store.close()
        self.floors = {}
        seconds = max(3, self.args.seconds // 2)
        for mode in BUDGETS:
            if self.server is None:
                path = self.url.removeprefix("sqlite:///")
                self.floors[mode] = floor.sqlite_loop(path, mode, count, seconds)
            else:
                clients = 4 if mode == "unchanged" else 1
                self.floors[mode] = floor.pgbench(
                    self.server.programs, self.server.directory, "postgres", mode, count, seconds, clients
                )

    def _reports(self):
        say(f"\n### Reports, {self.args.connections} connections, {self.args.seconds} s\n")
        say(
            "| reports | accepted a second | p50 ms | p95 ms | p99 ms | budget | floor a second | share of the floor"
            " | cores used: server and database, load | accepted per second of CPU |"
        )
        say("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        for mode, budget in BUDGETS.items():
            one, least = self.loads[mode], self.floors[mode]
            rate = one["accepted"] / one["seconds"]
            shown = f"≥ {budget:,}" if self.server else ""
            times = " | ".join(f"{one[key] * 1000:.1f}" for key in ("p50", "p95", "p99"))
            say(
                f"| {mode} ({one['bytes'] / 1024:.0f} KiB) | {rate:,.0f} | {times} | {shown} | {least:,.0f}"
                f" | {rate / least:.0%} | {one['server_cpu']:.2f}, {one['cpu']:.2f}"
                f" | {rate / (one['server_cpu'] + one['cpu']):,.0f} |"
            )
        others = {mode: one["others"] for mode, one in self.loads.items() if one["others"]}
        say(f"\nOther answers: {json.dumps(others) if others else 'none'}")
        say("\n| memory, PSS in MiB | halo-server | of it anonymous | database |\n|---|--:|--:|--:|")
        for when, (server, anonymous, database) in self.memory.items():
            say(
                f"| {when} | {server:.0f} | {anonymous:.0f} | {f'{database:.0f}' if self.server else 'in it'} |"
            )


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Figures of the console beside their floors.")
    parser.add_argument("--devices", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=20, help="of each load, after 3 s to warm up")
    parser.add_argument("--rounds", type=int, default=40, help="requests for each page and list; 0: none")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--engines", default="postgresql,sqlite")
    parser.add_argument(
        "--recount", action="store_true", help="compare the counts with a recount, which takes minutes"
    )
    args = parser.parse_args()
    say(f"# The console at {args.devices:,} devices\n")
    say(
        f"{os.cpu_count()} cores ({platform.processor() or platform.machine()}), {platform.system()} {platform.release()},"
    )
    say(
        f"Python {platform.python_version()}. `python -m tests.bench.console.run {' '.join(sys.argv[1:])}`".rstrip()
    )
    for name in args.engines.split(","):
        with tempfile.TemporaryDirectory(prefix="halod-bench-") as folder, contextlib.ExitStack() as stack:
            server = None
            if name == "postgresql":
                # The size of a small database server; the defaults are from another time.
                sized = (
                    "shared_buffers=512MB",
                    "max_wal_size=2GB",
                    "effective_cache_size=2GB",
                    "random_page_cost=1.1",
                )
                server = stack.enter_context(support_postgres.running(durable=True, settings=sized))
            Engine(name, args, Path(folder), server).measure()
    return 0


if __name__ == "__main__":
    sys.exit(main())
