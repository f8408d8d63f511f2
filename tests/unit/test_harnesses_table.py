# SPDX-License-Identifier: Apache-2.0
"""The table of harnesses: complete, well-formed, and cheap to have."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from halod.harnesses import HARNESS_IDS, HARNESSES, LOCATIONS, display, extra_location
from halod.harnesses.formats import decode
from halod.harnesses.reader import _READERS
from halod.harnesses.switches import SWITCHES
from halod.harnesses.table import expand

FACTS = Path(__file__).parents[2].parent / "shared" / "harnesses.json"
FORMATS = {
    "json", "jsonc", "json5", "toml", "yaml", "yaml-1.1", "markdown+yaml-frontmatter", "xml", "sqlite", "opaque",
}  # fmt: skip
READ_ROLES = {"user", "legacy", "plugin", "agent", "shared", "fallback"}


@pytest.mark.parametrize("number", range(len(LOCATIONS)))
def test_location_is_well_formed(number):
    """Every location has a known format, role, scope and confidence, tables for its format, and a plain path."""
    location = LOCATIONS[number]
    components = location.path.split("/")

    assert location.harness in HARNESS_IDS
    assert location.format in FORMATS
    assert location.confidence in "ABCD"
    assert location.role in READ_ROLES | {"state"}
    assert location.scope in {"user", "project", "plugin", "agent"}
    assert location.place.reader in _READERS
    assert components[0] == "~"
    assert all(part not in {"", ".", ".."} for part in components[1:])
    assert not set(location.path) & set("{}<>?[]")
    assert location.tables or location.format == "opaque"
    assert all(table.startswith("/") for table in location.tables) or location.format in {"xml", "sqlite"}


def test_every_format_of_the_table_is_one_that_is_decoded():
    """The decoder takes every format word that the table uses; SQLite and opaque files have readers of their own."""
    for location in LOCATIONS:
        if location.format not in {"sqlite", "opaque"}:
            assert decode(location.format, b"", location.tables, location.place.also) == {}


def test_no_location_of_a_harness_is_listed_twice_alike():
    """Two entries for one path of one harness differ in what they read there."""
    keys = [(location.harness, location.path, location.tables) for location in LOCATIONS]

    assert len(keys) == len(set(keys))


def test_harness_ids_are_unique():
    """An id names one harness, and so does an alias."""
    ids = [name for harness in HARNESSES for name in (harness.id, *harness.aliases)]

    assert len(ids) == len(set(ids))
    assert set(SWITCHES) <= HARNESS_IDS


@pytest.mark.skipif(not FACTS.exists(), reason="harnesses.json lies beside the checkout: ../shared is absent")
def test_every_file_of_the_facts_is_in_the_table():
    """Each file of harnesses.json that is read is a location of its harness, with the same tables at least."""
    have = {}
    for location in LOCATIONS:
        have.setdefault((location.harness, location.path), set()).update(location.tables)
    missing = []
    for harness in json.loads(FACTS.read_text("utf-8")):
        assert harness["id"] in HARNESS_IDS
        for file in harness["files"]:
            if file["role"] not in READ_ROLES or not file["path"].startswith("~/"):
                continue
            for path in expand(file["path"]):
                tables = have.get((harness["id"], path))
                wanted = {table for table in file["tables"] if table.startswith("/")}
                wanted -= {"/server/mcp_config", "/plugins/[]/mcpServers"}  # walked by code
                if tables is None or not wanted <= tables:
                    missing.append((harness["id"], path))

    assert missing == []


def test_relatives_of_vscode_are_covered_on_both_systems():
    """Extensions keep their files in the data folder of whatever is built on VS Code (harnesses.md)."""
    paths = {location.path for location in LOCATIONS if location.harness == "cline"}
    tail = "User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"

    for base, app in itertools.product(
        ("Library/Application Support", ".config"),
        ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Trae", "Kiro", "Antigravity"),
    ):
        assert f"~/{base}/{app}/{tail}" in paths
    assert f"~/.vscode-server/data/{tail}" in paths


def test_braces_expand_in_order():
    """Alternatives stand for every combination, first things first."""
    assert list(expand("~/{a,b}/{c,d}")) == ["~/a/c", "~/a/d", "~/b/c", "~/b/d"]
    assert list(expand("~/plain")) == ["~/plain"]


@pytest.mark.parametrize(
    ("path", "parts", "shown"),
    [
        ("~/.codex/config.toml", (), "~/.codex/config.toml"),
        ("~/.codex/*.config.toml", ("work.config.toml",), "~/.codex/work.config.toml"),
        ("~/.codex/*.config.toml", (), "~/.codex"),
        ("~/.claude/plugins/cache/*/*/*/.mcp.json", ("m", "p", "1"), "~/.claude/plugins/cache/m/p/1/.mcp.json"),
        ("~/.claude/plugins/cache/*/*/*/.mcp.json", ("m",), "~/.claude/plugins/cache/m"),
        ("~/.claude/plugins/cache/*/*/*/**", ("m", "p", "1", "conf/x.json"), "~/.claude/plugins/cache/m/p/1/conf/x.json"),
        ("~/.cursor/plugins/cache/**/mcp.json", ("a/b",), "~/.cursor/plugins/cache/a/b/mcp.json"),
        ("~/.cursor/plugins/cache/**/mcp.json", ("",), "~/.cursor/plugins/cache/mcp.json"),
    ],
)  # fmt: skip
def test_display_fills_the_wildcards(path, parts, shown):
    """A path is shown as the person knows it; one that could not be walked ends where the walk did."""
    location = next(location for location in LOCATIONS if location.path == path)

    assert display(location, parts) == shown


def test_extra_location_reads_like_the_first_file():
    """What settings add is read with the format, tables and dialect of the harness's own file."""
    added = extra_location("codex", "~/work/codex-home/config.toml")

    assert (added.format, added.tables, added.scope) == ("toml", ("/mcp_servers",), "user")
    assert added.folder == "work/codex-home"


@pytest.mark.parametrize("path", ["/etc/x", "~", "~/", "~/../x", "~/a//b", "x", "~/./x"])
def test_extra_location_stays_in_the_home(path):
    """A location that is no path below the home is refused."""
    with pytest.raises(ValueError, match="stays in the home"):
        extra_location("codex", path)


def test_extra_location_of_an_unknown_harness_is_refused():
    """A misspelled id is the caller's fault."""
    with pytest.raises(KeyError):
        extra_location("codexx", "~/x")


def test_importing_a_type_does_not_import_parsers():
    """`halod explain` needs a type of this package and pays for no parser."""
    code = (
        "import sys, halod.harnesses.model, halod.harnesses; "
        "sys.exit(any(name in sys.modules for name in ('yaml', 'tomli', 'sqlite3', 'halod.harnesses.table')))"
    )

    assert (
        subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode
        == 0
    )


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    """The lazy names do not swallow misspellings."""
    import halod.harnesses

    with pytest.raises(AttributeError):
        _ = halod.harnesses.LOCATION
