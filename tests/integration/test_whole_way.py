# SPDX-License-Identifier: Apache-2.0
"""docs/whole-way.md is a real run: every command of it, with a service that fetches what was signed."""

import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.service import ROOT, service

PAGE = (ROOT / "docs" / "whole-way.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
# What another run prints otherwise. The columns of a diff and the words around all this stay.
CHANGES = (
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?: UTC|Z)", "TIME"),
    (r"\d{4}-\d\d-\d\d", "DAY"),
    (r"\bversion \d+", "version N"),
    (r"\bsha256:[0-9a-f]+", "sha256:HASH"),
    (r"^[A-Za-z0-9+/]{43}=$", "KEY"),
    (r"\btook \d+ ms", "took N ms"),
    (r"^next scan .*$", "next scan"),  # soon, or at the next interval
    (r"^sandbox .*$", "sandbox"),  # not every machine can confine
)


def blocks(language: str, page: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def plain(text: str) -> str:
    for pattern, word in CHANGES:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text


class Files(SimpleHTTPRequestHandler):
    """The server that holds the signed policy: any will do."""

    def log_message(self, *args):
        """Say nothing."""


class Way:
    """The commands of the page, in the directory of the platform team, beside a service."""

    def __init__(self, run):
        self.run = run
        self.work = run.directory / "work"
        self.served = run.directory / "served"
        self.work.mkdir()
        self.served.mkdir()
        self.server = ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Files, directory=str(self.served))
        )
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/halos.yaml.signed"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def command(self, line):
        """Run one line of the page; give what a terminal would show."""
        said = ""
        for part in line.split(" && "):
            words = shlex.split(part.partition(" 2>")[0])
            if words[0] == "cp":
                shutil.copy(self.work / words[1], self.served)
                continue
            if words[0] == "halod":
                words += ["--config", str(self.run.directory / "halod.toml")]
            said += self._halo(words, append=part.partition(">>")[2])
        return said

    def _halo(self, words, append):
        code = (
            f"import sys; from halod.cli{'.halo' if words[0] == 'halo' else ''} import main; sys.exit(main())"
        )
        done = subprocess.run(
            [sys.executable, "-u", "-c", code, *words[1:]],
            cwd=self.work,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if append else subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout
        if append:
            with open(self.work / append, "a") as file:
                file.write(done.stdout)
            return ""
        return done.stdout


@pytest.fixture
def way():
    with service() as run:
        made = Way(run)
        try:
            yield made
        finally:
            made.close()


def test_the_page_is_a_real_run(way):
    """Import, paste, validate, plan, sign, apply: each prints what the page says, and the finding is gone."""
    shown = [block.partition("\n") for block in blocks("console")]
    assert all(command.startswith("$ ") for command, _, _ in shown)
    (way.work / "halos.yaml").write_text(blocks("yaml")[0])
    cursor, document = blocks("json")
    (way.work / "server.json").write_text(document)
    way.run.write_servers(**json.loads(cursor)["mcpServers"])
    running = False
    for command, _, expected in shown:
        if command == "$ halod status":
            if running:
                way.run.process.send_signal(signal.SIGHUP)
            else:
                start(way)
            settle(way.run, [] if running else ["notes"])
            if not running:
                shutil.copy(way.run.state / "last-status.json", way.work / "status.json")
            running = True
        same(way.command(command.removeprefix("$ ")), expected)
    way.run.stop()


def start(way):
    """Start the service with the settings of the page, but for the address."""
    public = way.command("halo keygen --public halos.key").split()[-1]
    tables = tomllib.loads(blocks("toml")[0])
    policy = {**tables["policy"], "url": way.url, "public_keys": [public], "path": None}
    way.run.settings(device=tables["device"], policy=policy)
    way.run.start()


def test_the_readme_shows_the_same():
    """Every line of its section is one of the page, in this order."""
    section = README.partition("## The whole way")[2].partition("\n## ")[0]
    lines = [line for block in blocks("console", section) for line in block.splitlines() if line != "…"]
    assert len(lines) > 15
    rest = iter(PAGE.splitlines())
    assert [line for line in lines if line not in rest] == []


def settle(run, findings):
    """Wait until the fetched policy has been applied and the watcher is there."""
    run.wait(lambda: (run.status() or {}).get("digest") and run.findings() == findings)
    run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")


def same(said, expected):
    """Compare what was printed with the page, where a line with … stands for any number of lines."""
    first, *later = plain(expected).split("…\n")
    text = plain(said)
    if not later:
        assert text == first, text
    assert text[: len(first)] == first
    for part in later:
        assert part in text
    assert text.endswith(later[-1] if later else first)
