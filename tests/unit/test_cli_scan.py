# SPDX-License-Identifier: Apache-2.0
"""`halod scan` as a command: whose files, which policy, what is printed, how it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from halod import cli
from tests.support.guard import HANG

ROOT = Path(__file__).resolve().parents[2]
POLICY = """\
rings: [ring0, ring1]
units: {payments: {}}
mcp:
  servers:
    - id: tools
      package: {type: npm, identifier: "@acme/tools", version: 1.2.0}
"""


@pytest.fixture
def home(tmp_path):
    """A home with one approved and one unapproved server."""
    write(
        tmp_path / "home",
        tools={"command": "npx", "args": ["-y", "@acme/tools@1.2.0"], "env": {"TOKEN": "CANARYenv"}},
        notes={"url": "https://mcp.example.net/CANARYpath"},
    )
    (tmp_path / "halos.yaml").write_text(POLICY, encoding="utf-8")
    return tmp_path / "home"


def write(home, **servers):
    folder = home / ".cursor"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


def scan(capfdbinary, *words):
    """Run in this process; give the exit code, the document and stderr."""
    code = cli.main(["scan", *map(str, words)])
    out, err = capfdbinary.readouterr()
    assert b"CANARY" not in out + err
    return (
        code,
        (json.loads(out) if b"--format" not in words and out[:1] == b"{" else out.decode()),
        err.decode(),
    )


def test_findings_exit_1(capfdbinary, home):
    """A policy, a finding, and an approved server; json stands alone on stdout."""
    code, status, err = scan(
        capfdbinary, "--home", home, "--policy", home.parent / "halos.yaml", "--format", "json"
    )
    assert (code, err) == (1, "")
    assert [(row["server"], row["kind"], row["host"]) for row in status["mcpDrift"]] == [
        ("notes", "unapproved", "mcp.example.net")
    ]
    assert [(row["harness"], row["id"], row["count"]) for row in status["mcpApproved"]] == [
        ("cursor", "tools", 1)
    ]
    assert status["mode"] == "allowlist"
    assert status["coverage"]["files"] == 1


def test_no_finding_exits_0_and_an_unread_file_3(capfdbinary, home):
    """Clean is 0; the same with something unread is 3."""
    write(home, tools={"command": "npx", "args": ["-y", "@acme/tools@1.2.0"]})
    words = ("--home", home, "--policy", home.parent / "halos.yaml", "--format", "json")
    assert scan(capfdbinary, *words)[0] == 0
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").symlink_to("elsewhere")
    code, status, _ = scan(capfdbinary, *words)
    assert code == 3
    assert status["skipped"] == [
        {
            "user": status["skipped"][0]["user"],
            "harness": "codex",
            "file": "~/.codex/config.toml",
            "reason": "symlink",
        }
    ]


def test_without_a_policy_it_is_an_inventory(capfdbinary, home):
    """Everything is listed, nothing is judged, exit 0."""
    code, status, _ = scan(capfdbinary, "--home", home, "--format", "json")
    assert code == 0
    assert (status["mode"], status["mcpDrift"], status["digest"]) == ("inventory", [], "")
    assert {row["server"] for row in status["inventory"]} == {"notes", "tools"}
    assert not any({"kind", "detail", "fix"} & set(row) for row in status["inventory"])


def test_the_table_and_sarif(capfdbinary, home):
    """The other two forms of the same."""
    code, text, _ = scan(capfdbinary, "--home", home, "--policy", home.parent / "halos.yaml")
    assert code == 1
    assert "UNAPPROVED" in text
    assert "Approved: 1 definition" in text
    code, log, _ = scan(
        capfdbinary, "--home", home, "--policy", home.parent / "halos.yaml", "--format", "sarif"
    )
    assert code == 1
    assert log["version"] == "2.1.0"


def test_ring_and_units_are_reported(capfdbinary, home):
    """They are the device's, as given."""
    words = (
        "--policy",
        home.parent / "halos.yaml",
        "--ring",
        "ring1",
        "--unit",
        "payments",
        "--format",
        "json",
    )
    _, status, _ = scan(capfdbinary, "--home", home, *words)
    assert (status["ring"], status["units"]) == ("ring1", ["payments"])


def test_only_the_named_harnesses(capfdbinary, home):
    """`--harness` leaves the others unread."""
    _, status, _ = scan(capfdbinary, "--home", home, "--harness", "codex", "--format", "json")
    assert status["inventory"] == []
    _, status, _ = scan(
        capfdbinary, "--home", home, "--harness", "codex", "--harness", "cursor", "--format", "json"
    )
    assert len(status["inventory"]) == 2


def test_an_account_that_is_not_there(capfdbinary):
    """A named account without a password entry is a gap, not an error."""
    code, status, _ = scan(capfdbinary, "--user", "no-such-account-x", "--format", "json")
    assert code == 3
    assert status["skipped"] == [{"user": "no-such-account-x", "reason": "no-account"}]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--policy", "/no/such/halos.yaml"], "cannot read the policy"),
        (["--home", "/no/such/home"], "--home"),
        (["--ring", "ringg1", "--policy", "POLICY"], "did you mean"),
        (["--unit", "x", "--policy", "POLICY"], "unknown unit"),
        (["--harness", "cursr"], "did you mean cursor?"),
        (["--harness", "zzzzzz"], "halod harnesses"),
        (["--send", "--config", "/no/such/halod.toml"], "there are no settings"),
        (["--config", "/no/such/halod.toml"], "there are no settings"),
    ],
)
def test_wrong_usage_exits_2(capfdbinary, home, words, says):
    """One line on stderr, nothing on stdout."""
    words = [str(home.parent / "halos.yaml") if word == "POLICY" else word for word in words]
    where = [] if "--home" in words else ["--home", home]
    code, out, err = scan(capfdbinary, *where, *words)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_broken_policy_exits_2(capfdbinary, home):
    """With file, line and column of the first fault."""
    (home.parent / "halos.yaml").write_text("mcp:\n  servers: 3\n", encoding="utf-8")
    code, _, err = scan(capfdbinary, "--home", home, "--policy", home.parent / "halos.yaml")
    assert code == 2
    assert "halos.yaml:2:" in err


def test_names_are_shown_only_to_their_account_on_a_terminal(home):
    """A pipe gets the redacted name, one's own terminal the real one."""
    if os.getuid() != home.stat().st_uid:
        pytest.skip("the test's files belong to another account")
    write(home, **{"dev@mail.example": {"command": "/opt/x"}})
    argv = [sys.executable, "-m", "halod", "scan", "--home", str(home)]
    piped = subprocess.run(argv, cwd=ROOT, capture_output=True, check=False)
    assert b"dev@mail" not in piped.stdout
    assert b"sha256:" in piped.stdout
    assert b"dev@mail.example" in on_terminal(argv)
    assert b"dev@mail" not in on_terminal([*argv, "--format", "json"])


def on_terminal(argv):
    """Run with stdout on a pseudo-terminal and give what it shows."""
    leader, follower = os.openpty()
    child = subprocess.Popen(argv, cwd=ROOT, stdout=follower, stderr=follower, stdin=subprocess.DEVNULL)
    os.close(follower)
    shown = b""
    try:
        while True:
            chunk = os.read(leader, 65536)
            if not chunk:
                break
            shown += chunk
    except OSError:  # Linux says EIO when the other end is closed
        pass
    finally:
        os.close(leader)
    child.wait(timeout=HANG)
    return shown
