# SPDX-License-Identifier: Apache-2.0
"""A real watcher in its own process: what it says, what it may, and how it ends."""

import contextlib
import os
import resource
import shutil
import signal
import sys

import pytest

from halod.harnesses.table import LOCATIONS, extra_location
from halod.roles import order, watcher
from halod.roles.confine import System
from tests.support.guard import until
from tests.support.roles import UID, make_home, public_directory
from tests.support.watching import Watcher, number

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to change ids and to look at who hides")

CLAUDE = number("~/.claude.json")
CURSOR = number("~/.cursor/mcp.json")


@pytest.fixture
def home():
    with public_directory() as place:
        yield make_home(place)


@pytest.fixture
def started():
    made = []

    def start(home, **options):
        made.append(Watcher(home, **options))
        made[-1].until("watching")
        return made[-1]

    yield start
    for one in made:
        one.close()


def put(home, path, text="{}"):
    """Save a file of the account's as editors do: beside it, then over it."""
    full = os.path.join(home, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(f"{full}.new", "w") as file:
        file.write(text)
    if os.geteuid() == 0:
        for name in (os.path.dirname(full), f"{full}.new"):
            os.chown(name, UID, UID)
    os.replace(f"{full}.new", full)


def test_a_save_is_told(home, started):
    watching = started(home)
    put(home, ".claude.json")
    watching.until("changed", CLAUDE)


def test_a_directory_that_appears_is_followed_and_nothing_else_is_told(home, started):
    watching = started(home)
    put(home, ".claude/history.jsonl", "CANARY")
    put(home, ".cursor/mcp.json")
    put(home, ".cursor/mcp.json", "{ }")
    put(home, ".claude.json")
    heard = watching.until("changed", CLAUDE)
    if ("changed", CURSOR) not in heard:
        heard += watching.until("changed", CURSOR)
    assert set(heard) == {("changed", CLAUDE), ("changed", CURSOR)}


def test_locations_of_the_settings_are_watched(home, started):
    watching = started(home, plan=order.Plan(extra=(extra_location("cursor", "~/work/mcp.json"),)))
    put(home, "work/mcp.json")
    watching.until("changed", len(LOCATIONS))


def test_without_events_it_looks(home, started):
    """As on macOS: what it loads has no inotify."""
    watching = started(home, load=lambda: watcher.load("darwin"))
    put(home, ".claude.json", "{   }")
    watching.until("changed", CLAUDE)


def test_the_hang_up_of_the_life_pipe_ends_it(home, started):
    watching = started(home)
    watching.hang_up()
    assert watching.wait() == 0


def test_a_home_that_is_moved_ends_it(home, started):
    watching = started(home)
    os.rename(home, f"{home}.away")
    watching.until("unavailable")
    assert watching.wait() == 0


def test_a_home_that_is_not_there_is_said():
    """Before anything is watched: an unmounted home is no fault of the watcher."""
    watching = Watcher("/no/such/home")
    try:
        watching.until("unavailable")
        assert watching.wait() == 0
    finally:
        watching.close()


@pytest.mark.parametrize("lacks", ["_landlock", "_filter"])
def test_a_kernel_that_confines_in_part_is_said(home, lacks):
    """Without Landlock, or without the filter, it watches all the same, and says so first."""
    system = System()
    setattr(system, lacks, 0 if lacks == "_landlock" else b"")
    watching = Watcher(home, system=system)
    try:
        assert watching.until("watching") == [("partial", 0), ("watching", 0)]
    finally:
        watching.close()


def test_it_dies_of_sigkill_and_takes_nobody_along(home, started):
    watching = started(home)
    os.kill(watching.pid, signal.SIGKILL)
    assert watching.wait() == -signal.SIGKILL


@linux
def test_it_dies_with_its_supervisor(home):
    """A supervisor that is killed: its watcher has no time to see the hang-up, nor needs it."""
    read, write = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            one = Watcher(home)
            one.until("watching")
            os.write(write, one.pid.to_bytes(4, "big"))
            signal.pause()
        finally:
            os._exit(1)
    os.close(write)
    pid = int.from_bytes(os.read(read, 4), "big")
    os.close(read)
    assert pid
    os.kill(middle, signal.SIGKILL)
    os.waitpid(middle, 0)
    until(lambda: _gone(pid))


def _gone(pid):
    """Whether a process is no more, or waits only for whoever adopted it to notice."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def facts(pid):
    with open(f"/proc/{pid}/status") as status:
        return dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)


@linux
@root
def test_it_has_the_accounts_rights_and_none_besides(home, started):
    found = facts(started(home).pid)
    assert found["Uid"].split() == [str(UID)] * 4
    assert found["Gid"].split() == [str(UID)] * 4
    assert found["Groups"].split() == [str(UID)]
    assert {found[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert found["NoNewPrivs"] == "1"
    assert found["Seccomp"] == "2"
    assert found["Threads"] == "1"


@linux
@root
def test_it_holds_its_pipes_and_nothing_of_the_home(home, started):
    """No directory is held, so that the home can be unmounted while it waits."""
    watching = started(home)
    put(home, ".cursor/mcp.json")
    watching.until("changed", CURSOR)

    def held():
        return [
            os.readlink(f"/proc/{watching.pid}/fd/{name}") for name in os.listdir(f"/proc/{watching.pid}/fd")
        ]

    until(lambda: len(held()) == 6)
    kinds = sorted(name.partition("[")[0].partition(":")[0] for name in held())
    assert kinds == ["/dev/null"] * 3 + ["anon_inode", "pipe", "pipe"]
    assert any("inotify" in name for name in held())
    assert os.readlink(f"/proc/{watching.pid}/cwd") == "/"


@linux
def test_it_sleeps_while_nothing_happens(home, started):
    """No timer wakes it: its context switches stand still."""
    watching = started(home)

    def switches():
        found = facts(watching.pid)
        return found["voluntary_ctxt_switches"], found["nonvoluntary_ctxt_switches"], found["State"][0]

    def quiet():
        before = switches()
        watching.listen(0.3)
        return before[2] == "S" and switches() == before

    until(quiet)
    assert quiet()


@linux
@root
def test_it_cannot_read_what_is_not_the_homes(home, started):
    """Hostile code in its place: outside of the home nothing opens, inside nothing is written."""

    def load():
        watcher.load()

        def main(_target, _payload, frames, _life):
            for path, flags in (
                ("/etc/passwd", os.O_RDONLY),
                (f"{home}/.claude.json", os.O_RDWR),
                (f"{home}/new", os.O_CREAT | os.O_WRONLY),
            ):
                try:
                    os.open(path, flags)
                except OSError:
                    continue
                return
            os.close(os.open(f"{home}/.claude.json", os.O_RDONLY))
            os.write(frames, bytes([2, 0, 0]))

        return main

    started(home, load=load)


@pytest.fixture
def crowded():
    """Give an account that has as many inotify instances as it may: the machine's real limit."""
    from halod.roles.watched.inotify import Exhausted, Inotify

    uid = UID + 9  # nobody else's: its instances are counted together
    ready, told = os.pipe()
    end, hold = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(hold)
            resource.setrlimit(resource.RLIMIT_NOFILE, (5000, 5000))
            os.setresuid(uid, uid, uid)
            with contextlib.suppress(Exhausted):
                for _ in range(4500):
                    Inotify()
            os.write(told, b"x")
            os.read(end, 1)
        finally:
            os._exit(0)
    os.close(end)
    os.read(ready, 1)
    yield uid
    for descriptor in (hold, ready, told):
        os.close(descriptor)
    os.waitpid(pid, 0)


@linux
@root
def test_an_account_without_instances_left_is_told_of_and_looked_at(crowded):
    with open("/proc/sys/fs/inotify/max_user_instances") as limit:
        if int(limit.read()) > 4096:
            pytest.skip("an account may have too many instances here")
    with public_directory() as place:
        home = make_home(place, uid=crowded)
        watching = Watcher(home, uid=crowded)
        try:
            assert watching.until("watching") == [("limited", 0), ("watching", 0)]
            put(home, ".claude.json", "{   }")
            watching.until("changed", CLAUDE)
        finally:
            watching.close()


def test_a_home_that_is_taken_away_and_back_is_watched_by_the_next_one(home, started):
    first = started(home)
    shutil.move(home, f"{home}.away")
    first.wait()
    shutil.move(f"{home}.away", home)
    second = started(home)
    put(home, ".claude.json")
    second.until("changed", CLAUDE)
