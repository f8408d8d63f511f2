# SPDX-License-Identifier: Apache-2.0
"""`halo approve`: what it prints approves what was reported, and nothing else is printed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.cli import halo
from halod.cli.halo_approve import MAX_BYTES
from halod.definition import Definition, FileRef, stdio_sha256
from halod.drift import judge
from halod.policy.load import parse
from halod.policy.model import Registry
from tests.support.registry import fed

ROOT = Path(__file__).parents[2]
DIGEST = "0123456789abcdef" * 4
IMAGE = f"ghcr.io/acme/notes:1.2.0@sha256:{DIGEST}"
SERVERS = {
    "playwright": ["npx", "-y", "@playwright/mcp@0.0.82"],
    "tools": ["npx", "-y", "-p", "@acme/tools@2.1.0", "github-mcp"],
    "zeit": ["uvx", "--from", "mcp-x==1.2", "tool"],
    "image": ["docker", "run", "-i", "--rm", IMAGE, "--stdio"],
    "moving": ["docker", "run", "-i", "--rm", f"acme/notes:latest@sha256:{DIGEST}"],
    "house": ["/opt/acme/bin/house-mcp", "--stdio"],
    "floating": ["npx", "left@latest"],
    "elsewhere": ["/usr/bin/npx", "-y", "left@latest"],
    "secret": ["npx", "-y", "left@1.0.0", "--token", "CANARYsecret"],
    "odd": ["npx", "-y", "left@1.0.0", ""],
    "Böse {server}": ["sh", "-c", "true"],
}
URLS = {"wiki": "https://WIKI.acme.example/mcp", "keyed": "https://x.acme.example/?api_key=CANARYkey"}


@pytest.fixture(scope="module")
def status(tmp_path_factory):
    """An inventory, as `halod scan --format json` prints it."""
    home = tmp_path_factory.mktemp("home")
    entries = {name: {"command": line[0], "args": line[1:]} for name, line in SERVERS.items()}
    entries |= {name: {"type": "http", "url": url} for name, url in URLS.items()}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    twice = {"playwright": {"command": "npx", "args": ["@playwright/mcp@latest"]}}
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": twice}), encoding="utf-8")
    command = [sys.executable, "-m", "halod", "scan", "--home", str(home), "--format", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=60)
    path = home / "status.json"
    path.write_bytes(done.stdout)
    return path


def approve(status, capsys, *words):
    """What a run prints: exit code, stdout, stderr."""
    code = halo.main(["approve", "--from", str(status), *words])
    return code, *capsys.readouterr()


def printed(text):
    """The entry, read as the whole of a policy."""
    policy = parse(f"mcp:\n  servers:\n{text}".encode(), "halos.yaml")
    assert len(policy.entries) == 1
    return policy.entries[0]


def verdict(entry, line, *, url=False):
    """How a definition is judged by one entry."""
    return judge(
        Definition(
            harness="claude-code",
            file=FileRef(0),
            name="",
            scope="user",
            transport="http" if url else "stdio",
            command="" if url else line[0],
            args=() if url else line[1:],
            url=line[0] if url else "",
        ),
        Registry(entries=(entry,)),
    ).kind


@pytest.mark.parametrize(
    ("name", "pin"),
    [
        ("playwright", 'package: {type: npm, identifier: "@playwright/mcp", version: 0.0.82}'),
        ("tools", 'package: {type: npm, identifier: "@acme/tools", version: 2.1.0, bin: github-mcp}'),
        ("zeit", 'package: {type: pypi, identifier: mcp-x, version: "1.2", bin: tool}'),
        ("image", 'args: ["--stdio"]'),
        ("moving", f'sha256: "{DIGEST}"'),
        ("house", 'command: ["/opt/acme/bin/house-mcp", "--stdio"]'),
        ("floating", "definitionSha256: "),
        ("elsewhere", "definitionSha256: "),
        ("secret", "definitionSha256: "),
        ("odd", "package: {type: npm, identifier: left, version: 1.0.0}"),
    ],
)
def test_with_the_command_it_says_what_runs(status, capsys, name, pin):
    """The narrowest words that approve it; its hash where it is no package and no command of the policy."""
    code, out, err = approve(status, capsys, "--server", name, "--", *SERVERS[name])
    assert code == 0, err
    assert pin in out
    assert verdict(printed(out), SERVERS[name]) == "approved"
    assert "CANARY" not in out + err


@pytest.mark.parametrize(
    ("name", "wider"),
    [("odd", True), ("playwright", False), ("image", False), ("house", False), ("floating", False)],
)
def test_an_entry_that_approves_more_than_what_was_reported_says_so(status, capsys, name, wider):
    """A package without `args` is approved with any arguments; everything else is what was reported and no more."""
    _, _, err = approve(status, capsys, "--server", name, "--", *SERVERS[name])
    assert ("it approves the package with any arguments" in err) == wider


@pytest.mark.parametrize(
    ("name", "pin"), [("wiki", "url: https://wiki.acme.example/mcp"), ("keyed", "definitionSha256: ")]
)
def test_with_the_url_it_pins_it(status, capsys, name, pin):
    """A URL with a key in it is approved by its hash only, which tells nobody the key."""
    code, out, err = approve(status, capsys, "--server", name, "--", URLS[name])
    assert code == 0
    assert pin in out
    assert verdict(printed(out), [URLS[name]], url=True) == "approved"
    assert "CANARY" not in out + err


def test_without_the_command_it_is_the_hash(status, capsys):
    """As the status reports it."""
    code, out, err = approve(status, capsys, "--server", "house")
    assert code == 0
    assert printed(out).definition_sha256 == stdio_sha256(SERVERS["house"][0], SERVERS["house"][1:])
    assert "any other spelling is another hash" in err
    code, out, _ = approve(status, capsys, "--server", "house", "--format", "json")
    assert sorted(json.loads(out)) == ["definitionSha256", "id"]


def test_several_of_one_name_are_listed(status, capsys):
    """None is taken because it stands first; a hash or the command says which."""
    code, out, err = approve(status, capsys, "--server", "playwright")
    assert (code, out) == (2, "")
    assert "there are 2 definitions of this name; say which with --sha256" in err
    assert "cursor ~/.cursor/mcp.json" in err
    sha256 = stdio_sha256("npx", ["@playwright/mcp@latest"])
    code, out, _ = approve(status, capsys, "--server", "playwright", "--sha256", sha256[:12].upper())
    assert code == 0
    assert printed(out).definition_sha256 == sha256
    code, out, err = approve(status, capsys, "--server", "playwright", "--sha256", "00")
    assert (code, out) == (2, "")
    assert "no definition of this name has this hash" in err


def test_a_name_that_only_leaves_as_a_hash_is_found(status, capsys):
    """By itself and by what is reported in its place; its id is one that a policy takes."""
    code, out, _ = approve(status, capsys, "--server", "Böse {server}")
    assert code == 0
    assert printed(out).id == "b-se-server"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--server", "nobody"], "the status reports no server of this name"),
        (["--server", "house", "--", "/opt/acme/bin/house-mcp"], "this is not what was reported"),
        (["--server", "house", "--", "CANARY"], "this is not what was reported"),
        (["--server", "wiki", "--", "https://wiki.acme.example/mcp"], "this is not what was reported"),
        (["--server", "wiki", "--", URLS["wiki"], "x"], "this is not what was reported"),
        (["--server", "wiki", "--", ""], "the command is empty"),
        (["--server", "wiki", "--", "a\0b"], "the command is empty or holds a NUL"),
        ([], "see halo approve --help"),
    ],
)
def test_what_is_not_printed(status, capsys, words, said):
    """One error, exit 2, nothing on stdout and nothing of the command."""
    code, out, err = approve(status, capsys, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert "CANARY" not in err


def test_what_is_denied_stays_denied(status, capsys):
    """An entry does not help, and that is said."""
    document = json.loads(status.read_text(encoding="utf-8"))
    row = next(row for row in document["inventory"] if row["server"] == "house")
    document["mcpDrift"] = [{**row, "kind": "denied", "detail": "", "fix": ""}]
    with fed(json.dumps(document).encode()) as (out, err):
        assert halo.main(["approve", "--from", "-", "--server", "house"]) == 0
    assert "deny goes before every approval" in err.getvalue()
    assert printed(out.getvalue())


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"CANARY", b'{"schemaVersion": "CANARY"}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_status(data):
    """Refused without a word of it."""
    with fed(data) as (out, err):
        assert halo.main(["approve", "--from", "-", "--server", "x"]) == 2
    assert out.getvalue() == ""
    assert "this is no status document" in err.getvalue()
    assert "CANARY" not in err.getvalue()


def test_a_status_that_is_not_there_or_too_large(tmp_path, capsys):
    """Both are said."""
    code, _, err = approve(tmp_path / "none.json", capsys, "--server", "x")
    assert code == 2
    assert "No such file or directory" in err
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    code, _, err = approve(large, capsys, "--server", "x")
    assert code == 2
    assert "larger than 64 MiB" in err
    code, _, err = approve("a\0b", capsys, "--server", "x")
    assert code == 2


@given(
    st.lists(
        st.text(max_size=12) | st.sampled_from(["npx", "-y", "uvx", "a@1.0.0", "docker", "run", IMAGE]),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=100, deadline=None)
def test_any_command_line_gives_an_entry_that_approves_it(line):
    """Or, when it cannot be defined at all, an error; never a traceback."""
    words = [word.encode("utf-8", "replace").decode().replace("\0", "") for word in line]
    document = _one(words)
    with fed(json.dumps(document).encode()) as (out, err):
        code = halo.main(["approve", "--from", "-", "--server", "x", "--", *words])
    if not words[0]:
        assert code == 2
        return
    assert code == 0, err.getvalue()
    assert verdict(printed(out.getvalue()), words) == "approved"


def _one(line):
    """A status with one finding."""
    row = {
        "harness": "cursor", "file": "~/.cursor/mcp.json", "server": "x", "transport": "stdio",
        "definitionSha256": stdio_sha256(line[0], line[1:]), "user": "dev", "scope": "user", "enabled": True,
        "kind": "unapproved", "detail": "", "fix": "",
    }  # fmt: skip
    coverage = {"accounts": 1, "files": 1, "definitions": 1, "durationMs": 1}
    return {
        "schemaVersion": 1, "time": "", "device": "", "hostname": "", "os": "", "halod": "", "user": "", "ring": "",
        "units": [], "digest": "", "mode": "allowlist", "mcpDrift": [row], "mcpApproved": [], "skipped": [],
        "coverage": coverage, "mcpDriftTotal": 1,
    }  # fmt: skip
