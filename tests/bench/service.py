# SPDX-License-Identifier: Apache-2.0
"""Figures of the running service beside the budgets of design 11: `python tests/bench/service.py [--seconds N]`.

Prints, and never fails. Everything is run in a directory of its own with a home of `mkhome.py`.
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
from datetime import date

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from halod.policy.load import parse  # noqa: E402
from halod.policy.scope import scope  # noqa: E402
from halod.roles import order  # noqa: E402
from halod.roles.limits import Limits  # noqa: E402
from halod.roles.protocol import Target  # noqa: E402
from halod.roles.supervisor import Pool, pause  # noqa: E402
from tests.support.service import service  # noqa: E402


def policy(entries):
    """Give a policy of so many servers."""
    rows = [
        f"    - {{id: tool-{n}, package: {{type: npm, identifier: '@acme/tool-{n}', version: 1.{n}.0}}}}"
        for n in range(entries)
    ]
    return ("rings: [ring0]\nmcp:\n  servers:\n" + "\n".join(rows) + "\n").encode()


def scans(home, uid, gid, entries, count=300):
    """Measure one account's scan as the service does it: fork, confine, read, judge, answer, reap; in ms."""
    registry = scope(parse(policy(entries), "bench"), "", (), date(2026, 11, 30))
    payload = order.encode(order.Plan(registry=registry))
    pool = Pool(order.scan, limits=Limits())
    spent, failures = [], 0
    used = processor()
    for number in range(count):
        began = time.perf_counter()
        pool.submit(order.Ordered.to(number, Target(1, uid, gid, (), str(home)), payload))
        pool.step()
        while pool.busy:
            pause(pool)
            failures += sum(ended.failure is not None for ended in pool.step())
        spent.append((time.perf_counter() - began) * 1000)
    used = 1000 * (processor() - used) / count
    decoding = []
    for _ in range(50):
        began = time.perf_counter()
        order.decode(payload)
        decoding.append((time.perf_counter() - began) * 1000)
    return spent, used, failures, len(payload), statistics.median(decoding)


def processor():
    """Give the processor time of this process and of its reaped children, in seconds."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def quantile(values, part):
    """Give a quantile of values."""
    return sorted(values)[min(len(values) - 1, round(part * (len(values) - 1)))]


def processes(parent):
    """Give a process and its children."""
    children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *map(int, children)]


def pss(pid):
    """Give a process's proportional set size in MiB."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def ticks(pid):
    """Give the processor time of a process and of its reaped children, in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, fields[11:13]))
    waited = sum(map(int, fields[13:15])) if pid else 0
    return (own + waited) / os.sysconf("SC_CLK_TCK")


def bench_home(directory, uid, gid):
    """Make the generated home of the benchmark and give its path."""
    home = directory / "home"
    subprocess.run(
        [sys.executable, str(ROOT / "tests/bench/mkhome.py"), str(home)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    if os.geteuid() == 0:
        for path in [home, *home.rglob("*")]:
            os.chown(path, uid, gid, follow_symlinks=False)
    return home


def rewriting(run, seconds):
    """Rewrite ~/.claude.json once a second; give the processor time of every process in percent of one core."""
    file = run.home / ".claude.json"
    text = file.read_text()
    pids = processes(run.process.pid)
    before = [ticks(pid) for pid in pids]
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        document = json.loads(text)
        document["numStartups"] = count
        beside = file.with_suffix(".new")
        beside.write_text(json.dumps(document))
        if os.geteuid() == 0:
            os.chown(beside, run.uid, run.gid)
        beside.rename(file)
        count += 1
        time.sleep(1)
    after = [ticks(pid) for pid in pids]
    return [100 * (late - early) / seconds for early, late in zip(before, after, strict=True)]


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60, help="of rewriting ~/.claude.json")
    seconds = parser.parse_args().seconds
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(service())
        home = bench_home(run.directory, run.uid, run.gid)
        for entries in (10, 100, 1000):
            spent, used, failures, size, decoding = scans(home, run.uid, run.gid, entries)
            print(
                f"scan of one account, {entries:>4} approved servers: median {statistics.median(spent):.1f} ms,"
                f" p99 {quantile(spent, 0.99):.1f} ms (budget 8 and 20), CPU {used:.1f} ms; order {size} bytes,"
                f" decoded in {decoding:.2f} ms; {failures} failed of {len(spent)}"
            )
        run.start()
        run.wait_for_cycle()
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        time.sleep(3)
        sizes = {pid: pss(pid) for pid in processes(run.process.pid)}
        print(f"idle PSS: {sum(sizes.values()):.1f} MiB of {len(sizes)} processes (budget 60):", end=" ")
        print(", ".join(f"{size:.1f}" for size in sizes.values()))
        if seconds:
            shares = rewriting(run, seconds)
            print(
                f"CPU with ~/.claude.json rewritten once a second, {seconds} s (scaled from a day):"
                f" {sum(shares):.2f} % of one core (budget 0.5): {', '.join(f'{share:.2f}' for share in shares)}"
            )
        run.stop()


if __name__ == "__main__":
    main()
