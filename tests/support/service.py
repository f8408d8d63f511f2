# SPDX-License-Identifier: Apache-2.0
"""A whole `halod run` for tests: a supervisor process of its own, its children, and what it says.

As root the scanned account is one that does not exist on the system, and the agent runs as `nobody`; else all
roles run as the caller.
"""

import contextlib
import json
import os
import pathlib
import pwd
import signal
import socket
import subprocess
import sys

from tests.support.guard import HANG, until
from tests.support.roles import GID, UID, public_directory

ROOT = pathlib.Path(__file__).resolve().parents[2]
IS_ROOT = os.geteuid() == 0
POLICY = """\
rings: [ring0]
mcp:
  servers:
    - id: tools
      package: {type: npm, identifier: "@acme/tools", version: 1.2.0}
"""


class Service:
    """Settings, a home and a state directory; `start` runs the service in them."""

    def __init__(self, directory):
        self.directory = directory
        self.home = directory / "home"
        self.home.mkdir()
        self.state = directory / "state"
        self.policy = directory / "halos.yaml"
        self.policy.write_text(POLICY)
        self.uid, self.gid = (UID, GID) if IS_ROOT else (os.getuid(), os.getgid())
        self.accounts = [{"name": "dev", "uid": self.uid, "gid": self.gid, "home": str(self.home)}]
        self.tables = {
            "device": {"accounts": ["dev"], "agent_account": "nobody", "ring": "ring0"},
            "policy": {"path": str(self.policy)},
            "state": {"dir": str(self.state)},
            "log": {"format": "json"},
        }
        self.environment = {}
        self.console = None
        self.process = None
        self.write_servers(notes={"command": "npx", "args": ["-y", "CANARY-package@1.0.0", "CANARYarg"]})
        self.settings()

    def settings(self, **tables):
        """Write halod.toml: `tables` replace keys of tables, None takes one away."""
        for name, keys in tables.items():
            self.tables.setdefault(name, {}).update(keys)
        lines = []
        for name, keys in self.tables.items():
            lines.append(f"[{name}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items() if value is not None]
        (self.directory / "halod.toml").write_text("\n".join(lines) + "\n")

    def write_servers(self, **servers):
        """Save ~/.cursor/mcp.json as editors do: a new file renamed over the old one."""
        folder = self.home / ".cursor"
        folder.mkdir(exist_ok=True)
        beside = folder / ".mcp.json.new"
        beside.write_text(json.dumps({"mcpServers": servers}))
        if IS_ROOT:
            for path in (self.home, folder, beside):
                os.chown(path, self.uid, self.gid)
        beside.rename(folder / "mcp.json")

    def start(self, *, once=False):
        """Start the service."""
        options = self.directory / "options.json"
        told = {"config": str(self.directory / "halod.toml"), "once": once, "accounts": self.accounts}
        if self.console is not None:
            told["console"] = self.console
        options.write_text(json.dumps(told))
        environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
        environment.pop("NOTIFY_SOCKET", None)
        with open(self.directory / "stderr", "ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.support.run_service", str(options)],
                cwd="/",
                env={**environment, "PYTHONPATH": str(ROOT), **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        return self

    def run_once(self):
        """Run one cycle; give the exit code."""
        self.start(once=True)
        return self.process.wait(HANG)

    def stop(self, number=signal.SIGTERM):
        """End it: its agent ends by itself, out of whatever it does, and is not killed."""
        self.process.send_signal(number)
        self.process.wait(HANG)
        assert not self.events("agent-stuck")

    def lines(self):
        """Give what was logged, line by line."""
        path = self.directory / "stderr"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) if line.startswith("{") else {"text": line} for line in text.splitlines()]

    def events(self, event):
        """Give the lines of one event, or with one code."""
        return [line for line in self.lines() if event in (line.get("event"), line.get("code"))]

    def cycles(self):
        return self.events("cycle")

    def status(self):
        """Give the last status, None before the first."""
        path = self.state / "last-status.json"
        return json.loads(path.read_text()) if path.exists() else None

    def findings(self):
        status = self.status()
        return [] if status is None else [row["server"] for row in status["mcpDrift"]]

    def wait(self, condition):
        """Poll until a condition holds; fail after a deadline, with what was logged."""
        until(condition, lambda: f"the service said {self.lines()}", step=0.02)

    def wait_for_cycle(self, count=1):
        self.wait(lambda: len(self.cycles()) >= count)

    def children(self):
        """Give the roles of the processes: {"agent": [pid], "watcher": [pid], "worker": [pid]}."""
        found = {"agent": [], "watcher": [], "other": []}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            with contextlib.suppress(OSError, IndexError):
                stat = pathlib.Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                if int(stat[1]) != self.process.pid or stat[0] == "Z":
                    continue
                leader = int(stat[3]) == int(name)  # watchers and workers have a session of their own
                role = "agent" if not leader else "watcher" if _lasts(name, int(stat[19])) else "other"
                found[role].append(int(name))
        return found

    def agent(self):
        """Give the agent's pid."""
        return self._one("agent")

    def watcher(self):
        """Give the watcher's pid."""
        return self._one("watcher")

    def _one(self, role):
        found = []

        def there():
            found[:] = self.children()[role]
            return len(found) == 1

        self.wait(there)
        return found[0]

    def ask(self, request, uid=None):
        """Ask on the control socket, as another account when given; the reply as decoded JSON."""
        path = self.state / "run" / "halod.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(HANG)
            sock.connect(str(path))
            sock.sendall(json.dumps(request).encode() + b"\n")
            data = b""
            while chunk := sock.recv(65536):
                data += chunk
        return json.loads(data)

    def written(self):
        """Give every byte that the service wrote."""
        return (
            b"".join(path.read_bytes() for path in self.state.rglob("*") if path.is_file())
            + (self.directory / "stderr").read_bytes()
        )


def _lasts(pid, started):
    """Tell a watcher from a worker: by its inotify, or, where /proc does not show that, by its age."""
    if IS_ROOT:
        with contextlib.suppress(OSError):
            return any(
                "inotify" in os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")
            )
        return False
    up = float(pathlib.Path("/proc/uptime").read_text().split()[0])
    return up - started / os.sysconf("SC_CLK_TCK") > 1


@contextlib.contextmanager
def service():
    """Give a Service; whatever still runs is ended."""
    with public_directory() as directory:
        if IS_ROOT:
            pwd.getpwnam("nobody")
        made = Service(directory)
        try:
            yield made
        finally:
            if made.process is not None and made.process.poll() is None:
                made.process.kill()
                made.process.wait(HANG)
            if (directory / "stderr").exists():
                assert b"CANARY" not in made.written()
                assert b"Traceback" not in (directory / "stderr").read_bytes()


class Manager:
    """A service manager that listens: a NOTIFY_SOCKET."""

    def __init__(self, address):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.settimeout(0.05)
        self.sock.bind(address)
        if not address.startswith("\0"):
            os.chmod(address, 0o666)
        self.address = "@" + address[1:] if address.startswith("\0") else address
        self.words = []

    def read(self):
        """Give every word so far."""
        with contextlib.suppress(TimeoutError):
            while True:
                self.words += self.sock.recv(4096).decode().splitlines()
        return self.words

    def close(self):
        self.sock.close()
