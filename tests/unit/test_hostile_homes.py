# SPDX-License-Identifier: Apache-2.0
"""What a hostile account writes costs its own file at most, and nothing of it looks clean."""

import json
import os

import pytest

from halod.harnesses import reader, scan
from halod.harnesses.formats import TooLarge, decode
from halod.home import Home, Refused
from tests.support.homes import MemoryHome, gaps, names, read

CURSOR = ".cursor/mcp.json"
FINE = json.dumps({"mcpServers": {"fine": {"command": "/opt/fine"}}})
ODD = [None, True, False, 0, 1.5, "", "x", [], [1], {}, {"a": 1}, [[]], [None], [{}]]


def servers(**entries):
    return json.dumps({"mcpServers": entries})


def enabled(reading):
    return {found.definition.name: found.definition.enabled for found in reading.found}


# --- shapes


@pytest.mark.parametrize("value", ODD, ids=json.dumps)
@pytest.mark.parametrize("key", ["type", "cmd", "uri", "args", "envs", "env_keys", "enabled", "name"])
def test_no_type_of_a_goose_key_costs_the_account(key, value):
    """A list where a word should stand is compared with words all the same."""
    entry = {"type": "stdio", "cmd": "/opt/x", key: value}
    reading = read(
        {".config/goose/config.yaml": json.dumps({"extensions": {"odd": entry, "b": entry}}), CURSOR: FINE}
    )
    assert "fine" in names(reading)
    assert [reason for _, _, reason in gaps(reading)] in ([], ["malformed-entry"] * 2)


@pytest.mark.parametrize("value", ODD, ids=json.dumps)
def test_no_type_of_a_halo_transport_costs_the_account(value):
    """As above, where the transport decides what the command is."""
    reading = read({".halo/config.json": servers(a={"command": "/opt/x", "transport": value}), CURSOR: FINE})
    assert names(reading) == ["a", "fine"] or names(reading) == ["fine", "a"]


@pytest.mark.parametrize("uses", ["hub/block", "", 5, None, {"command": "/opt/CANARY"}])
def test_an_entry_that_also_uses_a_block_is_an_entry(uses):
    """A command beside `uses` starts; only a reference alone is none."""
    entry = {"name": "a", "command": "/opt/x", "uses": uses}
    reading = read({".continue/config.yaml": json.dumps({"mcpServers": [entry, {"uses": "hub/other"}]})})
    assert names(reading) == ["a"]
    assert gaps(reading) == []


def test_a_server_called_uses_is_a_server():
    """In an agent's list a map of one name is a server of that name."""
    text = '---\nmcpServers:\n  - uses: {command: "/opt/x"}\n  - known\n---\n'
    assert names(read({".claude/agents/a.md": text})) == ["uses"]


def test_a_null_table_does_not_hide_the_servers_beside_it():
    """To a reader that asks for the table or else the whole file, null is no table."""
    path = ".claude/plugins/cache/m/p/1/.mcp.json"
    assert names(read({path: json.dumps({"mcpServers": None, "evil": {"command": "/opt/x"}})})) == ["evil"]
    reading = read({path: json.dumps({"mcpServers": None})})
    assert (names(reading), gaps(reading)) == ([], [])
    warp = json.dumps({"mcpServers": None, "servers": {"evil": {"command": "/opt/x"}}})
    assert names(read({".warp/.mcp.json": warp})) == ["evil"]


def test_a_map_where_a_list_should_stand_is_malformed():
    """Augment's extension keeps a list: a map in its place is told, an empty one is empty."""
    path = "globalStorage/augment.vscode-augment/augment-global-state/mcpServers.json"
    path = f".config/Code/User/{path}"
    assert [reason for *_, reason in gaps(read({path: FINE}))] == ["malformed"]
    assert gaps(read({path: "{}"})) == []
    assert names(read({path: '[{"name": "a", "command": "/opt/x"}]'})) == ["a"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"plugins": []}', []),
        ('{"plugins": null}', []),
        ("{}", []),
        ("[]", []),
        ('{"plugins": {"a": 1}}', ["malformed"]),
        ('{"plugins": "x"}', ["malformed"]),
        ("[1]", ["malformed"]),
    ],
)
def test_a_catalogue_of_another_type_is_malformed(text, told):
    """What stands for installed plugins' manifests is not silently nothing."""
    path = ".claude/plugins/marketplaces/m/.claude-plugin/marketplace.json"
    assert [reason for *_, reason in gaps(read({path: text}))] == told


def test_a_server_of_opencode_called_timeout_is_a_server():
    """The setting of this name is a number or an object without a command or URL."""
    path = ".config/opencode/opencode.json"
    assert names(read({path: json.dumps({"mcp": {"timeout": {"url": "https://x.example/CANARY"}}})})) == [
        "timeout"
    ]
    assert names(read({path: json.dumps({"mcp": {"timeout": {"startup": 5}}})})) == []


# --- switches that lie


@pytest.mark.parametrize(
    ("path", "live"),
    [
        ("/home/dev/.claude/plugins/cache/m/p/1", True),
        ("/home/dev/.claude//plugins/cache/m/./p/1/", True),
        ("/home/dev/.claude/plugins/cache/m/p/2/../1", True),
        ("/home/dev/.claude/plugins/cache/m/p/2", False),
        ("/home/dev/.claude/../.claude2/plugins/cache/m/p/1", False),
    ],
)
def test_the_path_of_an_installed_plugin_is_read_as_the_system_does(path, live):
    """Another spelling of the same folder does not call a running plugin off."""
    reading = read(
        {
            ".claude/plugins/cache/m/p/1/.mcp.json": FINE,
            ".claude/plugins/installed_plugins.json": json.dumps(
                {"plugins": {"p@m": [{"installPath": path}]}}
            ),
        }
    )
    assert enabled(reading) == {"fine": live}


def test_a_file_that_is_not_read_shadows_nothing():
    """Amp ignores settings.jsonc beside settings.json; a dangling link is none."""
    other = json.dumps({"amp.mcpServers": {"a": {"command": "/opt/x"}}})
    folder = ".config/amp/settings."
    assert enabled(read({folder + "jsonc": other, folder + "json": "{}"})) == {"a": False}
    assert enabled(read({folder + "jsonc": other, folder + "json": Refused("symlink")})) == {"a": True}


def test_one_file_of_two_plugins_is_live_when_one_of_them_is(tmp_path):
    """It is reported once, and the switch of the first plugin does not call the second off."""
    first = tmp_path / ".claude/plugins/cache/m/p/1/.mcp.json"
    second = tmp_path / ".claude/plugins/cache/m/q/1/.mcp.json"
    for path in (first, second):
        path.parent.mkdir(parents=True)
    first.write_text(FINE)
    (tmp_path / ".claude/settings.json").write_text(json.dumps({"enabledPlugins": {"p@m": False}}))

    def scanned():
        with Home.open(str(tmp_path), uid=os.getuid()) as home:
            return enabled(reader.read_home(home, sleep=lambda _: None))

    assert scanned() == {"fine": False}
    os.link(first, second)
    assert scanned() == {"fine": True}


# --- faults and floods


def test_a_fault_in_reading_one_file_costs_that_file(monkeypatch):
    """A reader that breaks is told at its file; the other files are read."""

    def broken(_scan, _source):
        raise KeyError("CANARY")

    monkeypatch.setitem(reader._READERS, "opencode", broken)
    reading = read({".config/opencode/opencode.json": "{}", CURSOR: FINE})
    assert names(reading) == ["fine"]
    assert ("opencode", "~/.config/opencode/opencode.json", "error") in gaps(reading)


def test_a_fault_in_one_harness_s_switches_is_told_at_its_state(monkeypatch):
    """What could not be switched counts as enabled, and that something is amiss is told."""

    def broken(_scan):
        raise RecursionError

    monkeypatch.setitem(reader.SWITCHES, "copilot-cli", broken)
    reading = read({".copilot/mcp-config.json": FINE, CURSOR: FINE})
    assert enabled(reading) == {"fine": True}
    assert gaps(reading) == [("copilot-cli", "~/.copilot/settings.json", "error")]


def test_a_flood_in_one_file_leaves_room_for_the_others(monkeypatch):
    """Each file has a share of its own after others took all of a home's."""
    monkeypatch.setattr(scan, "MAX_ENTRIES", 6)
    monkeypatch.setattr(scan, "FILE_ENTRIES", 4)
    monkeypatch.setattr(scan, "RESERVED", 2)
    flood = servers(**{str(number): {} for number in range(9)})
    reading = read({".claude.json": flood, ".kiro/settings/mcp.json": flood, CURSOR: FINE})
    assert names(reading) == ["fine"]
    assert [reason for *_, reason in gaps(reading)].count("too-many-entries") == 2


def test_time_that_is_used_up_costs_large_files_first_and_then_the_rest():
    """A scan ends in time: what was not looked at is told, small files are looked at the longest."""
    large = FINE[:-1] + ',"pad":"' + "x" * scan.SMALL_BYTES + '"}'
    files = {CURSOR: FINE, ".kiro/settings/mcp.json": large, ".kiro/agents/a.json": FINE}

    def at(seconds):
        ticks = iter([0.0])
        return read(files, clock=lambda: next(ticks, seconds))

    assert gaps(at(scan.SLOW - 0.1)) == []
    slow = at(scan.SLOW + 0.1)
    assert gaps(slow) == [("kiro", "~/.kiro/settings/mcp.json", "too-large")]
    assert len(slow.found) == 2
    late = at(scan.LATE + 0.1)
    assert late.found == []
    assert sorted(gaps(late)) == [
        ("cursor", "~/.cursor/mcp.json", "too-large"),
        ("kiro", "~/.kiro/agents", "too-many-entries"),
        ("kiro", "~/.kiro/settings/mcp.json", "too-large"),
    ]


def test_bytes_that_are_used_up_leave_small_files_readable(monkeypatch):
    """A home of large files is not read without end, nor held in memory all at once."""
    asked = {}

    class Counting(MemoryHome):
        def read(self, path, most=None):
            asked[path] = most
            return super().read(path)

    monkeypatch.setattr(scan, "MAX_BYTES", 100)
    monkeypatch.setattr(scan, "HELD_BYTES", 50)
    home = Counting({".claude.json": FINE + " " * 100, CURSOR: FINE})
    reading = reader.read_home(home, sleep=lambda _: None)
    assert names(reading) == ["fine", "fine"]
    assert asked[CURSOR] == scan.SMALL_BYTES
    assert home.opened[".claude.json"] == 2


def test_a_file_above_what_is_left_is_too_large(tmp_path):
    """The size is judged before a byte is read."""
    (tmp_path / "a").write_text("x" * 10)
    with Home.open(str(tmp_path), uid=os.getuid()) as home:
        assert bytes(home.read("a", 10).data) == b"x" * 10
        with pytest.raises(Refused) as refusal:
            home.read("a", 9)
    assert refusal.value.reason == "too-large"


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("toml", b".".join([b"a"] * 65) + b" = 1\n"),
        ("toml", b"[x]\n" + b" . ".join([b'"a"'] * 70) + b" = 1\n"),
        ("toml", b"x = {" + b".".join([b"a"] * 65) + b" = 1}\n"),
        ("toml", b"#" * ((2 << 20) + 1)),
        ("yaml", b"#" * ((2 << 20) + 1)),
        ("json", b'{"mcpServers":[' + b"1," * (9 << 20) + b"1]}"),
        ("json", b"[" + b"1,/**/" * 500_001 + b"1]"),
        ("json", b"[" + b"[1,]," * 500_001 + b"1]"),
    ],
    ids=["dots", "quoted", "inline", "toml", "yaml", "wanted", "comments", "commas"],
)
def test_what_would_take_its_decoder_too_long_is_too_large(form, data):
    """Such a file is told, and its neighbours do not wait for it."""
    with pytest.raises(TooLarge):
        decode(form, bytearray(data), ("/mcpServers",))


def test_many_comments_beside_each_other_are_one_step():
    """A header of half a million comment lines is no reason not to read a file."""
    data = b"// x\n" * 600_000 + b'{"mcpServers": {"a": 1,}, "h": "' + b"x" * 100 + b'"} /* a *//* b */'
    assert decode("json", bytearray(data), ("/mcpServers",)) == {"mcpServers": {"a": "1"}}


@pytest.mark.parametrize("escape", [b"\\ud8", b"\\udzzzz", b"\\ud83", b"\\uD"])
def test_a_broken_escape_in_a_key_of_a_big_file_is_malformed(escape):
    """The decoder that masks lone surrogates meets what is no escape at all."""
    data = b'{"projects":{"/a' + escape + b'":{"mcpServers":{}}},"pad":"' + b"x" * (300 << 10) + b'"}'
    reading = read({".claude.json": data, CURSOR: FINE})
    assert names(reading) == ["fine"]
    assert gaps(reading) == [("claude-code", "~/.claude.json", "malformed")]
