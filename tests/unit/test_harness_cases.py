# SPDX-License-Identifier: Apache-2.0
"""The acceptance cases of `../shared/cases`, as far as the harness room decides them: which definitions are read."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from halod.harnesses.model import Reading
from halod.harnesses.reader import read_home
from halod.harnesses.table import LOCATIONS, display
from halod.home import Home

CASES = Path(__file__).parents[2].parent / "shared" / "cases"
FOLDERS = sorted(path.parent for path in CASES.glob("*/case.json"))
# Names that the status side shows in another form (design 8): compared without the name.
REDACTED = {"75-odd-server-names"}

pytestmark = pytest.mark.skipif(
    not FOLDERS, reason="the cases lie beside the checkout: ../shared/cases is absent"
)


def relink(home: Path) -> None:
    """Make links again where the copy of the cases was made without them: a file that holds a link's target."""
    for path in [found for found in home.rglob("*") if found.is_file() and not found.is_symlink()]:
        target = path.read_bytes()
        if 0 < len(target) < 200 and b"\n" not in target and b"/" in target:
            pointed = path.parent / os.fsdecode(target)
            if pointed.exists() and home.resolve() in pointed.resolve().parents:
                path.unlink()
                path.symlink_to(os.fsdecode(target))


def read_case(folder: Path, tmp_path: Path) -> Reading:
    home = tmp_path / "home"
    if (folder / "home").exists():
        shutil.copytree(folder / "home", home, symlinks=True)
    home.mkdir(exist_ok=True)
    relink(home)
    for line in json.loads((folder / "case.json").read_text("utf-8")).get("setup", []):
        subprocess.run(["sh", "-euc", line], cwd=home, check=True)
    opened = Home.open(str(home), uid=os.getuid())
    try:
        return read_home(opened, sleep=lambda _: None)
    finally:
        opened.close()


def rows(reading: Reading) -> list[tuple[object, ...]]:
    """Every half of every definition, as a finding would name it; of a pair either half may be the worse one."""
    found = []
    for pair in reading.found:
        for half in (pair.definition, pair.other):
            if half is not None:
                path = display(LOCATIONS[half.file.location], half.file.parts)
                found.append(
                    (half.harness, path, half.name, half.transport, half.sha256, half.scope, half.enabled)
                )
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case_is_read(folder: Path, tmp_path: Path) -> None:
    """Every expected finding is read as it stands, and nothing but approved servers is read beside them."""
    expect = json.loads((folder / "case.json").read_text("utf-8"))["expect"]
    reading = read_case(folder, tmp_path)
    got = rows(reading)

    if folder.name in REDACTED:
        got = [(*row[:2], "", *row[3:]) for row in got]
    folded = {row["server"]: row["projects"] for row in expect.get("projects", [])}
    for finding in expect["findings"]:
        name = "" if folder.name in REDACTED else finding["server"]
        row = (
            finding["harness"], finding["file"], name, finding["transport"],
            finding["definitionSha256"], finding["scope"], finding["enabled"],
        )  # fmt: skip
        for _ in range(folded.get(finding["server"], 1) if finding["scope"] == "project" else 1):
            assert row in got
            got.remove(row)

    approved = {row["harness"] for row in expect["approved"]}
    pairs = {half.sha256 for pair in reading.found if pair.other for half in (pair.definition, pair.other)}
    left = [row for row in got if row[4] not in pairs]
    assert {row[0] for row in left} <= approved
    assert approved <= {row[0] for row in got}

    skipped = {(row["harness"], row["file"], row["reason"], row.get("server")) for row in expect["skipped"]}
    unread = {
        (location.harness, display(location, gap.file.parts), gap.reason, gap.server)
        for gap in reading.unread
        for location in [LOCATIONS[gap.file.location]]
    }
    assert {row[:3] for row in unread} == {row[:3] for row in skipped}
    assert len(reading.unread) == len(expect["skipped"])
    for row in skipped:
        assert row[3] is None or row in unread
