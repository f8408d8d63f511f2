# SPDX-License-Identifier: Apache-2.0
"""`make run`: a console with a fleet, this machine in it by its own agent's report, and an end that leaves nothing."""

import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import httpx
import psutil
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.executable).parent
SECONDS = 150
DEVICES = 12


class Run:
    """tools/together.py, and what it wrote."""

    def __init__(self, directory, port=0):
        self.directory = directory
        self.errors = directory / "stderr"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-u", str(ROOT / "tools" / "together.py"), "--halod-bin", str(BIN)),
                    *("--console-bin", str(BIN), "--devices", str(DEVICES), "--port", str(port)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**environment, "TMPDIR": str(directory)},
                cwd=ROOT,
            )
        self.said = b""

    def until(self, pattern):
        """Read what it prints until a pattern is there; give the match."""
        end = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.said.decode())):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            assert data, f"it did not come: {self.said.decode()}\n{self.log()}"
            self.said += data
        return found

    def log(self):
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def below(self):
        """Give every process that it started, and those that these started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self, number):
        """Send a signal and give the exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def run():
    """Start one; whatever is left of it is ended."""
    started = []
    # Short, as a socket's address is at most 103 bytes; other accounts pass through it to their own.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="together-"))
    directory.chmod(0o711)

    def start(**options):
        started.append(Run(directory, **options))
        return started[-1]

    yield start
    for one in started:
        left = one.below() if one.process.poll() is None else []
        one.process.kill()
        one.process.wait(10)
        one.process.stdout.close()
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    shutil.rmtree(directory)


def gone(processes):
    """Wait until processes have ended; give those that have not."""
    return psutil.wait_procs(processes, timeout=20)[1]


def test_everything_is_there_and_everything_ends(run):
    """The link signs in; the fleet and this machine are among the devices; Ctrl-C ends all of it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        one = run(port=port)
        device = one.until(r"This machine in it +(http://127\.0\.0\.1:\d+)/devices/([0-9a-f]+)")
        link = one.until(r"http://\S+/login\?link=(\S+)")
    assert f"port {port} cannot be used" in one.log()
    assert "Ctrl-C" in one.until("Ctrl-C").string
    base = device[1]
    with httpx.Client(base_url=base, headers={"Origin": base}, follow_redirects=True, timeout=60) as browser:
        form = browser.get(link[0])
        assert form.status_code == 200
        action = re.search(r'<form method="post" action="([^"]+)"', form.text)[1]
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form.text))
        assert fields["link"] == link[1]
        assert browser.post(action, data=fields).status_code == 200
        listed = browser.get("/devices?limit=200")
        assert listed.status_code == 200
        assert listed.text.count('href="/devices/') > DEVICES - 2, "the invented fleet"
        assert device[2] in listed.text
        page = browser.get(f"/devices/{device[2]}")
        assert page.status_code == 200
        assert os.uname().nodename.partition(".")[0] in page.text
    started = one.below()
    assert len(started) >= 3, "the console, the supervisor of halod and its agent"
    assert one.end(signal.SIGINT) == 0, one.log()
    assert gone(started) == []
    assert list(one.directory.glob("halod-run-*")) == []
    assert link[1] not in one.log(), "a link that works is printed, not logged"
    assert "Traceback" not in one.log()


def test_one_part_that_ends_ends_the_others(run):
    """A console that is killed ends the agent, with one line and exit code 1."""
    one = run()
    one.until("Ctrl-C")
    started = one.below()
    console = next(process for process in started if "serve" in process.cmdline())
    console.kill()
    assert one.process.wait(60) == 1
    assert gone(started) == []
    lines = [line for line in one.log().splitlines() if "error:" in line and line.startswith("run ")]
    assert len(lines) == 1, one.log()
    assert "the console ended by itself" in lines[0]


def test_it_can_be_ended_at_once(run):
    """SIGTERM before anything is up ends it, too, and leaves no directory."""
    one = run()
    end = time.monotonic() + SECONDS
    while "invented devices" not in one.log():
        assert time.monotonic() < end
        select.select([], [], [], 0.02)
    assert one.end(signal.SIGTERM) == 0, one.log()
    assert list(one.directory.glob("halod-run-*")) == []
