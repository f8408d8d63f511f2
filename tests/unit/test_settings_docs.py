# SPDX-License-Identifier: Apache-2.0
"""The settings page and the sample say what the types say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from halod.settings import parse
from halod.settings.model import TABLES, ExtraLocation, Settings

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = (ROOT / "packaging" / "halod.toml").read_text()


def test_the_page_is_current():
    """What the generator would write is what lies there."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "gen_settings_doc.py"), "--check"],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_sample_sets_nothing():
    """Installed as it is, it is valid and every default holds."""
    assert parse(SAMPLE.encode(), "/x", platform="linux") == parse(b"", "/x", platform="linux")


def keys() -> list[str]:
    tables = [type(getattr(Settings(), table)) for table in TABLES]
    return [key for table in (*tables, ExtraLocation) for key in table.__struct_fields__ if key != "tables"]


@pytest.mark.parametrize("key", sorted(set(keys()) - {"extra_locations"}))
def test_the_sample_shows_every_key(key):
    assert re.search(rf"^# {key} = ", SAMPLE, re.MULTILINE) or key == "format"


def test_every_example_of_the_sample_is_valid():
    """With one of each pair of alternatives left out, the examples together are settings."""
    left_out = ('# path = "/etc', "# token_file")
    text = "\n".join(
        line.removeprefix("# ")
        if re.match(r"# (?:[a-z_]+ = |\[\[)", line) and not line.startswith(left_out)
        else line
        for line in SAMPLE.splitlines()
    )
    got = parse(text.encode(), "/x", platform="linux")
    assert got.scan.extra_locations[0].harness == "claude-code"
    assert got.policy.url
    assert got.report.enroll_key_file
