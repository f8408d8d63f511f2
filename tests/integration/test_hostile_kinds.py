# SPDX-License-Identifier: Apache-2.0
"""Every hostile kind of file, in place of a file of each format, through the real command (issue "Done when").

Each gives one reason or is read, in a bounded time, and every other server of the home is still found.
"""

import json
import os
import re
import resource
import socket
import subprocess
import sys

import pytest

from tests.support.guard import HANG
from tests.support.roles import public_directory

MAIN = "import sys; from halod.cli import main; sys.exit(main())"
MOST_WORK = 10.0
"""Seconds of processor time, which a loaded machine does not lengthen much: 2 are what is asked for."""
GOOD = {
    ".cursor/mcp.json": '{"mcpServers":{"still-cursor":{"command":"npx","args":["CANARYarg"]}}}',
    ".gemini/settings.json": '{"mcpServers":{"still-gemini":{"url":"https://mcp.example.com/CANARYpath"}}}',
    ".codex/config.toml": '[mcp_servers.still-codex]\ncommand = "npx"\nargs = ["CANARYarg"]\n',
}
# One file of each format: (path, content with one server "victim", the harness that reads it).
FILES = {
    "json": (".claude.json", '{"mcpServers":{"victim":{"command":"npx","args":["CANARYv"]}}}'),
    "jsonc": (".config/zed/settings.json", '{/**/"context_servers":{"victim":{"command":"npx","args":["CANARYv",]}}}'),
    "json5": (".openclaw/openclaw.json", "{mcp:{servers:{victim:{command:'npx',args:['CANARYv']}}}}"),
    "toml": (".grok/config.toml", '[mcp_servers.victim]\ncommand = "npx"\nargs = ["CANARYv"]\n'),
    "yaml": (".config/goose/config.yaml", "extensions:\n  victim:\n    type: stdio\n    cmd: npx\n    args: [CANARYv]\n    enabled: true\n"),
    "yaml-1.1": (".hermes/config.yaml", "mcp_servers:\n  victim:\n    command: npx\n    args: [CANARYv]\n"),
}  # fmt: skip
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="giving files to another owner needs root")


def scan(home, *more):
    """Run the command; gives its document, and fails when it hangs, prints a canary or a traceback."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "scan", "--home", str(home), "--format", "json", *more],
        capture_output=True, check=False, timeout=HANG, cwd="/",
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert took < MOST_WORK, f"{took:.1f} s"
    assert b"Traceback" not in done.stderr
    assert b"CANARY" not in done.stdout + done.stderr
    return json.loads(done.stdout), done.returncode


def make_home(folder, format_, content=None):
    """A home with the good files; gives the path of the format's file, written when there is content."""
    for path, text in GOOD.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    path = folder / FILES[format_][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is not None:
        path.write_bytes(content)
        if path.stat().st_mtime:
            os.utime(path, (1, 1))  # long ago: a file that changed a moment ago is read twice
    return path


def outcome(folder, format_):
    """Scan: gives the reasons told of the format's file and whether its server was found; the others must be."""
    status, code = scan(folder)
    names = {row["server"] for row in status["inventory"]}
    assert names >= {"still-cursor", "still-gemini", "still-codex"}, "a hostile file cost another"
    shown = "~/" + FILES[format_][0]
    rows = [row for row in status["skipped"] if row.get("file") == shown]
    others = [row for row in status["skipped"] if row.get("file") != shown and row.get("file", "") != ""]
    assert not others, others
    assert code == (3 if status["skipped"] else 0)
    return {row["reason"] for row in rows}, "victim" in names


def fifo(path):
    os.mkfifo(path)


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(path.parent)
        try:
            one.bind(path.name)
        finally:
            os.chdir(here)


def device(path):
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero: endless when read


def link(path):
    path.with_name("real").write_text(FILES["json"][1], "utf-8")
    path.symlink_to("real")


def link_loop(path):
    path.symlink_to(path.name)


def directory(path):
    path.mkdir()


def sparse(path):
    with path.open("wb") as file:
        file.truncate(2 << 30)


KINDS = {
    "fifo": (fifo, "not-regular"), "socket": (unix_socket, "not-regular"), "link": (link, "symlink"),
    "link-loop": (link_loop, "symlink"), "directory": (directory, "not-regular"), "sparse": (sparse, "too-large"),
}  # fmt: skip


@pytest.mark.parametrize("format_", FILES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_file_gives_its_reason(tmp_path, kind, format_):
    """A pipe is not opened, a link not followed, two sparse gigabytes not read."""
    make, reason = KINDS[kind]
    make(make_home(tmp_path, format_))
    assert outcome(tmp_path, format_) == ({reason}, False)


@pytest.mark.parametrize("format_", FILES)
@ROOT_ONLY
def test_a_device_is_never_opened(tmp_path, format_):
    """An endless one, too."""
    try:
        device(make_home(tmp_path, format_))
    except PermissionError:
        pytest.skip("this machine lets nobody make a device")
    assert outcome(tmp_path, format_) == ({"not-regular"}, False)


@pytest.mark.parametrize("format_", FILES)
@ROOT_ONLY
def test_what_belongs_to_another(format_):
    """Neither another account's file nor a hard link to one is read."""
    with (
        public_directory() as place
    ):  # pytest closes its own to others, and again when another run of it begins
        home = place / "home"
        home.mkdir()
        path = make_home(home, format_, FILES[format_][1].encode())
        for root, folders, files in os.walk(home):
            for name in folders + files:
                os.chown(os.path.join(root, name), 12345, 12345)
        os.chown(home, 12345, 12345)
        os.chown(path, 54321, 54321)
        path.chmod(0o644)
        assert outcome(home, format_) == ({"wrong-owner"}, False)
        os.chown(path, 0, 0)
        os.link(path, path.with_name("second"))
        assert outcome(home, format_) == ({"hard-linked"}, False)


def nested(format_, opening, closing, levels):
    deep = opening * levels + closing * levels
    if format_ == "toml":
        return b"x = " + deep
    return deep


@pytest.mark.parametrize("format_", FILES)
@pytest.mark.parametrize("shape", ["array", "object"])
def test_a_hundred_thousand_levels_are_malformed(tmp_path, format_, shape):
    """No crash, no quadratic work."""
    pairs = {"array": (b"[", b"]"), "object": (b'{"a":', b"}")}
    opening, closing = (b"{a = ", b"}") if format_ == "toml" and shape == "object" else pairs[shape]
    make_home(tmp_path, format_, nested(format_, opening, b"1" * (shape == "object") + closing, 100_000))
    assert outcome(tmp_path, format_) == ({"malformed"}, False)


@pytest.mark.parametrize("format_", FILES)
def test_bytes_that_are_no_text(tmp_path, format_):
    """Invalid UTF-8 is replaced in JSON as in Node, and is malformed in TOML and YAML; a BOM is dropped."""
    content = FILES[format_][1].encode()
    path = make_home(tmp_path, format_, content)
    assert outcome(tmp_path, format_) == (set(), True)
    path.write_bytes(b"\xef\xbb\xbf" + content)
    os.utime(path, (1, 1))
    assert outcome(tmp_path, format_) == (set(), True)
    path.write_bytes(content.replace(b"CANARYv", b"CANARY\xff\xc0"))
    os.utime(path, (1, 1))
    expected = (set(), True) if format_.startswith("json") else ({"malformed"}, False)
    assert outcome(tmp_path, format_) == expected


@pytest.mark.parametrize("format_", FILES)
def test_a_truncated_or_binary_file(tmp_path, format_):
    """Cut at any place it is read or malformed; bytes of a program are malformed."""
    content = FILES[format_][1].encode()
    path = make_home(tmp_path, format_, content)
    for cut in (1, len(content) // 3, len(content) // 2, len(content) - 3):
        path.write_bytes(content[:cut])
        os.utime(path, (1, 1))
        reasons, found = outcome(tmp_path, format_)
        assert reasons <= {"malformed", "malformed-entry"}, cut
        assert found or reasons or format_ in {"toml", "yaml", "yaml-1.1"}, (
            cut
        )  # a shorter document of its own
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 64)
    os.utime(path, (1, 1))
    assert outcome(tmp_path, format_) == ({"malformed"}, False)


WRONG = [
    "null",
    "1",
    "true",
    '"CANARYtext"',
    "[]",
    "[1]",
    "{}",
    '[["CANARYx"]]',
    '{"k":"CANARYx"}',
    '[{"command":1}]',
]
LEVELS = ["%s", '{"mcpServers":%s}', '{"mcpServers":{"victim":%s}}', '{"mcpServers":{"victim":{"command":%s}}}',
          '{"mcpServers":{"victim":{"command":"npx","args":%s}}}', '{"mcpServers":{"victim":{"command":"npx","env":%s}}}',
          '{"mcpServers":{"victim":{"url":%s}}}', '{"mcpServers":{"victim":{"type":%s,"command":"npx"}}}',
          '{"mcpServers":{"victim":{"command":"npx","cwd":%s}}}', '{"projects":%s}', '{"projects":{"/p":%s}}',
          '{"projects":{"/p":{"mcpServers":%s}}}', '{"projects":{"/p":{"disabledMcpServers":%s}}}']  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
def test_a_wrong_type_at_every_level(tmp_path, level):
    """It costs its own entry or file; what is said of it has a reason of the list."""
    make_home(tmp_path, "json")
    for wrong in WRONG:
        path = tmp_path / ".claude.json"
        path.write_text(level % wrong, "utf-8")
        os.utime(path, (1, 1))
        reasons, _ = outcome(tmp_path, "json")
        assert reasons <= {"malformed", "malformed-entry"}, (level, wrong)


@pytest.mark.parametrize("levels", [199])
@pytest.mark.parametrize("format_", ["json", "jsonc", "json5", "yaml"])
def test_two_hundred_levels_are_read(tmp_path, format_, levels):
    """Depth that is not hostile beside the table does not cost it."""
    text = FILES[format_][1]
    deep = "[" * levels + "]" * levels
    grown = f"other: {deep}\n{text}" if format_ == "yaml" else re.sub(r"^\{", '{"other":' + deep + ",", text)
    make_home(tmp_path, format_, grown.encode())
    assert outcome(tmp_path, format_) == (set(), True)


def test_a_file_above_the_limit_is_said(tmp_path):
    """128 MiB and one byte is `too-large`: said, and not shown as clean."""
    path = make_home(tmp_path, "json")
    with path.open("wb") as file:
        file.write(FILES["json"][1].encode())
        file.truncate((128 << 20) + 1)
    os.utime(path, (1, 1))
    assert outcome(tmp_path, "json") == ({"too-large"}, False)


def test_a_large_file_with_everything_wrong_yields_exact_definitions(tmp_path):
    """30 MB with lone surrogates, invalid UTF-8, and duplicate keys: the hashes are those of a small file."""
    servers = '"mcpServers":{"victim":{"command":"npx","args":["-y","\\ud83d\\u0041",0.50,1e3]}}'
    filler = b'{"display":"cut \\ud83d \\\\ \xff\xc3 text","n":[1,2.50]},' * 500_000
    path = make_home(tmp_path, "json", ("{" + servers + "}").encode())
    small, _ = scan(tmp_path)
    path.write_bytes(
        b'{"mcpServers":{"victim":{"command":"old"}},"history":[' + filler + b"{}]," + servers.encode()
        + b',"projects":{"/p\xff":{"history":[' + filler[: len(filler) // 4] + b"{}]}}}"
    )  # fmt: skip
    os.utime(path, (1, 1))
    assert path.stat().st_size > 28 << 20
    large, code = scan(tmp_path)
    assert code == 0
    assert [row for row in large["inventory"] if row["server"] == "victim"] == [
        row for row in small["inventory"] if row["server"] == "victim"
    ]
