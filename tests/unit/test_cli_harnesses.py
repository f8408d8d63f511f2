# SPDX-License-Identifier: Apache-2.0
"""`halod harnesses`: the coverage, for people and for programs."""

import json

from halod import cli
from halod.harnesses import HARNESSES, LOCATIONS


def test_the_table_names_every_tool_and_place(capsys):
    """Id, name, confidence, and below it the files; the short forms are explained."""
    assert cli.main(["harnesses"]) == 0
    text = capsys.readouterr().out
    for harness in HARNESSES:
        assert harness.id in text
        assert all(place.path in text for place in harness.places)
    assert "\n<VSC> is the data folder" in text
    assert f"{len(HARNESSES)} tools" in text


def test_only_the_named_tools(capsys):
    """Ids choose; no short form, no explanation of one."""
    assert cli.main(["harnesses", "cursor"]) == 0
    text = capsys.readouterr().out
    assert "~/.cursor/mcp.json" in text
    assert "codex" not in text
    assert "<VSC>" not in text


def test_json_has_every_path(capsys):
    """One record a tool, with every path written out."""
    assert cli.main(["harnesses", "--format", "json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["id"] for record in records] == [harness.id for harness in HARNESSES]
    assert [file["path"] for record in records for file in record["files"]] == [
        place.path for place in LOCATIONS
    ]
    assert {record["confidence"] for record in records} <= set("ABCD")


def test_an_unknown_tool(capsys):
    """Exit 2, with the id that was meant."""
    assert cli.main(["harnesses", "cursr"]) == 2
    assert "did you mean cursor?" in capsys.readouterr().err
