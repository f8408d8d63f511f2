# SPDX-License-Identifier: Apache-2.0
"""The roles of a running service as /proc shows them: who they are, what they hold, and that one is missed."""

import os
import pwd
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.guard import HANG
from tests.support.service import IS_ROOT, ROOT, service

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's /proc")


def fields(pid):
    """Give the fields of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}


def opened(pid):
    """Give what the descriptors of a process are."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
    return found


def inet_sockets(pid):
    """Give the inodes of a process's TCP and UDP sockets."""
    own = {inode for target in opened(pid).values() for inode in re.findall(r"socket:\[(\d+)\]", target)}
    known = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        path = Path(f"/proc/{pid}/net/{table}")
        if path.exists():
            known |= {line.split()[9] for line in path.read_text().splitlines()[1:]}
    return own & known


@pytest.mark.skipif(not IS_ROOT, reason="only root gives rights away")
def test_no_role_holds_more_than_it_needs():
    """Uids, groups, capabilities, descriptors and network of supervisor, agent and watcher."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        agent, watcher = run.agent(), run.watcher()
        nobody = pwd.getpwnam("nobody")
        for pid, uid, gid in ((agent, nobody.pw_uid, nobody.pw_gid), (watcher, run.uid, run.gid)):
            status = fields(pid)
            assert status["Uid"] == [str(uid)] * 4
            assert status["Gid"] == [str(gid)] * 4
            assert {
                int(status[name][0], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
            } == {0}
            assert status["NoNewPrivs"] == ["1"]
            assert inet_sockets(pid) == set()
        assert fields(run.process.pid)["Uid"] == ["0"] * 4
        assert fields(run.process.pid)["Threads"] == ["1"]
        assert fields(watcher)["Seccomp"] == ["2"]
        assert inet_sockets(run.process.pid) == set()
        run.stop()


@pytest.mark.skipif(not IS_ROOT, reason="the kernel shows what these processes hold to root only")
def test_what_is_open():
    """The watcher holds its pipes and inotify; the agent nothing below a home; the supervisor neither."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        for pid in (run.process.pid, run.agent(), run.watcher()):
            assert not [target for target in opened(pid).values() if target.startswith(str(run.home))]
        watcher = {re.sub(r"\[\d+\]", "", target) for target in opened(run.watcher()).values()}
        assert watcher <= {"/dev/null", "pipe:", "anon_inode:inotify", "anon_inode:[eventpoll]"}
        kinds = [target for target in opened(run.process.pid).values() if target.startswith("/")]
        assert {"/dev/null", str(run.directory / "stderr")} >= set(kinds)
        run.stop()


def test_an_agent_that_dies_ends_the_service():
    """SIGKILL on the agent: everything ends, exit code 1, one line."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        watcher = run.watcher()
        os.kill(run.agent(), signal.SIGKILL)
        assert run.process.wait(HANG) == 1
        assert len(run.events("agent-died")) == 1
        run.wait(lambda: not os.path.exists(f"/proc/{watcher}"))


def test_a_watcher_that_dies_is_started_again():
    """SIGKILL on a watcher: a new one after a second, changes meanwhile are found, one line each side."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        first = run.watcher()
        os.kill(first, signal.SIGKILL)
        run.wait(lambda: run.events("watcher-lost"))
        run.write_servers(missed={"url": "https://mcp.example.net/CANARYpath"})
        run.wait(lambda: run.children()["watcher"] not in ([], [first]))
        run.wait(lambda: run.findings() == ["missed"])
        run.stop()


def test_a_watcher_that_is_stopped_is_started_again():
    """SIGSTOP, which its own account may send: it would seem to watch, so it is lost like one that died."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        first = run.watcher()
        os.kill(first, signal.SIGSTOP)
        run.wait(lambda: run.events("watcher-lost"))
        run.write_servers(missed={"url": "https://mcp.example.net/CANARYpath"})
        run.wait(lambda: run.children()["watcher"] not in ([], [first]))
        run.wait(lambda: run.findings() == ["missed"])
        run.wait(lambda: not os.path.exists(f"/proc/{first}"))
        run.stop()


def test_a_supervisor_that_dies_takes_everything_along():
    """SIGKILL on the supervisor: agent and watcher see it and end."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        pids = [run.agent(), run.watcher()]
        run.process.kill()
        run.process.wait(HANG)
        run.wait(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


def test_a_service_leaves_no_zombie_and_no_descriptor():
    """Five reloads leave the supervisor with the processes and descriptors that it had."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        run.watcher()
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        before = len(opened(run.process.pid))
        for count in range(2, 7):
            run.process.send_signal(signal.SIGHUP)
            run.wait_for_cycle(count)
        run.watcher()
        run.wait(lambda: len(opened(run.process.pid)) == before)
        children = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children")
        run.wait(lambda: len(children.read_text().split()) == 2)
        run.stop()


def test_the_supervisor_loads_no_network_watcher_settings_or_log_library():
    """What the supervisor imports is what workers need, and nothing that only others do."""
    code = (
        "import sys\n"
        "import halod.cli.run, halod.roles.service, halod.roles.watcher, halod.roles.notify, halod.roles.trust\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=HANG
    )
    loaded = set(done.stdout.split())
    unwanted = {
        "psutil",
        "httpx",
        "httpcore",
        "watchdog",
        "structlog",
        "ssl",
        "asyncio",
        "logging",
        "threading",
    }
    assert loaded & unwanted - {"threading"} == set()
    assert not [name for name in loaded if name.startswith(("halod.agent", "halod.settings", "halod.logs"))]
