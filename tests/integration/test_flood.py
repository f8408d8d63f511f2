# SPDX-License-Identifier: Apache-2.0
"""A home with 20,000 definitions, through the real command: the flood is cut and told, and costs nothing else."""

import json
import subprocess
import sys

import pytest

from halod.harnesses.scan import FILE_ENTRIES
from tests.support.guard import HANG

MAIN = "import sys; from halod.cli import main; sys.exit(main())"
COUNT = 20_000
POLICY = """\
org: acme
rings: [ring0]
mcp:
  servers:
    - id: notes
      package: {type: npm, identifier: "@acme/notes", version: 1.0.0}
"""
ARGUMENTS = {"notes": ["-y", "@acme/notes@1.0.0"], "evil": ["-y", "evil-CANARY@1.0.0"]}


def definitions(count, evil=range(0)):
    """Give approved servers with long names; those of the numbers in `evil` are nobody's."""
    return {
        f"{word}-{number:05}-{'n' * 40}": {"command": "npx", "args": ARGUMENTS[word]}
        for number, word in ((number, "evil" if number in evil else "notes") for number in range(count))
    }


def scan(home, *more):
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "scan", "--home", str(home), "--format", "json", *more],
        capture_output=True, check=False, timeout=HANG, cwd="/",
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    assert b"CANARY" not in done.stdout + done.stderr
    return json.loads(done.stdout), done.returncode


def fill(home, files):
    for path, servers in files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(json.dumps({"mcpServers": servers}))


FLOODS = {
    "one-file": [".claude.json"],
    "four-files": [".claude.json", ".gemini/settings.json", ".kiro/settings/mcp.json", ".qwen/settings.json"],
}


@pytest.fixture(params=FLOODS.values(), ids=FLOODS)
def paths(request):
    return request.param


def told(status):
    return sorted((row["reason"], row["file"]) for row in status["skipped"])


def cut(paths):
    return sorted(("too-many-entries", f"~/{path}") for path in paths)


def test_an_inventory_of_a_flood_is_cut_and_told(tmp_path, paths):
    """Each flooded file says that it was cut; the servers of another file are there."""
    fill(tmp_path, {path: definitions(COUNT // len(paths)) for path in paths})
    fill(tmp_path, {".cursor/mcp.json": {"still-here": {"command": "npx", "args": ["-y", "x"]}}})
    status, code = scan(tmp_path)
    assert (code, told(status)) == (3, cut(paths))
    assert "still-here" in {row["server"] for row in status["inventory"]}
    assert len(status["inventory"]) > 5_000


def test_a_flood_of_approved_servers_is_not_clean(tmp_path, paths):
    """All that is read is approved, and yet the exit code says that something was not."""
    home = tmp_path / "home"
    fill(home, {path: definitions(COUNT // len(paths)) for path in paths})
    (tmp_path / "halos.yaml").write_text(POLICY)
    status, code = scan(home, "--policy", str(tmp_path / "halos.yaml"), "--ring", "ring0")
    assert (code, told(status), status["mcpDrift"]) == (3, cut(paths), [])


def test_a_flood_hides_no_finding_that_was_read(tmp_path, paths):
    """The gravest rows are kept, though they come last of those that are read."""
    home = tmp_path / "home"
    each = COUNT // len(paths)
    last = min(FILE_ENTRIES, each)
    fill(home, {path: definitions(each, range(last - 5, last)) for path in paths})
    (tmp_path / "halos.yaml").write_text(POLICY)
    status, code = scan(home, "--policy", str(tmp_path / "halos.yaml"), "--ring", "ring0")
    assert (code, told(status)) == (1, cut(paths))
    assert len(status["mcpDrift"]) == 5 * len(paths)
    assert all(row["server"].startswith("evil-") for row in status["mcpDrift"])
