# SPDX-License-Identifier: Apache-2.0
"""`halod run` while it works: changes, signals, the service manager, callers, a second instance."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.support.guard import HANG
from tests.support.roles import in_child
from tests.support.server import TOKEN, running
from tests.support.service import IS_ROOT, ROOT, Manager, service

NOTES = {"command": "npx", "args": ["-y", "notes@1.0.0", "CANARYarg"]}
MORE = {"url": "https://mcp.example.net/CANARYpath"}


def test_a_change_is_found_soon():
    """A server that is added is in the status within seconds, without a timer; one that goes is resolved."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        run.watcher()
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        run.write_servers(notes=NOTES, more=MORE)
        run.wait(lambda: run.findings() == ["more", "notes"])
        run.write_servers(more=MORE)
        run.wait(lambda: run.findings() == ["more"])
        run.wait_for_cycle(3)  # its line follows the status
        assert [line["trigger"] for line in run.cycles()][1:] == ["change", "change"]
        assert run.cycles()[-1]["resolved"] == 1
        run.stop()


def test_a_directory_that_appears_is_watched():
    """A tool that is set up after the start is seen without a timer."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        folder = run.home / ".gemini"
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps({"mcpServers": {"fresh": MORE}}))
        if IS_ROOT:
            os.chown(folder, run.uid, run.gid)
            os.chown(folder / "settings.json", run.uid, run.gid)
        run.wait(lambda: "fresh" in run.findings())
        run.stop()


def test_without_watching_only_the_timer_scans():
    """`scan.watch = false` starts no watcher."""
    with service() as run:
        run.settings(scan={"watch": False})
        run.start()
        run.wait_for_cycle()
        assert run.children()["watcher"] == []
        assert run.ask({"command": "status"})["accounts"] == [{"user": "dev", "watcher": "off"}]
        run.stop()


def test_sighup_reads_settings_and_policy_again():
    """A new agent with the new settings takes over, and scans at once."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        first = run.agent()
        run.policy.write_text("mcp: {mode: warn, servers: []}\n")
        run.settings(device={"ring": None})
        run.process.send_signal(signal.SIGHUP)
        run.wait_for_cycle(2)
        assert run.status()["mode"] == "warn"
        assert run.agent() != first
        run.watcher()
        run.stop()
        assert run.process.returncode == 0


def test_settings_that_are_spoilt_do_not_end_a_service():
    """SIGHUP with wrong settings: the old agent goes on, and a line says so."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        first = run.agent()
        run.settings(device={"rign": "x"})
        run.process.send_signal(signal.SIGHUP)
        run.wait(lambda: run.events("reload-refused"))
        assert run.agent() == first
        run.wait_for_cycle(2)
        assert (run.status()["errorCode"], run.findings()) == ("reload-refused", ["notes"])
        assert "the new settings cannot be used" in run.ask({"command": "status"})["problems"][0]
        run.settings(device={"rign": None})
        run.process.send_signal(signal.SIGHUP)
        run.wait_for_cycle(3)
        assert (run.status()["errorCode"], run.ask({"command": "status"})["problems"]) == ("", [])
        run.stop()


def test_a_mistyped_ring_opens_and_resolves_nothing():
    """A reload with a ring that the policy lacks: what its entries approve is no finding, what was one stays."""
    with service() as run:
        run.write_servers(tools={"command": "npx", "args": ["-y", "@acme/tools@1.2.0"]}, notes=NOTES)
        run.policy.write_text(
            "rings: [ring0]\nmcp: {servers: [{id: tools, rings: [ring0],"
            ' package: {type: npm, identifier: "@acme/tools", version: 1.2.0}}]}\n'
        )
        run.start()
        run.wait_for_cycle()
        assert run.findings() == ["notes"]
        run.settings(device={"ring": "rign0"})
        run.process.send_signal(signal.SIGHUP)
        run.wait_for_cycle(2)
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        run.write_servers(tools={"command": "npx", "args": ["-y", "@acme/tools@1.2.0"]})
        run.wait_for_cycle(3)
        status = run.status()
        assert status["errorCode"] == "device-unknown"
        assert "did you mean" in status["lastError"]
        assert [(row["server"], row.get("stale", False)) for row in status["mcpDrift"]] == [("notes", True)]
        assert status["mcpApproved"] == []
        assert [line["opened"] + line["resolved"] for line in run.cycles()[1:]] == [0, 0]
        run.settings(device={"ring": "ring0"})
        run.process.send_signal(signal.SIGHUP)
        run.wait_for_cycle(4)
        assert (run.findings(), run.status()["errorCode"]) == ([], "")
        assert run.cycles()[-1]["resolved"] == 1
        run.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_it_is_asked(number):
    """SIGTERM and SIGINT end everything, with exit code 0 and no child left; test_service has the time."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        pids = [run.process.pid, run.agent(), run.watcher()]
        run.stop(number)
        assert run.process.returncode == 0
        run.wait(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
        assert not (run.state / "run" / "halod.sock").exists()


def test_it_ends_before_it_has_begun():
    """A signal that comes while the first agent starts ends it too: an agent is started when signals are heard."""
    with service() as run:
        run.start()
        run.wait(lambda: run.children()["agent"])
        run.stop()
        assert run.process.returncode == 0


def test_a_second_instance_says_so():
    """Two services on one state directory: the second ends with 1, the first goes on."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        first = run.process
        assert run.run_once() == 1
        assert any("another halod" in line.get("text", "") for line in run.lines())
        run.process = first
        assert first.poll() is None
        run.stop()


@pytest.mark.parametrize("form", ["path", "abstract"])
def test_the_service_manager_is_told(form):
    """READY after the first cycle, WATCHDOG while the agent lives, RELOADING and STOPPING in their time."""
    with service() as run:
        name = f"\0halod-test-{os.getpid()}" if form == "abstract" else str(run.directory / "notify")
        manager = Manager(name)
        run.environment = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "900000"}
        run.start()
        run.wait(lambda: "READY=1" in manager.read())
        assert run.status() is not None
        assert any(word.startswith("STATUS=1 account, 1 finding") for word in manager.words)
        run.wait(lambda: manager.read().count("WATCHDOG=1") >= 3)
        run.process.send_signal(signal.SIGHUP)
        run.wait(lambda: manager.read().count("READY=1") == 2)
        at = manager.words.index("RELOADING=1")
        assert manager.words[at + 1].startswith("MONOTONIC_USEC=")
        run.stop()
        assert "STOPPING=1" in manager.read()
        assert not any("CANARY" in word for word in manager.words)
        manager.close()


def test_everybody_may_ask_and_sees_his_own():
    """Root sees every row; another account the state of the service and no row but its own."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        full = run.ask({"command": "status"})
        assert [row["server"] for row in full["status"]["mcpDrift"]] == ["notes"]
        assert (full["problems"], full["sandbox"]) == ([], "full")
        assert run.ask({"command": "nonsense"}) == {"reply": "refused", "words": "this is no request"}
        if IS_ROOT:
            for uid, rows in ((run.uid, ["notes"]), (23456, [])):
                run.state.chmod(0o711)  # of a state directory of one's own, the socket lies below

                def asked(uid=uid):
                    os.setgroups([])
                    os.setresgid(uid, uid, uid)
                    os.setresuid(uid, uid, uid)
                    return run.ask({"command": "status"})

                reply = in_child(asked)
                assert [row["server"] for row in reply["status"]["mcpDrift"]] == rows
                assert len(reply["accounts"]) == len(rows)
        run.stop()


def halod(run, *words):
    done = subprocess.run(
        [sys.executable, "-P", "-m", "halod", *words, "--config", str(run.directory / "halod.toml")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert "CANARY" not in done.stdout + done.stderr
    return done


def test_halod_status_in_words():
    """Words, a document, and one line for Jamf; 0 while all is well, 2 when it does not run."""
    with service() as run:
        assert halod(run, "status").returncode == 2
        run.start()
        run.wait_for_cycle()
        run.wait(lambda: run.ask({"command": "status"})["accounts"][0]["watcher"] == "watching")
        table = halod(run, "status")
        assert table.returncode == 0, table.stderr
        assert "1 unapproved" in table.stdout
        assert "dev (watched)" in table.stdout
        assert json.loads(halod(run, "status", "--format", "json").stdout)["reply"] == "status"
        assert halod(run, "status", "--format", "jamf-ea").stdout.startswith("<result>drift findings=1 ")
        run.stop()
        stopped = halod(run, "status")
        assert (stopped.returncode, "does not run" in stopped.stdout) == (2, True)
        assert json.loads(halod(run, "status", "--format", "json").stdout)["reply"] == "stopped"


def test_the_canary_goes_through_the_whole_path():
    """`check --canary`: from the command through the running agent to the server, and back; and why not."""
    with service() as run, running() as server:
        token = run.directory / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        run.settings(report={"url": server.url, "token_file": str(token)})
        assert "the agent does not run" in canary(run)["message"]
        run.start()
        run.wait_for_cycle()
        run.wait(lambda: run.ask({"command": "status"})["delivery"]["outcome"] == "accepted")
        before = len(server.log())
        check = canary(run)
        assert check["verdict"] == "ok", check
        assert "delivered (HTTP 204" in check["message"]
        assert "taken back" in check["message"]
        posts = [json.loads(entry["body"]) for entry in server.log()[before:] if entry["body"]]
        assert [len(body["mcpDrift"]) for body in posts] == [2, 1]
        assert run.findings() == ["notes"]
        server.plan("ok", "422")
        check = canary(run)
        assert check["verdict"] == "fault"
        assert "HTTP 422" in check["message"]
        if IS_ROOT:
            run.state.chmod(0o711)
            assert in_child(lambda: as_other(lambda: run.ask({"command": "canary"})))["reply"] == "refused"
        run.stop()


def canary(run):
    """Give the line of `halod check --canary`."""
    checks = json.loads(halod(run, "check", "--canary", "--format", "json").stdout)["checks"]
    return next(check for check in checks if check["name"] == "canary")


def as_other(question):
    os.setgroups([])
    os.setresgid(23456, 23456, 23456)
    os.setresuid(23456, 23456, 23456)
    return question()


def test_scan_hands_its_status_to_the_agent():
    """`scan --send` is taken and put in line for delivery; findings and transitions do not change by it."""
    with service() as run:
        run.start()
        run.wait_for_cycle()
        done = halod(run, "scan", "--home", str(run.home), "--send", "--format", "json")
        assert (done.returncode, done.stderr) == (1, "")
        assert json.loads(done.stdout)["ring"] == "ring0"
        assert run.ask({"command": "status"})["status"]["truncated"] is False
        run.stop()
        assert halod(run, "scan", "--home", str(run.home), "--send").returncode == 2
