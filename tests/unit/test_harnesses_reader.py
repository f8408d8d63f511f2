# SPDX-License-Identifier: Apache-2.0
"""One scan of a home: what is read once, what is read again, and how each fault stays alone."""

import json
import os
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halod.harnesses import HARNESSES, LOCATIONS, extra_location, read_home
from halod.home import Home, Refused
from tests.support.homes import MemoryHome, gaps, names, place, read

SERVERS = json.dumps({"mcpServers": {"a": {"command": "/opt/a"}}})
CLAUDE = ".claude.json"
CURSOR = ".cursor/mcp.json"


@pytest.fixture
def disk(tmp_path):
    """Give a function that writes files into a home and reads it through the real door."""
    home = tmp_path / "home"
    home.mkdir()

    def scan(files=None, **options):
        for path, content in (files or {}).items():
            target = home / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        opened = Home.open(str(home), uid=os.getuid())
        try:
            return read_home(opened, **{"sleep": lambda _: None, **options})
        finally:
            opened.close()

    scan.home = home
    return scan


def test_an_empty_home_is_read_and_clean():
    """Nothing is there, nothing is told."""
    reading = read({})

    assert (reading.found, reading.unread, reading.files, reading.not_covered) == ([], [], 0, set())


def test_every_file_is_opened_once():
    """A path that two harnesses list is opened once and reported by both."""
    home = MemoryHome({"opencode.json": json.dumps({"mcp": {"a": {"type": "local", "command": ["/opt/a"]}}})})
    reading = read_home(home, sleep=lambda _: None)

    assert home.opened == {"opencode.json": 1}
    assert {found.definition.harness for found in reading.found} == {"opencode", "kilo-code"}
    assert reading.files == 1


def test_a_file_reached_by_two_paths_is_reported_once(disk):
    """A linked folder does not double the definitions of its harness."""
    (disk.home / ".kilocode").symlink_to(".kilo")
    reading = disk({".kilo/kilo.json": json.dumps({"mcp": {"a": {"type": "local", "command": ["/opt/a"]}}})})

    assert names(reading) == ["a"]
    assert {place(reference) for reference in reading.read} == {"~/.kilo/kilo.json", "~/.kilocode/kilo.json"}
    assert (reading.files, reading.unread) == (1, [])


def test_blank_files_are_read_again_after_one_wait():
    """One wait for all blank files; what is still blank is empty, and read."""
    waits = []
    home = MemoryHome(
        {CLAUDE: b"", CURSOR: b" \n\t", ".codex/config.toml": b"", ".kiro/settings/mcp.json": b""},
        later={CLAUDE: SERVERS},
    )
    reading = read_home(home, sleep=waits.append)

    assert waits == [0.1]
    assert names(reading) == ["a"]
    assert reading.unread == []
    assert reading.files == 4
    assert home.opened[CURSOR] == 2


def test_no_wait_without_a_blank_file():
    """A scan of healthy files never sleeps."""
    waits = []
    read({CLAUDE: SERVERS}, sleep=waits.append)

    assert waits == []


def test_a_blank_file_that_goes_away_is_absent():
    """A file removed during the wait is as if it had never been."""
    home = MemoryHome({CLAUDE: b""})
    reading = read_home(home, sleep=lambda _: home.files.clear())

    assert (reading.read, reading.unread) == ([], [])


def test_a_malformed_file_that_changed_just_now_is_read_again():
    """Half a file may be the middle of a write; the second look counts."""
    broken = SERVERS[:20]
    healed = MemoryHome({CLAUDE: broken}, later={CLAUDE: SERVERS}, recent=[CLAUDE])
    still = MemoryHome({CLAUDE: broken}, recent=[CLAUDE])
    old = MemoryHome({CLAUDE: broken}, later={CLAUDE: SERVERS})

    assert names(read_home(healed)) == ["a"]
    assert gaps(read_home(still)) == [("claude-code", "~/.claude.json", "malformed")]
    assert gaps(read_home(old)) == [("claude-code", "~/.claude.json", "malformed")]
    assert (still.opened[CLAUDE], old.opened[CLAUDE]) == (2, 1)


def test_a_malformed_file_tells_where():
    """Line and column, and nothing of the text."""
    (gap,) = read({CURSOR: '{\n  "mcpServers": {"CANARY": !}}'}).unread

    assert (gap.line, gap.reason, gap.server) == (2, "malformed", None)
    assert gap.column > 1
    assert "CANARY" not in repr(gap)


@pytest.mark.parametrize(
    "reason", ["symlink", "not-regular", "wrong-owner", "too-large", "changed", "unreadable"]
)
def test_a_refused_file_costs_itself_only(reason):
    """Its reason is told, its neighbours are read."""
    reading = read({CLAUDE: Refused(reason), CURSOR: SERVERS})

    assert gaps(reading) == [("claude-code", "~/.claude.json", reason)]
    assert names(reading) == ["a"]


def test_an_error_keeps_its_name():
    """The errno's name is all that an error tells."""
    (gap,) = read({CLAUDE: Refused("error", "EIO")}).unread

    assert (gap.reason, gap.errno) == ("error", "EIO")


def test_a_folder_that_leaves_the_home_is_told_once_per_harness(disk, tmp_path):
    """Ten files behind one link are one row, at the harness's first file."""
    (tmp_path / "elsewhere").mkdir()
    (disk.home / ".codex").symlink_to(tmp_path / "elsewhere")
    reading = disk({CURSOR: SERVERS})

    assert gaps(reading) == [("codex", "~/.codex/config.toml", "escapes-home")]
    assert names(reading) == ["a"]


def test_a_plugin_folder_that_leaves_the_home_is_a_source_not_covered(disk, tmp_path):
    """An extension that is a link to a folder elsewhere runs from there."""
    (tmp_path / "elsewhere").mkdir()
    (disk.home / ".gemini/extensions").mkdir(parents=True)
    (disk.home / ".gemini/extensions/linked").symlink_to(tmp_path / "elsewhere")
    reading = disk()

    assert gaps(reading) == [
        ("gemini-cli", "~/.gemini/extensions/linked/gemini-extension.json", "escapes-home")
    ]
    assert reading.not_covered == {"plugin-sources"}


def test_a_folder_with_too_many_entries_is_told(disk):
    """The first thousand entries are not all there is, and that is said."""
    agents = disk.home / ".kiro/agents"
    agents.mkdir(parents=True)
    for number in range(1001):
        (agents / f"{number}.json").touch()

    assert gaps(disk()) == [("kiro", "~/.kiro/agents", "too-many-entries")]


def test_only_the_wanted_harnesses_are_read():
    """A filter leaves the files of the others alone."""
    home = MemoryHome({CLAUDE: SERVERS, CURSOR: SERVERS})
    reading = read_home(home, harnesses=frozenset({"cursor"}))

    assert [found.definition.harness for found in reading.found] == ["cursor"]
    assert CLAUDE not in home.opened


def test_extra_locations_are_numbered_after_the_table():
    """A location of the settings is read and named by its own number."""
    extra = (extra_location("codex", "~/moved/config.toml"),)
    reading = read({"moved/config.toml": '[mcp_servers.a]\ncommand = "/opt/a"\n'}, extra=extra)

    assert [found.definition.file.location for found in reading.found] == [len(LOCATIONS)]
    assert reading.found[0].definition.harness == "codex"


@pytest.mark.parametrize("table", [None, [], {}])
def test_an_empty_table_is_empty(table):
    """What tools write for nothing is nothing."""
    reading = read({CURSOR: json.dumps({"mcpServers": table})})

    assert (reading.unread, reading.found, reading.files) == ([], [], 1)


@pytest.mark.parametrize(
    "document",
    [
        '{"mcpServers": "CANARY"}', '{"mcpServers": 5}', '{"mcpServers": true}', '{"mcpServers": ["CANARY"]}',
        "[1]", '["CANARY"]', '"CANARY"', "5",
    ],
)  # fmt: skip
def test_a_table_of_a_wrong_type_is_told(document):
    """A table that cannot hold servers makes the file malformed: it may hide some."""
    assert gaps(read({CURSOR: document})) == [("cursor", "~/.cursor/mcp.json", "malformed")]


def test_a_wrong_table_costs_itself_only():
    """The other tables of the file are read."""
    reading = read({CLAUDE: json.dumps({"mcpServers": 5, "projects": {"/p": json.loads(SERVERS), "/q": 7}})})

    assert names(reading) == ["a"]
    assert gaps(reading) == [("claude-code", "~/.claude.json", "malformed")]


def test_a_list_of_entries_where_a_map_should_be_is_read():
    """Servers in a list are servers; they are called by their name or position."""
    reading = read(
        {CURSOR: json.dumps({"mcpServers": [{"name": "n", "command": "/opt/n"}, {"url": "https://u"}]})}
    )

    assert names(reading) == ["n", "1"]


def test_a_broken_entry_tells_its_name_and_costs_itself_only():
    """One row per entry that defines nothing."""
    servers = {"bad": None, "good": {"command": "/opt/x"}, "worse": []}
    reading = read({CURSOR: json.dumps({"mcpServers": servers})})

    assert [(gap.reason, gap.server) for gap in reading.unread] == [
        ("malformed-entry", "bad"),
        ("malformed-entry", "worse"),
    ]
    assert names(reading) == ["good"]


def test_a_large_file_gives_the_same_as_a_small_one():
    """Beyond the size where only needed tables are decoded, the same servers and switches come out."""
    document = {
        "mcpServers": {"a": {"command": "/opt/a", "args": [1.50]}},
        "projects": {
            "/p": {"mcpServers": {"b": {"command": "/opt/b"}}, "disabledMcpServers": ["b"], "history": []},
        },
    }
    small = read({CLAUDE: json.dumps(document)})
    document["projects"]["/p"]["history"] = ["x" * 100] * 10_000
    large = read({CLAUDE: json.dumps(document)})

    shown = [
        [
            (one.definition.name, one.definition.scope, one.definition.sha256, one.definition.enabled)
            for one in found
        ]
        for found in (small.found, large.found)
    ]
    assert shown[0] == shown[1]
    assert [row[3] for row in shown[0]] == [True, False]


def test_a_manifest_that_points_to_a_file_read_already_adds_nothing():
    """`mcpServers: ./.mcp.json` names the file that is read anyway."""
    root = ".claude/plugins/cache/m/p/1/"
    home = MemoryHome(
        {
            root + ".mcp.json": SERVERS,
            root + ".claude-plugin/plugin.json": '{"mcpServers": ["./.mcp.json", ".mcp.json"]}',
        }
    )
    waits = []
    reading = read_home(home, sleep=waits.append)

    assert names(reading) == ["a"]
    assert home.opened[root + ".mcp.json"] == 1
    assert waits == []


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "../x.json", "a/../../x.json", "~/x", "${HOME}/x", "https://x/y", "..", ".", "", "a\\b"],
)
def test_a_manifest_that_points_elsewhere_is_not_followed(target):
    """Outside the plugin's own folder nothing is read, and that is said."""
    root = ".codex/plugins/cache/m/p/1/.codex-plugin/plugin.json"
    home = MemoryHome({root: json.dumps({"mcpServers": target}), ".codex/plugins/cache/m/p/x.json": SERVERS})
    reading = read_home(home)

    assert (names(reading), reading.not_covered) == ([], {"plugin-sources"})
    assert set(home.opened) == {root}


def test_a_manifest_of_a_wrong_type_is_told():
    """A manifest that is no object, or names servers in no way we know, is malformed."""
    root = ".claude/plugins/cache/m/{}/1/.claude-plugin/plugin.json"
    reading = read({root.format("p"): "[1]", root.format("q"): '{"mcpServers": 5}', root.format("r"): "{}"})

    assert [reason for _, _, reason in gaps(reading)] == ["malformed", "malformed"]


def test_unreadable_switches_leave_servers_on_and_are_told():
    """A switch that cannot be read switches nothing: a live server must not be shown as off."""
    root = ".claude/plugins/cache/m/p/1/.mcp.json"
    reading = read({root: SERVERS, ".claude/settings.json": Refused("symlink")})

    assert [found.definition.enabled for found in reading.found] == [True]
    assert gaps(reading) == [("claude-code", "~/.claude/settings.json", "symlink")]


def test_switches_that_switch_nothing_are_not_opened():
    """A state file without anything to switch is no business of a scan."""
    home = MemoryHome(
        {
            ".claude/settings.json": "{",
            ".copilot/settings.json": "{",
            ".gemini/mcp-server-enablement.json": "[",
        }
    )
    reading = read_home(home)

    assert (home.opened, reading.unread) == ({}, [])


def _halo(path, *, journal):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode={journal}")
    connection.execute(
        "CREATE TABLE installed_apps (id TEXT PRIMARY KEY, spec_id TEXT, space_id TEXT, spec_json TEXT, status TEXT,"
        " user_config_json TEXT)"
    )
    server = {"command": "npx", "args": ["-y", "a@1", 1.5], "env": {"A": 1, "B": "spec"}}
    rows = [
        ("1", "stdio", {"type": "mcp", "mcp_server": server}, "active", {"B": "CANARY-config"}),
        ("2", "web", {"type": "mcp", "mcp_server": {"transport": "sse", "command": "https://mcp.example.com"}}, "paused", None),
        ("3", "gone", {"type": "mcp", "mcp_server": server}, "uninstalled", None),
        ("4", "skill", {"type": "skill"}, "active", None),
        ("5", "own", {"type": "mcp", "store": {"install_source": "builtin"}, "mcp_server": server}, "active", None),
        ("6", "empty", {"type": "mcp", "mcp_server": {}}, "error", None),
    ]  # fmt: skip
    for key, spec_id, spec, status, config in rows:
        connection.execute(
            "INSERT INTO installed_apps VALUES (?, ?, NULL, ?, ?, ?)",
            (key, spec_id, json.dumps(spec), status, json.dumps(config) if config else None),
        )
    connection.execute("INSERT INTO installed_apps VALUES ('7', 'broken', NULL, '{', 'active', NULL)")
    return connection


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_halo_database(disk, journal):
    """Apps of type mcp, with a write-ahead log and without; nothing appears beside the database."""
    folder = disk.home / ".halo"
    folder.mkdir()
    connection = _halo(folder / "halo.db", journal=journal)
    before = sorted(os.listdir(folder))
    reading = disk()
    after = sorted(os.listdir(folder))
    connection.close()

    assert before == after
    one, two = (found.definition for found in reading.found)
    assert (one.name, one.command, one.args, one.enabled) == ("stdio", "npx", ("-y", "a@1", "1.5"), True)
    assert one.env == (("A", "1"), ("B", "CANARY-config"))
    assert (two.name, two.url, two.enabled) == ("web", "https://mcp.example.com", False)
    assert [(gap.reason, gap.server) for gap in reading.unread] == [
        ("malformed-entry", "empty"),
        ("malformed-entry", "broken"),
    ]


def test_warp_database(disk):
    """Templates with one server, with a table of servers, and with none; variables stay as they are."""
    folder = disk.home / ".local/state/warp-terminal"
    folder.mkdir(parents=True)
    connection = sqlite3.connect(folder / "warp.sqlite", isolation_level=None)
    connection.execute(
        "CREATE TABLE mcp_server_installations (id TEXT, templatable_mcp_server TEXT, variable_values TEXT)"
    )
    templates = [
        {"name": "one", "template": {"json": json.dumps({"command": "npx", "args": ["{{key}}"]})}},
        {"name": "many", "template": {"json": json.dumps({"mcpServers": {"a": {"url": "https://a"}}})}},
        {"name": "flat", "template": {"json": {"b": {"command": "/opt/b"}}}},
        {"name": "none", "template": {}},
    ]
    for template in templates:
        connection.execute(
            "INSERT INTO mcp_server_installations VALUES ('x', ?, '{\"key\": \"CANARY\"}')",
            (json.dumps(template),),
        )
    connection.close()
    reading = disk()

    assert names(reading) == ["one", "a", "b"]
    assert reading.found[0].definition.args == ("{{key}}",)
    assert [gap.server for gap in reading.unread] == ["none"]


@pytest.mark.parametrize("content", [b"not a database CANARY", b"SQLite format 3\0" + bytes(84)])
def test_a_broken_database_is_malformed(content):
    """What is no database is told, without SQLite's words."""
    assert gaps(read({".halo/halo.db": content})) == [("halo", "~/.halo/halo.db", "malformed")]


def test_a_log_that_is_refused_refuses_the_database():
    """Without its log a database may say something old, so it is not read at all."""
    reading = read({".halo/halo.db": b"SQLite format 3\0", ".halo/halo.db-wal": Refused("symlink")})

    assert gaps(reading) == [("halo", "~/.halo/halo.db", "symlink")]


def test_an_empty_database_is_empty():
    """Zero bytes are an empty database, and one without the table has no servers."""
    assert gaps(read({".halo/halo.db": b""})) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["mcpServers", "projects", "mcp", "servers", "plugins", "name", "command", "url", "args",
                         "enabled", "disabledMcpServers", "enabledPlugins", "overrides", "source", "installPath",
                         "allowed", "excluded", "strict", "server", "mcp_config", "timeout", "type", "x@m", "m", "p"]),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


def _paths(harness):
    """Give one path per location of a harness, its wildcards filled."""
    paths = []
    for location in LOCATIONS:
        if location.harness == harness.id and location.format.startswith("json"):
            filled = (
                location.path[2:]
                .replace("**", "d")
                .replace("*/*/*", "m/x/1")
                .replace("*/*", "m/x")
                .replace("*", "e")
            )
            paths.append(filled)
    return paths


@given(data=st.data(), harness=st.sampled_from(HARNESSES))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_json_in_any_place_is_read_or_told(data, harness):
    """Documents of any shape in a harness's files, states included, never raise."""
    paths = _paths(harness)
    chosen = data.draw(st.lists(st.sampled_from(paths), max_size=4, unique=True)) if paths else []
    reading = read({path: json.dumps(data.draw(JSON)) for path in chosen})

    assert all(found.definition.sha256 for found in reading.found)
    assert all(gap.reason in {"malformed", "malformed-entry", "opaque"} for gap in reading.unread)


def test_a_log_of_a_database_in_use_is_applied_once_and_state_is_not_a_definition(disk):
    """The log beside a database is no location of its own."""
    connection = _halo(disk.home / "halo.db", journal="DELETE")
    connection.close()
    (disk.home / ".halo-dev").mkdir()
    (disk.home / "halo.db").rename(disk.home / ".halo-dev/halo.db")
    reading = disk()

    assert [place(reference) for reference in reading.read] == ["~/.halo-dev/halo.db"]
    assert names(reading) == ["stdio", "web"]


def test_a_python_without_databases_in_memory_says_so(monkeypatch):
    """Where SQLite cannot open bytes the file is an error, not an empty one."""
    from halod.harnesses import reader
    from halod.harnesses.formats.sqlite import Unsupported

    def unsupported(*_):
        raise Unsupported

    monkeypatch.setattr(reader, "read_database", unsupported)
    (gap,) = read({".halo/halo.db": b"SQLite format 3\0"}).unread

    assert (gap.reason, gap.errno) == ("error", "ENOTSUP")


def test_a_flood_of_entries_is_cut_and_told(monkeypatch):
    """A hostile file cannot spend the scan: what is beyond the limit is named as not read."""
    from halod.harnesses import scan

    monkeypatch.setattr(scan, "FILE_ENTRIES", 3)
    servers = {str(number): {"command": "/opt/x"} for number in range(5)}
    reading = read({CURSOR: json.dumps({"mcpServers": servers})})

    assert names(reading) == ["0", "1", "2"]
    assert gaps(reading) == [("cursor", "~/.cursor/mcp.json", "too-many-entries")]


def test_a_flood_of_pointers_is_cut_and_told():
    """A manifest that names more files than any plugin has is read so far only."""
    root = ".claude/plugins/cache/m/p/1/.claude-plugin/plugin.json"
    reading = read({root: json.dumps({"mcpServers": [f"./{number}.json" for number in range(100)]})})

    assert [reason for _, _, reason in gaps(reading)] == ["too-many-entries"]


def test_long_lists_of_names_cost_little():
    """A list of a hundred thousand names beside as many servers is one pass."""
    servers = {f"s{number}": {"command": "/opt/x"} for number in range(5000)}
    off = [f"s{number}" for number in range(0, 5000, 2)]
    reading = read(
        {CLAUDE: json.dumps({"projects": {"/p": {"mcpServers": servers, "disabledMcpServers": off}}})}
    )

    assert sum(found.definition.enabled for found in reading.found) == 2500


def test_a_deeply_nested_sign_in_does_not_stop_the_scan():
    """Nesting within an entry is walked without recursion."""
    nested = '{"x":' * 900 + '"https://login.example.net"' + "}" * 900
    reading = read({CLAUDE: '{"mcpServers": {"a": {"url": "https://x", "oauth": ' + nested + "}}}"})

    assert [found.definition.features for found in reading.found] == [frozenset({"auth-endpoint"})]


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("abc", "abc", True), ("abc", "ab", False), ("abc", "*", True), ("", "*", True), ("abc", "a*", True),
        ("abc", "*c", True), ("abc", "a?c", True), ("abc", "a?", False), ("abc", "a*b*c", True),
        ("abc", "a*d", False), ("abc", "??", False), ("abc", "????", False), ("a*c", "a*c", True),
        ("aab", "*ab", True), ("abc", "abc*", True), ("abc", "[abc]*", False), ("x" * 300, "*", False),
        ("a" * 250, "*a" * 100 + "b", False),
    ],
)  # fmt: skip
def test_patterns_of_names(name, pattern, fits):
    """Qwen's `*` and `?`, and nothing else, in bounded time."""
    from halod.harnesses import gemini

    assert gemini.fits(name, pattern) is fits


@pytest.mark.parametrize(
    ("document", "found", "unread"),
    [
        ("[]", [], []),
        ("[1]", [], ["malformed"]),
        ('{"mcp": []}', [], []),
        ('{"mcp": "x"}', [], ["malformed"]),
        ('{"mcp": {"servers": []}}', [], []),
        ('{"mcp": {"servers": "x"}}', [], ["malformed"]),
        ('{"mcp": {"servers": null, "timeout": 5000}}', [], []),
        ('{"mcp": {"servers": {"a": {"command": ["/opt/a"]}}}}', ["a"], []),
        ('{"mcp": {"servers": {"command": ["/opt/a"]}}}', ["servers"], []),
    ],
)
def test_opencode_tables_of_every_type(document, found, unread):
    """The envelope and its neighbours may be of any type."""
    reading = read({".config/opencode/opencode.json": document})

    assert names(reading) == found
    assert [reason for _, _, reason in gaps(reading)] == unread


@pytest.mark.parametrize(
    ("document", "found", "unread"),
    [
        ("mcp = 5", [], ["malformed"]),
        ("[mcp]", [], []),
        ("[mcp]\nsse_servers = 5", [], ["malformed"]),
        ("[mcp]\nstdio_servers = [5]", [], ["malformed-entry"]),
    ],
)
def test_openhands_tables_of_every_type(document, found, unread):
    """Lists that are none, and items that are none."""
    reading = read({".openhands/config.toml": document})

    assert names(reading) == found
    assert [reason for _, _, reason in gaps(reading)] == unread


@pytest.mark.parametrize(
    ("manifest", "unread"),
    [("[]", []), ("[1]", ["malformed"]), ("{}", []), ('{"server": "x"}', ["malformed-entry"])],
)
def test_desktop_manifests_of_every_type(manifest, unread):
    """A manifest without a server is none; one whose server is no object is told."""
    reading = read({".config/Claude/Claude Extensions/e/manifest.json": manifest})

    assert (names(reading), [reason for _, _, reason in gaps(reading)]) == ([], unread)


def test_a_catalogue_of_a_plugin_elsewhere():
    """A plugin outside `~/.claude/` is named; its entry stands, a file that it points to does not."""
    market = ".claude/plugins/marketplaces/m/.claude-plugin/marketplace.json"
    plugins = [
        {"name": "p", "strict": False, "mcpServers": {"a": {"command": "/opt/a"}}},
        {"name": "q", "strict": False, "mcpServers": "./x.json"},
    ]
    installed = {name + "@m": [{"installPath": "/srv/" + name}] for name in ("p", "q")}
    reading = read(
        {
            market: json.dumps({"plugins": plugins}),
            ".claude/plugins/installed_plugins.json": json.dumps({"plugins": installed}),
        }
    )

    assert names(reading) == ["a"]
    assert reading.not_covered == {"plugin-sources"}


def test_a_file_needed_by_two_readers_of_one_harness_is_opened_again():
    """A manifest that points to itself is read as what it is, once more, and does not loop."""
    path = ".claude/plugins/cache/m/p/1/.claude-plugin/plugin.json"
    reading = read({path: '{"mcpServers": "./.claude-plugin/plugin.json"}'})

    assert names(reading) == []
    assert len(gaps(reading)) <= 1


def test_a_link_in_place_of_a_folder_of_the_home_is_walked(disk):
    """People keep `~/.config` elsewhere in the home: the file is named as the harness knows it."""
    (disk.home / "dotfiles").mkdir()
    (disk.home / ".config").symlink_to("dotfiles")
    reading = disk({"dotfiles/amp/settings.json": '{"amp.mcpServers": {"a": {"command": "/opt/a"}}}'})

    assert [place(found.definition.file) for found in reading.found] == ["~/.config/amp/settings.json"]
