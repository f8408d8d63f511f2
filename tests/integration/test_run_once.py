# SPDX-License-Identifier: Apache-2.0
"""`halod run --once`: one cycle as a whole process, delivered to a real server."""

import json
import os
import pwd

import pytest

from tests.support.server import TOKEN, running
from tests.support.service import IS_ROOT, service


def test_a_cycle_finds_and_keeps():
    """What differs is in the last-status file and the state; nothing of a definition is anywhere."""
    with service() as run:
        assert run.run_once() == 0
        assert run.findings() == ["notes"]
        status = run.status()
        assert (status["ring"], status["mode"], status["coverage"]["accounts"]) == ("ring0", "allowlist", 1)
        (line,) = run.cycles()
        assert (line["outcome"], line["trigger"], line["opened"]) == ("complete", "start", 1)
        mode = os.stat(run.state / "last-status.json").st_mode
        assert mode & 0o777 == 0o600


def test_a_report_is_delivered():
    """With an endpoint the status and its transition arrive before the process ends."""
    with service() as run, running() as server:
        token = run.directory / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        run.settings(report={"url": server.url, "token_file": str(token)})
        assert run.run_once() == 0
        (entry,) = server.log()
        body = json.loads(entry["body"])
        assert [one["event"] for one in body["transitions"]] == ["opened"]
        assert "CANARY" not in entry["body"]


def test_a_report_that_is_refused_fails():
    """An endpoint that refuses the token makes exit code 1; the status is kept all the same."""
    with service() as run, running() as server:
        token = run.directory / "token"
        token.write_text("another\n")
        token.chmod(0o600)
        run.settings(report={"url": server.url, "token_file": str(token)})
        assert run.run_once() == 1
        assert run.findings() == ["notes"]


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"device": {"rign": "x"}}, "did you mean"),
        (
            {"report": {"url": "https://halos.acme.example/", "token_file": "/no/such/token"}},
            "report.token_file",
        ),
        ({"policy": {"path": "relative.yaml"}}, "absolute")
        if IS_ROOT
        else ({"scan": {"interval": 1}}, "60 seconds"),
    ],
)
def test_wrong_settings_end_it(tables, says):
    """One line on stderr, exit code 2, and nothing was made."""
    with service() as run:
        run.settings(**tables)
        assert run.run_once() == 2
        (line,) = run.lines()
        assert says in line["text"]
        assert run.status() is None


def test_nobody_to_scan_is_not_clean():
    """An account that does not exist is a skipped row, not silence."""
    with service() as run:
        run.accounts = []
        assert run.run_once() == 0
        status = run.status()
        assert status["skipped"] == [{"user": "dev", "reason": "no-account"}]
        assert status["coverage"]["accounts"] == 0


def test_nobody_at_the_console_is_not_clean():
    """A machine at which nobody sits says so."""
    with service() as run:
        run.accounts = []
        run.settings(device={"accounts": "console"})
        assert run.run_once() == 0
        assert run.status()["skipped"] == [{"user": "", "reason": "no-account"}]


def test_a_policy_with_a_fault_keeps_the_last_good_one():
    """A spoilt policy changes nothing but the words, over a restart too; without any there is an inventory."""
    with service() as run:
        assert run.run_once() == 0
        run.policy.write_text("mcp: {servers: [{id: x}]}\n")
        assert run.run_once() == 1
        status = run.status()
        assert (status["mode"], status["errorCode"], run.findings()) == (
            "allowlist",
            "policy-invalid",
            ["notes"],
        )
        (run.state / "policy.yaml").unlink()
        assert run.run_once() == 1
        assert run.status()["mode"] == "inventory"


@pytest.mark.skipif(not IS_ROOT, reason="only root changes accounts")
def test_the_agents_account_must_exist():
    """Root without an account for the agent does not start; the advice says how to make one."""
    with service() as run:
        run.settings(device={"agent_account": "halod-none"})
        assert run.run_once() == 2
        assert "useradd" in run.lines()[0]["text"]


@pytest.mark.skipif(not IS_ROOT, reason="only root changes accounts")
def test_the_state_belongs_to_the_agent():
    """What the agent writes is its account's, and closed to others."""
    with service() as run:
        assert run.run_once() == 0
        agent = pwd.getpwnam("nobody").pw_uid
        for path in [run.state, *run.state.iterdir()]:
            status = path.stat()
            assert status.st_uid == agent
            assert path.name == "run" or not status.st_mode & 0o077


@pytest.mark.skipif(not IS_ROOT, reason="only root changes accounts")
def test_a_directory_with_other_things_is_not_given_away():
    """A state directory that is root's and not empty is refused, not taken over."""
    with service() as run:
        run.state.mkdir()
        (run.state / "other").write_text("")
        assert run.run_once() == 2
        assert run.state.stat().st_uid == 0
