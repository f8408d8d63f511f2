# SPDX-License-Identifier: Apache-2.0
"""`make fuzz MINUTES=n`: every target in turn under atheris, two processes at a time, with a time for each.

First a million mutated definitions are judged without coverage guidance (`--mutations`), which is faster; then
each target gets its share of the minutes, in slices, so that a short run reaches all of them. What was learnt
stays in build/fuzz/corpus for the next run; an input that breaks a target goes to tests/fuzz/regressions,
where pytest runs it from then on. Exit status 1 when there was one.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests" / "fuzz"
WORK = ROOT / "build" / "fuzz"
PROCESSES = 2
SLICES = 2
WEIGHT = {"approval": 3, "reader": 3, "launch": 2, "policy": 2, "json-pruned": 2}
UNITS = re.compile(rb"stat::number_of_executed_units:\s*(\d+)")


class Job:
    """One child: a target, and what it is started with."""

    def __init__(self, target, arguments, limit):
        self.target = target
        self.arguments = arguments
        self.limit = limit
        self.log = WORK / "logs" / f"{target}-{os.getpid()}-{id(self)}.log"
        self.child = None
        self.end = 0.0

    def start(self):
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            command = [sys.executable, "-m", "tests.fuzz.child", self.target, *self.arguments]
            self.child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.end = time.monotonic() + self.limit

    def over(self):
        """None while it runs, else whether it ended well."""
        code = self.child.poll()
        if code is None and time.monotonic() > self.end:
            self.child.kill()
            self.child.wait()
            return False
        return None if code is None else code == 0

    def executions(self):
        return sum(int(number) for number in UNITS.findall(self.log.read_bytes()))


def guided(target, seconds):
    """A slice of a target's time under atheris."""
    corpus, found = WORK / "corpus" / target, WORK / "found" / target
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    seeds = FUZZ / "corpus" / target
    folders = [
        str(corpus),
        *[str(folder) for folder in (seeds, FUZZ / "regressions" / target) if folder.is_dir()],
    ]
    options = [f"-max_total_time={max(int(seconds), 1)}", "-timeout=25", "-rss_limit_mb=3000", "-max_len=4096",
               "-print_final_stats=1", "-close_fd_mask=1", f"-artifact_prefix={found}/"]  # fmt: skip
    return Job(target, [*options, *folders], seconds + 120)


def counted(target, count, seed):
    found = str(WORK / "found" / target)
    return Job(target, ["--count", str(count), "--seed", str(seed), "--found", found], 3600)


def work(jobs):
    """Run the jobs, two at a time; gives executions by target and the names that ended badly."""
    waiting, running, done, bad = list(jobs), [], {}, []
    while waiting or running:
        while waiting and len(running) < PROCESSES:
            running.append(waiting.pop(0))
            running[-1].start()
        for job in list(running):
            well = job.over()
            if well is None:
                continue
            running.remove(job)
            done[job.target] = done.get(job.target, 0) + job.executions()
            if not well:
                bad.append(job.target)
                print(f"{job.target}: ended badly; the end of its log:")
                sys.stdout.write(
                    "\n".join(
                        line
                        for line in job.log.read_text("utf-8", "replace").splitlines()
                        if "INFO:" not in line
                    )[-3000:]
                )
        time.sleep(0.2)
    return done, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--mutations", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    from tests.fuzz.targets import TARGETS

    names = args.only or list(TARGETS)
    start, total, bad = time.monotonic(), {}, []
    plans = []
    if args.mutations and "approval" in names:
        parts = 4
        plans.append(
            [counted("approval", args.mutations // parts, args.seed + part) for part in range(parts)]
        )
    share = sum(WEIGHT.get(name, 1) for name in names)
    second = args.minutes * 60 * PROCESSES / share / SLICES
    plans += [
        [guided(name, second * WEIGHT.get(name, 1)) for name in names]
        for _ in range(SLICES if args.minutes else 0)
    ]
    for jobs in plans:
        done, failed = work(jobs)
        for name, number in done.items():
            total[name] = total.get(name, 0) + number
        bad += failed
    for name, number in sorted(total.items()):
        print(f"{name:<16}{number:>14,} executions{'   BROKEN' if name in bad else ''}")
    took = time.monotonic() - start
    print(
        f"{'all':<16}{sum(total.values()):>14,} executions in {took / 60:.1f} min (seed {args.seed}), {len(set(bad))} broken"
    )
    for path in (WORK / "found").glob("*/*"):
        kept = FUZZ / "regressions" / path.parent.name
        kept.mkdir(parents=True, exist_ok=True)
        shutil.move(path, kept / path.name)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
