# SPDX-License-Identifier: Apache-2.0
"""`make run`: a console with a demonstration fleet, and an agent that scans this machine and reports to it.

What it shows is real but for the fleet, which is invented: `halo-server serve` on SQLite at loopback, a policy that is
signed with a throw-away key and published, an enrolment key, and `halod run`, which enrols, fetches the policy, scans
the caller's own home (`together_agent` tells what it does for root) and reports. Everything lies in one temporary
directory, which is removed at the end.

Ctrl-C or SIGTERM ends everything, exit 0; when a part ends by itself everything ends, exit 1.
"""

import argparse
import contextlib
import ctypes
import functools
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PORT = 8640
READY_SECONDS = 120
PATIENCE = 15
"""Seconds that a part has to end before it is killed."""
RING, UNITS = "ring1-canary", ["engineering"]
PREFIX = {"console": "36", "agent": "35", "run": "1"}
_PR_SET_PDEATHSIG = 1
_printing = threading.Lock()


class Failed(Exception):
    """Something did not work; one line of words."""


class Asked(Exception):
    """SIGINT or SIGTERM came."""


def say(who: str, line: str) -> None:
    """Write one line, with who says it before it."""
    head = f"{who:<7} |"
    if sys.stderr.isatty() and "NO_COLOR" not in os.environ:
        head = f"\x1b[{PREFIX[who]}m{head}\x1b[0m"
    with _printing:
        print(head, line, file=sys.stderr, flush=True)


class Part:
    """A program that stays up. What it writes is shown line by line."""

    def __init__(self, name: str, command: list[str], **environment: str) -> None:
        self.name = name
        self.last: deque[str] = deque(maxlen=1)
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C comes to this process alone, which ends the parts in order
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - one system call
        )
        self._reader = threading.Thread(target=self._show, daemon=True)
        self._reader.start()

    def _show(self) -> None:
        for line in self.process.stdout or ():
            text = line.rstrip()
            # The console's own welcome is indented; this program says it at its end.
            if text and not line.startswith("  "):
                self.last.append(text)
                say(self.name, text)

    def stop(self) -> None:
        """End it, and whatever it does not end itself; wait until it has."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            say("run", f"the {self.name} does not end; it is killed")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(2)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Together:
    """Console and agent, in one directory."""

    def __init__(self, directory: Path, args: argparse.Namespace) -> None:
        self.directory = directory
        self.halod, self.halo = args.halod_bin / "halod", args.halod_bin / "halo"
        self.python, self.server = args.halod_bin / "python", args.console_bin / "halo-server"
        self.console_python = args.console_bin / "python"
        self.listen = free_address(args.port)
        self.url = f"http://{self.listen}"
        self.fleet = args.devices
        self.parts: list[Part] = []
        self.asked = threading.Event()
        self.key = ""
        self.config = directory / "halod.toml"

    @functools.cached_property
    def console_options(self) -> list[str]:
        """What every command of the console is told."""
        return [
            "--config",
            str(self.directory / "halo-server.toml"),
            "--data-dir",
            str(self.directory / "console"),
        ]

    def run(self) -> int:
        """Start everything, say where it is, and stay until asked or until a part ends."""
        try:
            self._prepare()
            self._start(
                "console", [str(self.server), "serve", *self.console_options, "--log-format", "plain"]
            )
            self._wait("the console", self._ready)
            self._start("agent", self._agent())
            device = self._wait("the agent's first report", self._reported)
            self._welcome(device)
            while True:
                self._look()
        except Asked:
            say("run", "ending")
            return 0
        finally:
            for part in reversed(self.parts):
                part.stop()

    def _start(self, name: str, command: list[str]) -> None:
        say("run", f"$ {' '.join(_short(word) for word in command)}")
        self.parts.append(Part(name, command))

    # -- before ----------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Make the policy, the database, the fleet and the enrolment key."""
        say("run", "a throw-away key signs halod/console/demo/halos.yaml")
        self.key = self._command(self.halo, "keygen", "--out", str(self.directory / "halos.key")).strip()
        signed = self.directory / "halos.yaml.signed"
        policy = str(ROOT / "halod" / "console" / "demo" / "halos.yaml")
        self._command(
            self.halo, "sign", policy, "--key", str(self.directory / "halos.key"), "--out", str(signed)
        )
        settings = f'listen = "{self.listen}"\npolicy_keys = ["{self.key}"]\npolicy_org = "acme"\n'
        (self.directory / "halo-server.toml").write_text(settings, encoding="utf-8")
        say("run", f"{self.fleet} invented devices are put into a new database")
        seed = [
            str(self.console_python),
            "-P",
            str(ROOT / "tools" / "together_fleet.py"),
            *self.console_options,
        ]
        self._command(*seed, "--policy", str(signed), "--devices", str(self.fleet))
        enrol = ["enroll-key", "create", *self.console_options, "--name", "this-machine", "--days", "1"]
        key = self._command(self.server, *enrol, "--ring", RING, "--unit", UNITS[0], "--uses", "1").split()[
            -1
        ]
        _private(self.directory / "enroll.key", key)

    def _command(self, *words: str | Path) -> str:
        """Run a command to its end; give what it printed."""
        command = [str(word) for word in words]
        with subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        ) as process:  # fmt: skip
            while True:
                try:
                    out, errors = process.communicate(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    if self.asked.is_set():
                        process.kill()
                        raise Asked from None
        if process.returncode:
            said = errors.strip().splitlines() or [f"exit {process.returncode}"]
            raise Failed(f"{' '.join(_short(word) for word in command[:2])}: {said[-1]}")
        return out

    def _agent(self) -> list[str]:
        """Write the agent's settings; give the command that runs it."""
        account, home = _caller()
        tables = {
            "device": {"accounts": [account], "ring": RING, "units": UNITS, "agent_account": "nobody"},
            "policy": {"url": f"{self.url}/api/v1/policy", "public_keys": [self.key], "org": "acme"},
            "report": {
                "url": f"{self.url}/api/v1/fleet/report",
                "enroll_key_file": str(self.directory / "enroll.key"),
            },
            "state": {"dir": str(self.directory / "agent")},
            "log": {"format": "console"},
        }
        lines = []
        for name, table in tables.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
        self.config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if os.geteuid() != 0 and _known():
            return [str(self.halod), "run", "--config", str(self.config)]
        copy = self.directory / "demo-home"
        if os.geteuid() == 0:
            _copy_for_nobody(ROOT / "packaging" / "demo-home", copy)
        options = {"config": str(self.config), "name": account, "home": home, "copy": str(copy)}
        (self.directory / "options.json").write_text(json.dumps(options), encoding="utf-8")
        return [
            str(self.python),
            "-P",
            str(ROOT / "tools" / "together_agent.py"),
            str(self.directory / "options.json"),
        ]

    # -- while -----------------------------------------------------------------------------------

    def _look(self, seconds: float = 0.2) -> None:
        """Wait a moment.

        Raises:
            Asked: it is time to end.
            Failed: a part has ended.
        """
        if self.asked.wait(seconds):
            raise Asked
        for part in self.parts:
            code = part.process.poll()
            if code is not None:
                raise Failed(
                    f"the {part.name} ended by itself (exit {code}){''.join(f': {one}' for one in part.last)}"
                )

    def _wait(self, what: str, there) -> str:  # noqa: ANN001 - a function without arguments that gives text
        """Wait until `there` gives something."""
        end = time.monotonic() + READY_SECONDS
        while not (found := there()):
            if time.monotonic() > end:
                raise Failed(f"{what} did not come within {READY_SECONDS} s")
            self._look()
        return found

    def _ready(self) -> str:
        try:
            with contextlib.closing(http.client.HTTPConnection(self.listen, timeout=5)) as connection:
                connection.request("GET", "/readyz")
                return "ready" if connection.getresponse().status == 200 else ""
        except (OSError, http.client.HTTPException):
            return ""

    def _reported(self) -> str:
        """Give the device's id once its report has been taken."""
        try:
            said = json.loads(
                self._command(self.halod, "status", "--format", "json", "--config", self.config)
            )
        except (Failed, ValueError):
            return ""
        accepted = said.get("delivery", {}).get("accepted") and said.get("status")
        return str(said["status"]["device"]) if accepted else ""

    def _welcome(self, device: str) -> None:
        link = self._command(self.server, "login-link", *self.console_options).strip()
        more = " ".join(_short(word) for word in [str(self.server), "login-link", *self.console_options])
        lines = [
            "",
            f"  The console          {self.url}/",
            f"  This machine in it   {self.url}/devices/{device}",
            "",
            "  Sign in (once, within 15 minutes):",
            "",
            f"    {link}",
            "",
            f"  Another link:  {more}",
            "  Ctrl-C ends everything and removes its data.",
            "",
        ]
        with _printing:
            print("\n".join(lines), flush=True)


def free_address(port: int) -> str:
    """Give 127.0.0.1 with the port, or with a free one when that is taken."""
    for wanted in (port, 0):
        with socket.socket() as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", wanted))
            except OSError as error:
                say("run", f"port {wanted} cannot be used ({os.strerror(error.errno)}); a free one is taken")
                continue
            return f"127.0.0.1:{found.getsockname()[1]}"
    raise Failed("there is no free port on 127.0.0.1")


def _caller() -> tuple[str, str]:
    """Give name and home of the account that runs this."""
    try:
        entry = pwd.getpwuid(os.geteuid())
    except KeyError:
        return f"uid-{os.geteuid()}", os.environ.get("HOME", "/")
    return entry.pw_name, entry.pw_dir


def _known() -> bool:
    try:
        return bool(pwd.getpwuid(os.geteuid()))
    except KeyError:
        return False


def _private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")


def _copy_for_nobody(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    nobody = pwd.getpwnam("nobody")
    for path in (target, *target.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)


def _short(word: str) -> str:
    """Write a path of the checkout as from its root."""
    return word.removeprefix(f"{ROOT}/")


@contextlib.contextmanager
def _listening(asked: threading.Event) -> Iterator[None]:
    def note(_number: int, _frame: object) -> None:
        asked.set()

    before = {
        number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def short_directory() -> str:
    """Give the temporary directory, or /tmp where that is so long that a socket below it has no address.

    An address is at most 103 bytes on macOS, whose own temporary directories have half of that.
    """
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= 64 else "/tmp"  # noqa: S108 - mkdtemp makes an own one in it


def main() -> int:
    """Run it; give the exit code."""
    parser = argparse.ArgumentParser(
        description="A console with a demonstration fleet, and an agent beside it."
    )
    parser.add_argument("--halod-bin", type=Path, default=ROOT / ".venv" / "bin", help="where halod is")
    parser.add_argument("--console-bin", type=Path, default=ROOT / ".venv-console" / "bin")
    parser.add_argument("--port", type=int, default=PORT, help="a free one is taken when this is not")
    parser.add_argument("--devices", type=int, default=120, help="of the invented fleet")
    args = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="halod-run-", dir=short_directory()))
    directory.chmod(0o711)  # as root, the agent's account passes to its own directory in it
    try:
        together = Together(directory, args)
        with _listening(together.asked):
            return together.run()
    except Failed as failed:
        say("run", f"error: {failed}")
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
