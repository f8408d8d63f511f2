# SPDX-License-Identifier: Apache-2.0
"""`halo plan` as a person and a program see it, and the directory that it writes."""

import hashlib
import io
import json
import os
import subprocess
from pathlib import Path

import pytest

from halod.cli import halo, plan_files
from halod.errors import UsageError
from halod.policy.rendering import manifest

POLICY = """\
org: acme
rings: [canary, ga]
units: {payments: {}}
mcp:
  servers:
    - {id: house, command: [/opt/acme/bin/house, --stdio]}
    - {id: wiki, url: "https://wiki.acme.example/mcp", rings: [canary]}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with a policy, as the current one."""
    (tmp_path / "halos.yaml").write_text(POLICY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def plan(*words):
    return halo.main(["plan", *words])


# --- what is printed ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_every_file_is_printed_and_every_warning_is_on_stderr(capsys):
    assert plan("--ring", "ga", "--system", "linux") == 0
    out, err = capsys.readouterr()
    assert "==> /etc/claude-code/managed-mcp.json (root, 0644) <==\n{\n" in out
    assert '[mcp_servers.house]\ncommand = "/opt/acme/bin/house"\nargs = ["--stdio"]\n' in out
    assert "/Library/" not in out
    assert "wiki" not in out
    assert all(line.startswith("warning: ") for line in err.splitlines())
    assert "warning: opencode: an allowlist of servers is not supported and was not rendered\n" in err


@pytest.mark.usefixtures("here")
def test_a_ring_is_needed(capsys):
    assert plan() == 2
    assert "--ring" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_unknown_rings_and_units_are_usage_errors(capsys):
    assert plan("--ring", "canari") == 2
    assert 'unknown ring "canari"; did you mean "canary"?' in capsys.readouterr().err
    assert plan("--ring", "ga", "--unit", "payment") == 2
    assert 'unknown unit "payment"; did you mean "payments"?' in capsys.readouterr().err


def test_an_invalid_policy_is_planned_by_nobody(here, capsys):
    (here / "halos.yaml").write_text("mcp: {servers: [{id: x}]}\n", encoding="utf-8")
    assert plan("--ring", "ga", "--out", "out") == 2
    assert "halos.yaml:1:" in capsys.readouterr().err
    assert not (here / "out").exists()


def test_a_repository_has_its_rings_in_documents_of_their_own(here, capsys):
    """A directory is read as `halo validate` reads it."""
    repository = here / "repository"
    (repository / "rings").mkdir(parents=True)
    text = POLICY.replace("rings: [canary, ga]\n", "")
    (repository / "halos.yaml").write_text(text, encoding="utf-8")
    (repository / "rings" / "all.yaml").write_text(
        "kind: Ring\nname: canary\n---\nkind: Ring\nname: ga\n", encoding="utf-8"
    )
    assert plan("--ring", "canary", "--system", "linux", "repository") == 0
    assert "https://wiki.acme.example/mcp" in capsys.readouterr().out
    assert plan("--ring", "beta", "repository") == 2
    assert 'unknown ring "beta"' in capsys.readouterr().err
    (repository / "rings" / "all.yaml").write_text("kind: Ring\n", encoding="utf-8")
    assert plan("--ring", "canary", "repository") == 2
    assert "halo validate repository shows every fault" in capsys.readouterr().err
    (here / "empty").mkdir()
    assert plan("--ring", "canary", "empty") == 2


# --- a diff -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_an_unchanged_policy_has_no_diff(capsys):
    assert plan("--ring", "ga", "--out", "out") == 0
    capsys.readouterr()
    assert plan("--ring", "ga", "--against", "out") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("no file differs from those below out\nwarning: ")


@pytest.mark.usefixtures("here")
def test_where_files_were_written_is_said(capsys):
    """Their paths are those on a machine, so the directory is named too."""
    assert plan("--ring", "ga", "--system", "linux", "--out", "out") == 0
    out, err = capsys.readouterr()
    assert out.startswith("root 0644 /etc/claude-code/managed-mcp.json\n")
    assert err.startswith("written below out: 7 files and manifest.json\nwarning: ")


def test_a_diff_can_be_applied_with_patch(here, capsys):
    """The diff of two rings turns the one's files into the other's: new, changed and removed ones."""
    plan("--ring", "ga", "--out", "old", "--system", "linux")
    policy = POLICY.replace("mcp:\n", "mcp:\n  mode: warn\n")
    (here / "halos.yaml").write_text(policy, encoding="utf-8")
    capsys.readouterr()
    assert plan("--ring", "canary", "--against", "old", "--out", "new", "--system", "linux") == 0
    out = capsys.readouterr().out
    assert "+++ /dev/null\n" in out
    assert "--- a/etc/opencode/opencode.json\n+++ b/etc/opencode/opencode.json\n" in out
    (here / "new" / "manifest.json").unlink()
    (here / "old" / "manifest.json").unlink()
    done = subprocess.run(
        ["git", "apply", "-"], input=out.encode(), cwd=here / "old", check=False, capture_output=True
    )
    assert done.stderr == b""
    left = {name: data for name, data in tree(here / "new").items() if data}
    assert {name: data for name, data in tree(here / "old").items() if data} == left


@pytest.mark.usefixtures("here")
def test_a_diff_needs_a_directory_of_ours(capsys):
    os.mkdir("other")
    assert plan("--ring", "ga", "--against", "other") == 2
    assert "other has no manifest.json of halo plan" in capsys.readouterr().err
    assert plan("--ring", "ga", "--against", "absent") == 2
    assert "cannot read absent: No such file or directory" in capsys.readouterr().err


# --- a directory --------------------------------------------------------------------------------------------


def test_files_lie_as_on_a_machine_and_the_manifest_lists_them(here, capsys):
    assert plan("--ring", "canary", "--unit", "payments", "--out", "build/out/") == 0
    (here / "build" / "out").rename(here / "out")
    out = capsys.readouterr().out.splitlines()
    listed = json.loads((here / "out" / "manifest.json").read_bytes())
    assert (listed["org"], listed["ring"], listed["units"]) == ("acme", "canary", ["payments"])
    assert listed["digest"] == "sha256:" + hashlib.sha256(POLICY.encode()).hexdigest()
    found = tree(here / "out")
    del found["manifest.json"]
    assert {one["path"].lstrip("/") for one in listed["files"]} == set(found)
    for one in listed["files"]:
        path = here / "out" / one["path"].lstrip("/")
        assert one["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert one["owner"] == "root"
        assert path.stat().st_mode & 0o7777 == int(one["mode"], 8)
        assert isinstance(one["warnings"], list)
    assert "root 0644 /etc/opencode/opencode.json" in out


def test_writing_again_replaces_and_removes(here, capsys):
    """What the new plan lacks goes; what was never in a plan stays."""
    plan("--ring", "ga", "--out", "out")
    (here / "out" / "NOTES").write_text("mine", encoding="utf-8")
    capsys.readouterr()
    assert plan("--ring", "canary", "--system", "linux", "--out", "out") == 0
    assert "removed /Library/Application Support/opencode/opencode.json\n" in capsys.readouterr().out
    found = tree(here / "out")
    assert not [name for name in found if name.startswith("Library/")]
    assert b"wiki" in found["etc/opencode/opencode.json"]
    assert found["NOTES"] == b"mine"
    assert not [name for name in found if Path(name).name.startswith(".")]


def test_a_directory_of_others_is_not_written_into(here, capsys):
    os.mkdir("out")
    (here / "out" / "work.txt").write_text("mine", encoding="utf-8")
    assert plan("--ring", "ga", "--out", "out") == 2
    assert "out is not empty and has no manifest.json of halo plan" in capsys.readouterr().err
    assert tree(here / "out") == {"work.txt": b"mine"}


@pytest.mark.parametrize(
    "place", ["out", "out/etc", "out/etc/codex", "out/etc/codex/requirements.toml", "out/manifest.json"]
)
def test_no_link_is_followed(here, capsys, place):
    """Neither the directory itself, nor one below it, nor a file."""
    plan("--ring", "ga", "--out", "out")
    victim = here / "victim"
    moved = here / place
    moved.rename(victim)
    moved.symlink_to(victim)
    before = tree(victim) if victim.is_dir() else victim.read_bytes()
    capsys.readouterr()
    assert plan("--ring", "canary", "--out", "out") == 2
    assert "it holds a symbolic link, or is one" in capsys.readouterr().err
    assert (tree(victim) if victim.is_dir() else victim.read_bytes()) == before
    assert plan("--ring", "canary", "--against", "out") == 2


def test_a_dangling_link_is_not_made_a_file(here):
    plan("--ring", "ga", "--out", "out")
    path = here / "out" / "etc" / "codex" / "requirements.toml"
    path.unlink()
    path.symlink_to(here / "made")
    assert plan("--ring", "ga", "--out", "out") == 2
    assert not (here / "made").exists()


def test_what_is_no_file_is_not_replaced_or_read(here, capsys):
    plan("--ring", "ga", "--out", "out")
    path = here / "out" / "etc" / "codex" / "requirements.toml"
    path.unlink()
    os.mkfifo(path)
    capsys.readouterr()
    assert plan("--ring", "ga", "--out", "out") == 2
    assert "something that is no regular file" in capsys.readouterr().err
    assert plan("--ring", "ga", "--against", "out") == 2
    assert "something that is no regular file" in capsys.readouterr().err


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(io.StringIO, "-\x1b[2Jold\n"), (_Terminal, "-\\x1b[2Jold\n")])
def test_what_lay_in_a_file_steers_no_terminal(here, monkeypatch, stream, shown):
    """A diff for `git apply` is as it is; one that a person sees is escaped."""
    assert plan("--ring", "ga", "--out", "out") == 0
    (here / "out" / "etc" / "codex" / "managed_config.toml").write_text("\x1b[2Jold\n", encoding="utf-8")
    out = stream()
    monkeypatch.setattr("sys.stdout", out)
    assert plan("--ring", "ga", "--against", "out") == 0
    assert shown in out.getvalue()
    assert "\n+++ b/etc/codex/managed_config.toml\n" in out.getvalue()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("option", ["--out", "--against"])
def test_an_empty_name_is_no_directory(capsys, option):
    """A variable of a script that is not set: not taken for no option."""
    assert plan("--ring", "ga", option, "") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "halo: error: --out and --against need the name of a directory\n"


@pytest.mark.parametrize(
    "path", ["/../victim", "/etc/../../victim", "//victim", "", "/etc/./x", "/a\0b", "/a\x1b[2J", "/a\n+++ b"]
)
def test_an_edited_manifest_leads_nowhere_else(here, path):
    """Its paths are removed or read below the directory only."""
    plan("--ring", "ga", "--out", "out")
    (here / "victim").write_text("mine", encoding="utf-8")
    edited = json.loads((here / "out" / "manifest.json").read_bytes())
    edited["files"].append({"path": path, "owner": "root", "mode": "0644", "sha256": "0" * 64})
    (here / "out" / "manifest.json").write_text(json.dumps(edited), encoding="utf-8")
    assert plan("--ring", "ga", "--out", "out") == 2
    assert plan("--ring", "ga", "--against", "out") == 2
    assert (here / "victim").read_text(encoding="utf-8") == "mine"


def test_a_failure_in_the_middle_leaves_whole_files(here, capsys):
    """A directory stands where a file should: files before it are new, the manifest and the rest as they were."""
    plan("--ring", "ga", "--out", "out")
    before = tree(here / "out")
    target = here / "out" / "etc" / "codex" / "requirements.toml"
    target.unlink()
    target.mkdir()
    capsys.readouterr()
    assert plan("--ring", "canary", "--out", "out") == 2
    after = tree(here / "out")
    assert after["manifest.json"] == before["manifest.json"]
    assert not [name for name in after if Path(name).name.startswith(".")]


def test_files_too_large_are_not_read_back(here, monkeypatch):
    plan("--ring", "ga", "--out", "out")
    monkeypatch.setattr(plan_files, "MAX_BYTES", 10)
    with pytest.raises(UsageError, match="cannot read"):
        plan_files.read_output(str(here / "out"))


def test_a_file_that_is_gone_counts_as_new(here, capsys):
    plan("--ring", "ga", "--out", "out", "--system", "linux")
    (here / "out" / "etc" / "opencode" / "opencode.json").unlink()
    capsys.readouterr()
    assert plan("--ring", "ga", "--against", "out", "--system", "linux") == 0
    assert capsys.readouterr().out.startswith("--- /dev/null\n+++ b/etc/opencode/opencode.json\n")


def test_the_manifest_is_never_among_the_files(here):
    """A machine's path cannot collide with it."""
    plan("--ring", "ga", "--out", "out")
    found = manifest.decode((here / "out" / "manifest.json").read_bytes())
    assert all(one.path.count("/") > 1 for one in found.files)
