# SPDX-License-Identifier: Apache-2.0
"""Another process swaps what is read, thousands of times, while it is read.

Held in every race: the canary outside is never read, no read blocks, no descriptor stays open. Each race goes on
until the reader has met both states, so it cannot pass by never racing. HALOD_RACE_ROUNDS raises the number of
swaps (10,000 by default, about a second each).

The files lie in memory where they can: on a disk whose journal is stuck, the one who swaps stands still in the
middle of a swap while the one who reads goes on.
"""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from halod.home import Absent, Home, Refused
from tests.support.guard import HANG
from tests.support.roles import open_files, public_directory

SWAPS = int(os.environ.get("HALOD_RACE_ROUNDS", "10000"))
LATEST = HANG + SWAPS / 200  # seconds: ends a race that does not end
BLOCKED = HANG / 2
"""Seconds that no read takes: one that blocks, on a pipe without a writer, blocks for ever."""
MOMENT = 0.0002  # seconds that the reader leaves to the other process after some reads
ACCOUNT = 54321 if os.geteuid() == 0 else os.geteuid()
ATTACKER = Path(__file__).with_name("home_attacker.py")
OWN = b'{"mcpServers": {}}' * 400
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another account")


@pytest.fixture
def top():
    """Give a home and, beside it, the same names with canaries in them."""
    with public_directory() as place:
        yield furnished(place)


def furnished(place):
    """Make what is raced for in a directory; give the directory."""
    home, outside = place / "home", place / "outside"
    for part, text in ((home, OWN), (outside, b"CANARY" * 1000)):
        (part / "d").mkdir(parents=True)
        (part / "d/f").write_bytes(text)
        (part / "a").mkdir()
    (outside / "f").write_bytes(b"CANARY" * 1000)
    (home / "a/b").mkdir()
    (home / "a/b/l").symlink_to("../../d")
    (home / "l").symlink_to("d")
    (place / "good").write_bytes(OWN)
    if os.geteuid() == 0:
        for path in (home / "d/f", place / "good"):
            os.chown(path, ACCOUNT, ACCOUNT)
    return place


class Race:
    """What one race has seen so far, and whether it may end."""

    def __init__(self, other: subprocess.Popen[bytes], wanted: set[str]) -> None:
        self.other = other
        self.wanted = wanted
        self.seen: Counter[str] = Counter()
        self.deadline = time.monotonic() + LATEST

    def rounds(self) -> Iterator[None]:
        """Go on until the other process has swapped often enough and everything wanted was seen."""
        assert self.other.stdout is not None
        swapped = False
        while not swapped or not self.wanted <= self.seen.keys():
            for _ in range(20):
                yield
            if swapped:
                time.sleep(MOMENT)
            elif select.select([self.other.stdout], [], [], MOMENT)[0]:
                assert self.other.stdout.read(1) == b".", "the other process failed"
                swapped = True
            assert time.monotonic() < self.deadline, f"seen {dict(self.seen)}, wanted {self.wanted}"


@contextlib.contextmanager
def attacked(top: Path, attack: str, wanted: set[str], allowed: set[str]):
    """Run the other process, and hold what the race may have seen and that it left no descriptor open."""
    before = open_files()
    command = [sys.executable, "-I", str(ATTACKER), attack, str(top), str(SWAPS)]
    with subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.read(1) == b"!"
            race = Race(other, wanted)
            yield race
            other.communicate(timeout=HANG)
        finally:
            other.kill()
    assert other.returncode == 0
    assert race.seen.keys() <= wanted | allowed
    # A race lasts long enough for a thread that another test left to end and close its own: only what is new counts
    # here. That no read closes what is not its own is held by tests/unit/test_home_*.py, which compare both ways.
    assert open_files().items() <= before.items()


def outcome(read, path: str) -> str:
    """Read once; give "read" or the reason, and hold that nothing of the outside came in and nothing blocked."""
    began = time.monotonic()
    try:
        data = bytes(read(path).data)
    except Absent:
        result = "absent"
    except Refused as refused:
        result = refused.reason
    else:
        assert b"CANARY" not in data
        assert data == OWN
        result = "read"
    assert time.monotonic() - began < BLOCKED
    return result


def run(top: Path, path: str, attack: str, wanted: set[str], allowed: set[str]) -> None:
    """Read by new homes and by one old one."""
    with (
        attacked(top, attack, wanted, allowed) as race,
        Home.open(str(top / "home"), uid=ACCOUNT) as kept,
    ):
        for _ in race.rounds():
            with Home.open(str(top / "home"), uid=ACCOUNT) as home:
                race.seen[outcome(home.read, path)] += 1
            race.seen[outcome(kept.reread, path)] += 1


FINAL = [
    ("final-link", "symlink", set()),
    ("final-pipe", "not-regular", set()),
    ("final-directory", "not-regular", set()),
    pytest.param("final-inode", "wrong-owner", set(), marks=needs_root),
    pytest.param("final-hard-link", "hard-linked", set(), marks=needs_root),
]


@pytest.mark.timeout(2 * LATEST)
@pytest.mark.parametrize(("attack", "reason", "more"), FINAL)
def test_the_final_component_is_swapped(top, attack, reason, more):
    """A link to the canary, a pipe, a directory, another account's file: each is refused for what it is."""
    run(top, "d/f", attack, {"read", reason}, {"changed", "absent", *more})


@pytest.mark.timeout(2 * LATEST)
@pytest.mark.parametrize("attack", ["directory-absolute", "directory-relative", "directory-dots"])
def test_a_directory_is_swapped_for_a_link_out_of_the_home(top, attack):
    """The walk enters the real directory or refuses the link; it never goes where the link goes."""
    run(top, "d/f", attack, {"read", "escapes-home"}, {"absent", "changed"})


@pytest.mark.timeout(2 * LATEST)
def test_a_link_is_turned_outwards(top):
    """The target that was judged is the one that is walked."""
    run(top, "l/f", "link-retarget", {"read", "escapes-home"}, {"changed"})


@pytest.mark.timeout(2 * LATEST)
def test_a_directory_leaves_the_home_during_the_walk(top):
    """`..` leads to the parent that was walked, not to the one the directory has by now."""
    run(top, "a/b/l/f", "moved-away", {"read", "absent"}, {"changed"})


@pytest.mark.timeout(2 * LATEST)
def test_a_pattern_is_expanded_while_a_directory_is_swapped(top):
    """What a listing gave is walked again: a match that became a link out of the home is refused."""
    wanted = {"read", "escapes-home"}
    with attacked(top, "directory-relative", wanted, {"absent", "changed", "symlink"}) as race:
        for _ in race.rounds():
            with Home.open(str(top / "home"), uid=ACCOUNT) as home:
                for match in (*home.match("*/f"), *home.match("**/f")):
                    race.seen[match.refused or outcome(home.read, match.path)] += 1
