# SPDX-License-Identifier: Apache-2.0
"""`make launch-check`: what the real launchers run, compared with what is approved (design 5, "the one property").

    python -m tests.launchcheck.run [--mutants N] [--insertions N] [--seed N]

Each definition runs in a fresh home, cache and directory, as a child with a time limit, against package servers on
loopback; the honest ones are the ambient setting. Where the kernel allows it the whole run has a network namespace of its
own, so that nothing else can be reached. Fails when an approved definition runs anything but a pinned program of the
honest servers, when one of the plain approved definitions does not run, or when no hijack ran EVIL (a blind check).
"""

import argparse
import concurrent.futures
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.approval import judge
from tests.launchcheck.definitions import approved, hijacks, insertions, mutants, program

LIMIT = 120.0
AGAIN = 3
PINNED = {
    f"honest {name} 1.2.0" for name in ("@acme/tool", "acme-tool", "mcp-remote", "supergateway", "mcp-proxy")
}
RAN = re.compile(r"RAN (\S+ \S+ \S+)")
TOOLS = {"npx": "npm", "npm": "npm", "uvx": "uv", "uv": "uv", "pipx": "pipx"}


def alone():
    """Enter a network namespace with loopback only; False where that cannot be done."""
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:  # CLONE_NEWNET
            return False
        with socket.socket() as plug:
            fcntl.ioctl(plug, 0x8914, struct.pack("16sh22x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
    except (AttributeError, OSError):
        return False
    return True


def tools():
    """The launchers that are here, by name; says what is missing."""
    folder = os.path.dirname(sys.executable)
    path = os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])
    found = {name: shutil.which(name, path=path) for name in TOOLS}
    for name in ("npx", "uvx", "pipx"):
        print(f"launch-check: {name}: {'found' if found[name] else 'skipped, it is not installed'}")
    docker = shutil.which("docker") or shutil.which("podman")
    works = (
        docker
        and subprocess.run([docker, "info"], capture_output=True, timeout=20, check=False).returncode == 0
    )
    print(
        f"launch-check: containers: {'no registry to pull from is served' if works else 'skipped, no engine answers'}"
    )
    return {name for name, place in found.items() if place}, path


def surroundings(home, urls, path):
    """What a client would pass on: a home, a path, and the honest servers as the person's own settings."""
    return {
        "HOME": home, "PATH": path, "TERM": "dumb", "LANG": "C.UTF-8", "npm_config_registry": urls["honest npm"],
        "npm_config_cache": f"{home}/npm", "npm_config_update_notifier": "false", "npm_config_fetch_retries": "0",
        "UV_DEFAULT_INDEX": urls["honest pypi"], "UV_PYTHON_DOWNLOADS": "never", "UV_CACHE_DIR": f"{home}/uv",
        "UV_HTTP_TIMEOUT": "10", "PIP_INDEX_URL": urls["honest pypi"], "PIPX_HOME": f"{home}/pipx",
        "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost",
    }  # fmt: skip


def launch(definition, urls, path):
    """Run a definition; gives the programs that said what they are, and what the launcher said."""

    def real(text):
        return text.replace("EVIL-NPM", urls["EVIL npm"]).replace("EVIL-PYPI", urls["EVIL pypi"])

    with tempfile.TemporaryDirectory() as home:
        work = Path(home) / "work"
        work.mkdir()
        environment = surroundings(home, urls, path)
        for key, value in definition.env:
            if "=" not in key and "\0" not in key + value and key:
                folded = {
                    old
                    for old in environment
                    if old.lower() == key.lower() and key.lower().startswith("npm_")
                }
                for old in folded:
                    del environment[old]
                environment[key] = real(value)
        words = [definition.command, *map(real, definition.args)]
        place = shutil.which(words[0], path=environment["PATH"])
        if place is None:
            return set(), ""
        child = subprocess.Popen(
            words, executable=place, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            out, said = child.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, said = child.communicate()
        return set(RAN.findall(out.decode("utf-8", "replace"))), said.decode("utf-8", "replace")


class Tally:
    def __init__(self):
        self.faults = []
        self.counts = {"pinned": 0, "other": 0, "nothing": 0}
        self.approved = 0

    def add(self, definition, ran, *, must_run=False):
        """Compare one: what ran beside what is approved."""
        kind = judge().judge(definition).kind
        outcome = "nothing" if not ran else "pinned" if ran <= PINNED else "other"
        self.counts[outcome] += 1
        self.approved += kind == "approved"
        line = ascii([definition.command, *definition.args, dict(definition.env)])
        if kind == "approved" and outcome == "other":
            self.faults.append(f"FALSE APPROVAL: {line} ran {sorted(ran)}")
        if must_run and outcome != "pinned":
            self.faults.append(f"an approved definition did not run its program: {line} ran {sorted(ran)}")


def again(definition, urls, path, result):
    """Run a definition that ran nothing once more, alone: beside others its fetch may have been cut off."""
    for _ in range(AGAIN):
        if result[0]:
            break
        line = ascii([definition.command, *definition.args])
        print(f"launch-check: nothing ran, once more: {line}: {result[1][-400:]!a}")
        result = launch(definition, urls, path)
    return result


def check(mutated, inserted, seed):
    """Run everything; gives the tally and how many hijacks ran EVIL or another program."""
    here, path = tools()
    if not here:
        return None, 0
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.launchcheck.servers"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        urls = json.loads(server.stdout.readline())
        plain = [one for one in approved() if program((one.command, *one.args)) in here]
        known = [
            one
            for one in hijacks()
            if program((one.command, *one.args)) in here or one.command in {"env", "sh"}
        ]
        sample = [one for name in ("npx", "uvx") if name in here for one in mutants(mutated, seed, name)]
        sample += [one for one in insertions(inserted, seed) if one.command in here]
        tally, hijacked = Tally(), 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            results = list(pool.map(lambda one: launch(one, urls, path), [*plain, *known, *sample]))
        for number, (one, result) in enumerate(zip([*plain, *known, *sample], results, strict=True)):
            # a login shell may set a PATH of its own, without the launcher
            must_run = number < len(plain) and "-lc" not in one.args
            ran, _ = again(one, urls, path, result) if must_run else result
            tally.add(one, ran, must_run=must_run)
            hijacked += len(plain) <= number < len(plain) + len(known) and bool(ran - PINNED)
    finally:
        server.stdin.close()
        server.wait(LIMIT)
    return tally, hijacked


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--insertions", type=int, default=150)
    parser.add_argument("--seed", type=int, default=20261130)
    args = parser.parse_args()
    start = time.monotonic()
    print(f"launch-check: network: {'a namespace of its own' if alone() else 'loopback by settings only'}")
    tally, hijacked = check(args.mutants, args.insertions, args.seed)
    if tally is None:
        print("launch-check: skipped, no launcher is installed")
        return 0
    if not hijacked:
        tally.faults.append("no hijack ran anything: the check sees nothing")
    for fault in tally.faults:
        print(fault)
    print(
        f"launch-check: {sum(tally.counts.values())} definitions, {tally.approved} approved; ran the pinned program "
        f"{tally.counts['pinned']}, another {tally.counts['other']} ({hijacked} known hijacks), nothing "
        f"{tally.counts['nothing']}; {len(tally.faults)} faults in {time.monotonic() - start:.0f} s"
    )
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
