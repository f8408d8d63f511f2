# SPDX-License-Identifier: Apache-2.0
"""A value of a type that nobody expects, at every key of every fixture's files, costs its entry or its file.

Every document of `tests/assets/harnesses` that is data is taken apart: at each place in it stands, in turn, what
does not belong there. So each key that a reader, a switch or a dialect looks at has had a list, a map, a number
and a word of no meaning in it.
"""

import json
import random
import sqlite3
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from halod.harnesses import LOCATIONS, reader
from halod.harnesses.entries import Unusable, read_entry
from halod.harnesses.formats import Malformed, decode
from halod.harnesses.shapes import SHAPES
from tests.support.homes import gaps, names, read

ASSETS = Path(__file__).parents[1] / "assets" / "harnesses"
HOMES = sorted(path.parent / "home" for path in ASSETS.glob("*/*/expect.json"))
ODD = [
    None, True, False, 0, -1.5, 10**400, "", "x", "\ud83d", "~/../x", "*", "a\0b", [], ["x"], [None], [[]], [{}], [0, "x", {"x": []}],
    {}, {"x": 1}, {"": None}, {"x": {"x": []}}, {"command": []}, {"url": {}, "type": []}, {"name": [], "command": "x"},
]  # fmt: skip
EACH = 4  # odd values for one place, drawn anew for each with a fixed seed
FORMATS = {".json": "json5", ".jsonc": "json5", ".yaml": "yaml", ".toml": "toml"}
CURSOR = ".cursor/mcp.json"
FINE = json.dumps({"mcpServers": {"fine": {"command": "/opt/fine"}}})


def content(home):
    return {
        str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()
    }


def places(value, here=()):
    """Give the path of everything in a document, the document itself included."""
    yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*here, key))


def replaced(value, path, odd):
    """Give a document with `odd` at a path."""
    if not path:
        return odd
    changed = value.copy()
    changed[path[0]] = replaced(value[path[0]], path[1:], odd)
    return changed


def toml(value):
    """Write a value as TOML, which has no null: the string is as odd."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value.encode("utf-8", "replace").decode(), ensure_ascii=False).replace("\x7f", "")
    return '"null"' if value is None else json.dumps(value)


def written(suffix, document):
    """Write a document in the format of a file."""
    if suffix != ".toml":
        return json.dumps(document)
    if not isinstance(document, dict):
        return toml(document)
    return "".join(f"{json.dumps(key)} = {toml(item)}\n" for key, item in document.items())


@pytest.fixture
def faults(monkeypatch):
    """Collect what the reader of entries raises beside Unusable: the engine tells both alike."""
    found = []

    def watched(*arguments):
        try:
            return read_entry(*arguments)
        except Unusable:
            raise
        except Exception as error:
            found.append(error)
            raise

    monkeypatch.setattr(reader, "read_entry", watched)
    return found


@pytest.mark.parametrize("home", HOMES, ids=lambda home: f"{home.parts[-3]}/{home.parts[-2]}")
def test_odd_values_cost_their_entry_or_file(home, faults):
    """No place of any file makes a fault of ours, and another harness's server is always found."""
    harness = home.parts[-3]
    drawn = random.Random(home.parts[-2])
    files = content(home)
    wanted = frozenset({harness, "cursor"})
    looked = 0
    for path, data in files.items():
        suffix = Path(path).suffix
        if suffix not in FORMATS or path == CURSOR:
            continue
        try:
            document = decode(FORMATS[suffix], data, ("/",))
        except Malformed:
            continue
        for place in places(document):
            for odd in drawn.sample(ODD, EACH):
                changed = files | {path: written(suffix, replaced(document, place, odd)), CURSOR: FINE}
                reading = read(changed, harnesses=wanted)
                assert "fine" in names(reading), (path, place, odd)
                assert [gap for gap in gaps(reading) if gap[2] == "error"] == [], (path, place, odd)
                assert faults == [], (path, place, odd)
                assert all(found.definition.sha256 for found in reading.found)
                looked += 1
    if any(Path(path).suffix in FORMATS and path != CURSOR for path in files):
        assert looked


# --- databases and XML


def halo(path, rows):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE installed_apps (spec_id, status, spec_json, user_config_json)")
    connection.executemany("INSERT INTO installed_apps VALUES (?, ?, ?, ?)", rows)
    connection.execute("COMMIT")
    connection.close()
    return path.read_bytes()


def warp(path, rows):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE mcp_server_installations (templatable_mcp_server)")
    connection.executemany("INSERT INTO mcp_server_installations VALUES (?)", rows)
    connection.execute("COMMIT")
    connection.close()
    return path.read_bytes()


def odd_documents(document):
    return [replaced(document, place, odd) for place in places(document) for odd in ODD]


def test_odd_values_in_a_database_of_halo(tmp_path, faults):
    """Every row is read by itself: all types of a column, and every type in the JSON of one."""
    spec = {
        "type": "mcp", "name": "n", "store": {"install_source": "x"},
        "mcp_server": {"command": "npx", "args": ["x"], "env": {"A": "1"}, "cwd": "/x", "transport": "stdio",
                       "headers": {"A": "b"}, "oauth": {"a": "b"}, "dev": {"debug": 1}},
    }  # fmt: skip
    cells = [None, 1, 1.5, b"\xff", "", "x", "[]", '{"A": []}', "[" * 2000]
    good = json.dumps(spec)
    rows = [("a", "active", json.dumps(one), None) for one in odd_documents(spec)]
    rows += [
        tuple(cell if at == column else known for at, known in enumerate(("a", "active", good, "{}")))
        for column in range(4)
        for cell in cells
    ]
    rows.append(
        ("deep", "active", '{"type": "mcp", "name": ' + "[" * 900 + "]" * 900 + ', "mcp_server": {}}', None)
    )
    rows.append(
        (None, "active", '{"type": "mcp", "name": ' + "[" * 900 + "]" * 900 + ', "mcp_server": {}}', None)
    )
    rows.append(("last", "active", good, "{}"))
    reading = read({".halo/halo.db": halo(tmp_path / "halo.db", rows)})
    assert faults == []
    assert {gap[2] for gap in gaps(reading)} == {"malformed-entry"}
    assert names(reading)[-1] == "last"


def test_odd_values_in_a_database_of_warp(tmp_path, faults):
    """As above, for templates whose JSON is a text or a tree."""
    server = {"command": "npx", "args": ["x"], "env": {"A": "1"}, "url": "https://x.example"}
    tables = [server, {"mcpServers": {"a": server}}, {"mcp": {"servers": {"a": server}}}, {"a": server}]
    rows = [(json.dumps(one),) for one in odd_documents({"name": "n", "template": {"json": tables[1]}})]
    for table in tables:
        texts = map(json.dumps, odd_documents(table))
        rows += [(json.dumps({"name": "n", "template": {"json": text}}),) for text in texts]
    rows += [(cell,) for cell in (None, 1, 1.5, b"\xff", "", "x", "[]", "[" * 2000)]
    rows.append((json.dumps({"name": "last", "template": {"json": {"command": "npx"}}}),))
    path = ".local/state/warp-terminal/warp.sqlite"
    reading = read({path: warp(tmp_path / "warp.sqlite", rows)})
    assert faults == []
    assert {gap[2] for gap in gaps(reading)} <= {"malformed-entry", "malformed"}
    assert names(reading)[-1] == "last"


def test_odd_elements_of_jetbrains_xml(faults):
    """Every element without its attributes, its children, under another tag and once more in itself."""
    for path in sorted(ASSETS.glob("jetbrains-*/*/home/**/*.xml")):
        home = next(parent for parent in path.parents if parent.name == "home")
        count = len(list(ET.parse(path).getroot().iter()))
        for number in range(count):
            for change in ("attributes", "children", "tag", "inside"):
                root = ET.parse(path).getroot()
                element = list(root.iter())[number]
                if change == "attributes":
                    element.attrib.clear()
                elif change == "children":
                    element[:] = []
                elif change == "tag":
                    element.tag = "x"
                else:
                    element.append(ET.fromstring(ET.tostring(element)))
                files = {str(path.relative_to(home)): ET.tostring(root), CURSOR: FINE}
                reading = read(files)
                assert "fine" in names(reading)
                assert {gap[2] for gap in gaps(reading)} <= {"malformed-entry"}
    assert faults == []


def jetbrains(arguments):
    options = f'<option name="programPath" value="npx" /><option name="arguments" value="{arguments}" />'
    server = f"<McpServerConfigurationProperties>{options}</McpServerConfigurationProperties>"
    component = f'<component name="McpApplicationServerCommands"><commands>{server}</commands></component>'
    return {
        ".config/JetBrains/IntelliJIdea2026.1/options/llm.mcpServers.xml": f"<application>{component}</application>"
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-y  a@1\tb ", ["-y", "a@1", "b"]),
        ("&quot;a b&quot;c &quot;&quot; d", ["a bc", "", "d"]),
        ("a &quot;b c", ["a", "b c"]),
        ("a\u00a0b", ["a", "b"]),
        ("it's one", ["it's one"]),
        ("a\\ b", ["a\\ b"]),
        ("x" * 1_500_000, ["x" * 1_500_000]),
    ],
    ids=["blanks", "quotes", "open-quote", "no-break", "apostrophe", "backslash", "long"],
)
def test_arguments_of_jetbrains_in_one_line(line, words):
    """One long word costs no more than its length: the suite's time limit would end a quadratic reader."""
    (found,) = read(jetbrains(line)).found
    assert list(found.definition.args) == words


# --- when a reader of ours breaks all the same


@pytest.mark.parametrize(
    "fault", [TypeError("CANARY"), KeyError("CANARY"), RecursionError(), MemoryError()], ids=repr
)
def test_a_shape_that_breaks_costs_the_entry(monkeypatch, fault):
    """The entries beside it, and all other files, are read; the entry is told by its name."""
    sound = SHAPES["zed"]

    def broken(entry):
        if "CANARY" in entry:
            raise fault
        return sound(entry)

    monkeypatch.setitem(SHAPES, "zed", broken)
    servers = {
        "before": {"command": "/opt/x"},
        "odd": {"CANARY": 1, "command": "/opt/x"},
        "after": {"command": "/opt/x"},
    }
    reading = read({".config/zed/settings.json": json.dumps({"context_servers": servers}), CURSOR: FINE})
    assert sorted(names(reading)) == ["after", "before", "fine"]
    assert [(LOCATIONS[gap.file.location].harness, gap.reason, gap.server) for gap in reading.unread] == [
        ("zed", "malformed-entry", "odd")
    ]
