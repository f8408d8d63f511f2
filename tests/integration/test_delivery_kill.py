# SPDX-License-Identifier: Apache-2.0
"""Killed 200 times at random points while findings change: no transition is lost, doubled or out of order."""

import json
import random
import subprocess
import sys

import pytest

from tests.support.guard import HANG
from tests.support.server import ROOT, running

ROUNDS = 200
SEED = 417
# `lost`: the server takes a report and closes without an answer, as if its answer were lost on the way.
WORDS = random.Random(SEED).choices(
    ["ok", "lost", "503", "close", "truncate-body"], [70, 12, 8, 6, 4], k=20_000
)


@pytest.mark.timeout(6 * HANG)
def test_killed_at_random_points(tmp_path):
    """What was committed arrives, once each by its id, in order; the server's picture is the machine's."""
    with running() as server:
        server.plan(*WORDS, "ok")
        command = [
            sys.executable,
            "-m",
            "tests.support.victim",
            server.url,
            str(tmp_path),
            str(ROUNDS),
            str(SEED),
        ]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=5 * HANG, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        arrived, log = server.transitions(), server.log()
        (newest,) = server.ask(newest=True).values()
    committed = (tmp_path / "committed.txt").read_text().split()
    numbers = [int(one["id"].rpartition("-")[2]) for one in arrived]
    assert len(committed) > ROUNDS
    # Enough happened between the kills to tell anything, on a busy machine too.
    assert sum(entry["status"] == 204 for entry in log) > ROUNDS // 4
    assert numbers == list(range(1, len(numbers) + 1))
    assert set(committed) <= {one["id"] for one in arrived}
    assert replay(arrived) == {row["server"]: row["definitionSha256"] for row in newest["mcpDrift"]}
    repeated_alike(log)


def replay(transitions):
    """Follow what happened, from nothing: each step must fit what was before."""
    known = {}
    for one in transitions:
        name, sha = one["finding"]["server"], one["finding"]["definitionSha256"]
        if one["event"] == "opened":
            assert name not in known
            known[name] = sha
        elif one["event"] == "changed":
            assert known[name] == one["was"]
            known[name] = sha
        else:
            del known[name]
    return known


def repeated_alike(log):
    """What travelled more than once was the same each time: the server may drop it by its id."""
    first = {}
    repeated = 0
    for entry in log:
        if entry["complete"]:
            for one in json.loads(entry["body"])["transitions"]:
                repeated += one["id"] in first
                assert first.setdefault(one["id"], one) == one
    assert repeated > 0
