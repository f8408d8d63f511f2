# SPDX-License-Identifier: Apache-2.0
"""The agent's state where a machine is unkind: killed, out of room, damaged, read-only; and what it may hold."""

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import msgspec
import pytest

from halod.agent import laststatus
from halod.agent.database import StateFault
from halod.agent.outbox import Limits
from halod.agent.state import State
from halod.assemble import Machine, Scanned, assemble_seen
from halod.home import Home
from halod.policy.load import load
from halod.policy.scope import scope
from halod.roles.answer import Answer
from halod.roles.scan import Task, scan_home
from halod.roles.worker import Job
from tests.support.guard import HANG
from tests.support.state import all_seen, finding, status

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT.parent / "shared" / "cases"
DEMO = ROOT / "packaging" / "demo-home"
KILLS = int(os.environ.get("HALOD_STATE_KILLS", "60"))
DAMAGES = int(os.environ.get("HALOD_STATE_DAMAGES", "120"))
WHOLE = Limits(findings=10**6, bytes=10**9)


def child(directory, journal, seed, limit=0):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.integration.state_child",
            str(directory),
            str(journal),
            str(seed),
            str(limit),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def lines(journal):
    """Give the journal's whole lines as lists of words."""
    text = journal.read_text() if journal.exists() else ""
    return [line.split(" ") for line in text.split("\n")[:-1]]


def wait_for(condition, process):
    deadline = time.monotonic() + HANG
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.001)


def number(transition_id):
    return int(transition_id.rpartition("-")[2])


def drain(state):
    ids = []
    while (report := state.next_report(WHOLE)) is not None:
        ids += report.ids
        state.delivered(report)
    return ids


def waiting(state):
    """Give the ids in the outbox without settling any of them."""
    report = state.next_report(WHOLE)
    return [] if report is None else list(report.ids)


def check_deliveries(entries):
    """Hold the reports of a journal against the only two things that a kill leaves open.

    A process goes on where its last report ended. The first report of the next one begins there too, or, as a
    report may have been taken and not recorded, where that one began. How many of its transitions come then is
    another matter: each report asks for a number of its own.
    """
    taken = []
    before, after = 0, 0  # transitions taken before the last report, and with it
    begins = {0}
    for kind, *ids in entries:
        if kind == "R":
            begins = begins | {before}
        if kind != "S":
            continue
        before = number(ids[0]) - 1 if ids else len(taken)
        after = before + len(ids)
        assert before in begins
        assert ids[: len(taken) - before] == taken[before:after]
        taken[before:after] = ids
        begins = {after}
    assert [number(one) for one in taken] == list(range(1, len(taken) + 1))
    return taken


@pytest.mark.parametrize(
    "journal",
    [
        ["R", "S x-1 x-2 x-3", "R", "S x-1", "S x-2 x-3 x-4"],  # sent again in another cut
        ["R", "S x-1 x-2 x-3", "R", "R", "S x-1 x-2 x-3 x-4", "S x-5", "R", "S", "S x-6"],
    ],
)
def test_what_a_kill_leaves_open_is_allowed(journal):
    """The check itself: an unrecorded report comes again, whole or in parts."""
    assert check_deliveries([line.split(" ") for line in journal])[:3] == ["x-1", "x-2", "x-3"]


@pytest.mark.parametrize(
    "journal",
    [
        ["R", "S x-1 x-2 x-3", "S x-1"],  # again though it was recorded
        ["R", "S x-1 x-2 x-3", "R", "S x-2"],  # out of the middle
        ["R", "S x-1", "S x-2", "R", "S x-1"],  # older than the report in flight
        ["R", "S x-1 x-2", "R", "S x-1", "R", "S x-3"],  # lost: the cut was recorded, the rest was not sent
        ["R", "S x-1", "S x-3"],
        ["R", "S x-1 x-2", "R", "S x-1 y-2"],  # another id for the same number
    ],
)
def test_what_a_kill_does_not_excuse_is_found(journal):
    """The check itself: what is lost, comes too often or changes its id."""
    with pytest.raises(AssertionError):
        check_deliveries([line.split(" ") for line in journal])


def test_killed_at_any_point(tmp_path):
    """Every transition of a cycle that was kept arrives, once but for the one report in flight, in order."""
    directory, journal = tmp_path / "state", tmp_path / "journal"
    chance = random.Random(20261130)
    for seed in range(KILLS):
        begun = len(lines(journal))
        process = child(directory, journal, seed)
        with process:
            enough = begun + chance.choice([1, 2, 3, 5, 10, 20, 40])
            wait_for(lambda at=enough: len(lines(journal)) >= at, process)
            time.sleep(chance.random() * 0.008)  # not a synchronisation: the point of the kill
            process.kill()
    entries = lines(journal)
    assert sum(kind == "R" for kind, *_ in entries) == KILLS
    assert not [entry for entry in entries if entry[0] == "F"]
    committed = [one for kind, *ids in entries if kind == "C" for one in ids]
    assert len(committed) > KILLS
    state = State(str(directory))
    first = waiting(state)
    rest = drain(state)
    assert first == rest[: len(first)]
    everything = check_deliveries([*entries, ["R"], ["S", *rest]])
    assert set(committed) <= set(everything)
    assert len({one.slot for one in state.findings()}) == len(state.findings())
    assert not list(directory.glob("*.broken*"))
    state.close()


def test_no_room_for_a_file_to_grow(tmp_path):
    """A limit on file size stands for a full disk: a word for it, nothing half done, and on with room."""
    directory, journal = tmp_path / "state", tmp_path / "journal"
    process = child(directory, journal, 1, limit=96 * 1024)
    assert process.wait(HANG) == 0, process.stderr.read()
    process.stderr.close()
    entries = lines(journal)
    assert entries[-1][0] == "F"
    assert entries[-1][1] in {"state-full", "state-io"}
    taken = check_deliveries(entries)
    state = State(str(directory))
    committed = [one for kind, *ids in entries if kind == "C" for one in ids]
    assert set(committed) - set(taken) <= set(drain(state))
    assert state.commit_cycle(status(), all_seen()).status.error_code == ""
    state.close()


@pytest.fixture
def small_disk(tmp_path):
    """Give a file system of 256 KiB."""
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("mounting a small file system needs root on Linux")
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "halod-test", str(place)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("this machine lets nobody mount: " + done.stderr.decode().strip())
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_fills_up(small_disk):
    """Cycles fail with a word and change nothing; the server is told; with room again nothing is missing."""
    state = State(str(small_disk / "state"))
    state.commit_cycle(status(finding()), all_seen())
    (small_disk / "filler").write_bytes(b"x" * 100 * 1024)
    kept = 1

    def fill():
        nonlocal kept
        for _ in range(500):
            rows = [finding(server=f"s{kept}-{at}", detail="d" * 800) for at in range(8)]
            state.commit_cycle(status(*rows, hostname=f"host{kept + 1}"), all_seen())
            kept += 1

    with pytest.raises(StateFault) as caught:
        fill()
    assert caught.value.code == "state-full"
    assert state.fault == "state-full"
    for _ in range(3):
        with pytest.raises(StateFault):
            state.commit_cycle(status(*[finding(fix="f" * 900)] * 20), all_seen())
    report = state.next_report()
    shown = json.loads(report.body)
    assert shown["errorCode"] == "state-full"
    assert shown["hostname"] == ("mbp-417" if kept == 1 else f"host{kept}")
    with pytest.raises(OSError):
        laststatus.write(
            str(small_disk), status(*[finding(server=f"s{at}", fix="f" * 900) for at in range(200)])
        )
    assert not list(small_disk.glob("*.new"))
    (small_disk / "filler").unlink()
    done = state.commit_cycle(status(finding()), all_seen())
    assert done.status.error_code == ""
    assert state.fault == ""
    ids = drain(state)
    assert [number(one) for one in ids] == list(range(1, len(ids) + 1))
    state.close()
    again = State(str(small_disk / "state"))
    assert [one.finding.server for one in again.findings()] == ["notes"]
    again.close()


def test_a_disk_that_is_full_from_the_start(small_disk):
    """The agent starts, scans, and keeps its state once there is room."""
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb") as file:
        file.write(b"x" * 1024 * 1024)
    state = State(str(small_disk / "state"))
    for call in (lambda: state.commit_cycle(status(finding()), all_seen()), lambda: state.device):
        with pytest.raises(StateFault) as caught:
            call()
        assert caught.value.code == "state-full"
    filler.unlink()
    assert len(state.commit_cycle(status(finding()), all_seen()).transitions) == 1
    assert state.next_report() is not None
    state.close()


def test_a_file_system_that_turns_read_only(small_disk):
    """As the kernel does after errors: a word for it, and no harm to what is there."""
    state = State(str(small_disk / "state"))
    state.commit_cycle(status(finding()), all_seen())
    state.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for one in (state, State(str(small_disk / "state"))):
        with pytest.raises(StateFault) as caught:
            one.commit_cycle(status(), all_seen())
        assert caught.value.code == "state-unwritable"
        one.close()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert [one.event for one in state.commit_cycle(status(), all_seen()).transitions] == ["resolved"]
    assert drain(state)
    state.close()


def test_a_directory_of_another_account(tmp_path):
    """Read-only to a person, somebody else's to root: refused, with advice, and left as it is."""
    directory = tmp_path / "state"
    directory.mkdir()
    if os.geteuid() == 0:
        os.chown(directory, 12345, 12345)
    else:
        directory.chmod(0o500)
    state = State(str(directory))
    with pytest.raises(StateFault) as caught:
        state.commit_cycle(status(), all_seen())
    assert caught.value.code == "state-unwritable"
    assert caught.value.advice
    assert list(directory.iterdir()) == []


def damaged(data, chance):
    """Give a file's bytes with some changed, cut off, or zeroed."""
    data = bytearray(data)
    way = chance.randrange(4)
    if way == 0:
        return bytes(data[: chance.randrange(len(data) + 1)])
    if way == 1:
        at = chance.randrange(len(data))
        data[at : at + 4096] = bytes(len(data[at : at + 4096]))
        return bytes(data)
    for _ in range(chance.choice([1, 8, 64])):
        data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
    return bytes(data)


def test_damage_at_any_place(tmp_path):
    """The agent goes on, with the old state or a new one; it never dies, and keeps a bounded number of copies."""
    whole = tmp_path / "whole"
    state = State(str(whole))
    for at in range(6):
        rows = [finding(server=f"s{n}", sha=str((at + n) % 4), detail="d" * 400) for n in range(30)]
        state.commit_cycle(status(*rows), all_seen())
    # Copied while it is open, so that the log is still there: a killed agent leaves it.
    running = tmp_path / "running"
    shutil.copytree(whole, running)
    state.close()
    assert (running / "state.db-wal").stat().st_size > 0
    chance = random.Random(417)
    resets = 0
    for at in range(DAMAGES):
        directory = tmp_path / f"d{at}"
        shutil.copytree(chance.choice([whole, running]), directory)
        for name in chance.choice([["state.db"], ["state.db-wal"], ["state.db", "state.db-wal"]]):
            path = directory / name
            if path.exists() and path.stat().st_size:
                path.write_bytes(damaged(path.read_bytes(), chance))
        hurt = State(str(directory))
        hurt.next_report()
        done = hurt.commit_cycle(status(finding(server="after")), all_seen())
        resets += done.status.error_code == "state-reset"
        ids = drain(hurt)
        assert len(set(ids)) == len(ids)
        assert {one.id for one in done.transitions} <= set(ids)
        assert [one.finding.server for one in hurt.findings()] == ["after"]
        hurt.close()
        assert len(list(directory.glob("state.db.broken.?"))) <= 1
        shutil.rmtree(directory)
    assert 0 < resets < DAMAGES


# From real homes


def scanned(home, registry, time="2026-11-30T09:15:02Z"):
    """Scan a home in this process: its status, and what it vouches for."""
    job = Job(uid=os.stat(home).st_uid, gid=0, home=str(home), payload=Task.of(registry))
    opened = Home.open(str(home), uid=job.uid)
    try:
        answer = msgspec.msgpack.decode(msgspec.msgpack.encode(scan_home(opened, job)), type=Answer)
    finally:
        opened.close()
    return assemble_seen([Scanned(user="dev", answer=answer)], Machine(time=time), registry=registry)


def registry_of(home):
    path = home.parent / "halos.yaml"
    path = path if path.exists() else ROOT / "packaging" / "halos.yaml"
    return scope(load(str(path)), "", (), date(2026, 11, 30))


def test_no_canary_in_anything_that_is_kept(tmp_path):
    """Database, log, device and last status, after the fixture homes came and went."""
    homes = [DEMO, *sorted(CASES.glob("*/home"))][:60]
    directory = tmp_path / "state"
    state = State(str(directory))
    opened = 0
    kept = b""
    for home in homes:
        place = tmp_path / "home"
        shutil.copytree(home, place, symlinks=True)
        done = state.commit_cycle(*scanned(place, registry_of(home)))
        laststatus.write(str(directory), done.status)
        opened += len(done.transitions)
        kept += state.next_report(WHOLE).body
        kept += b"".join(path.read_bytes() for path in directory.iterdir())
        shutil.rmtree(place)
    state.close()
    assert opened > 10
    assert b"CANARY" not in kept + b"".join(path.read_bytes() for path in directory.iterdir())


def config(home, path, name):
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": {name: {"command": "sh", "args": ["-c", "CANARY"]}}}))
    return file


def stale(state):
    return {one.finding.server: one.finding.stale for one in state.findings()}


def test_findings_of_files_that_were_not_read_stay(tmp_path):
    """Real files: broken, linked away, in a folder that leads out of the home, removed."""
    home = tmp_path / "home"
    registry = registry_of(DEMO)
    cursor = config(home, ".cursor/mcp.json", "one")
    gemini = config(home, ".gemini/settings.json", "two")
    plugin = config(home, ".cursor/extensions/x", "none")
    state = State(str(tmp_path / "state"))

    def cycle():
        return [
            (one.event, one.finding.server)
            for one in state.commit_cycle(*scanned(home, registry)).transitions
        ]

    assert plugin.exists()
    assert cycle() == [("opened", "one"), ("opened", "two")]
    text = cursor.read_text()
    cursor.write_text(text[:-4])
    os.utime(cursor, (1, 1))
    assert cycle() == []
    assert stale(state) == {"one": True, "two": False}
    cursor.unlink()
    cursor.symlink_to("elsewhere.json")
    assert cycle() == []
    assert stale(state) == {"one": True, "two": False}
    cursor.unlink()
    (home / ".cursor").rename(tmp_path / "outside")
    (home / ".cursor").symlink_to(tmp_path / "outside")
    assert cycle() == []
    assert stale(state) == {"one": True, "two": False}
    (home / ".cursor").unlink()
    assert cycle() == [("resolved", "one")]
    gemini.unlink()
    cursor = config(home, ".cursor/mcp.json", "one")
    assert cycle() == [("opened", "one"), ("resolved", "two")]
    cursor.write_text("{}")
    assert cycle() == [("resolved", "one")]
    assert state.findings() == []
    state.close()
