# SPDX-License-Identifier: Apache-2.0
"""One home per harness and shape under `tests/assets/harnesses`: what is read of it, to the last field."""

import json
import os
from pathlib import Path

import pytest

from halod.harnesses import HARNESSES, LOCATIONS, display, read_home
from halod.harnesses.model import Reading
from halod.home import Home

ASSETS = Path(__file__).parents[1] / "assets" / "harnesses"
FIXTURES = sorted(path.parent for path in ASSETS.glob("*/*/expect.json"))


def read(home: Path) -> Reading:
    opened = Home.open(str(home), uid=os.getuid())
    try:
        return read_home(opened, sleep=lambda _: None)
    finally:
        opened.close()


def described(reading: Reading) -> list[dict[str, object]]:
    """Say what was found in the words of an `expect.json`."""
    rows = []
    for found in reading.found:
        one = found.definition
        row: dict[str, object] = {
            "harness": one.harness,
            "file": display(LOCATIONS[one.file.location], one.file.parts),
            "server": one.name,
            "scope": one.scope,
            "enabled": one.enabled,
        }
        row |= {"run": [one.command, *one.args]} if one.transport == "stdio" else {"url": one.url}
        row |= {"env": [list(pair) for pair in one.env]} if one.env else {}
        row |= {"cwd": one.cwd} if one.cwd else {}
        row |= {"features": sorted(one.features)} if one.features else {}
        if found.other is not None:
            row["other"] = found.other.url
            assert found.other.enabled == one.enabled
        rows.append(row)
    return rows


def by_text(rows: list[dict[str, object]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.parametrize("folder", FIXTURES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_fixture_is_read_as_expected(folder: Path) -> None:
    """Every definition of the fixture's home is found as `expect.json` has it, and nothing else is."""
    expect = json.loads((folder / "expect.json").read_text("utf-8"))
    reading = read(folder / "home")

    want = [{"harness": folder.parent.name, **row} for row in expect["found"]]
    assert by_text(described(reading)) == by_text(want)
    gaps = [
        {"file": display(LOCATIONS[gap.file.location], gap.file.parts), "reason": gap.reason}
        | ({"server": gap.server} if gap.server is not None else {})
        for gap in reading.unread
    ]
    assert by_text(gaps) == by_text(expect["unread"])
    assert sorted(reading.not_covered) == expect["notCovered"]


def test_entries_of_one_table_keep_their_order() -> None:
    """Equal names are told apart by their position, so the order of a list is the order of the file."""
    reading = read(ASSETS / "augment" / "cli-and-extension" / "home")

    assert [found.definition.transport for found in reading.found if found.definition.name == "first"] == [
        "stdio",
        "http",
    ]


@pytest.mark.parametrize("harness", [harness.id for harness in HARNESSES])
def test_every_harness_has_a_fixture(harness: str) -> None:
    """A harness of the table without a fixture would be a promise only."""
    assert [folder for folder in FIXTURES if folder.parent.name == harness]


@pytest.mark.parametrize("folder", FIXTURES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_fixture_carries_a_canary(folder: Path) -> None:
    """The privacy tests search everything that is written for these strings, so each fixture must have one."""
    texts = [path.read_bytes() for path in folder.rglob("home/**/*") if path.is_file()]

    assert any(b"CANARY" in text for text in texts)
