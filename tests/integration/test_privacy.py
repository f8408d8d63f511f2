# SPDX-License-Identifier: Apache-2.0
"""The privacy rule (design 8): no byte of a definition leaves, whatever state a home is in.

Every fixture home holds canaries, unique strings in each place where a secret can sit. They are scanned as they
are, and broken in many ways; whatever is printed is searched for them. Most scans run in this process, without a
fork, so that an exception or a warning shows; some run as the real command.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import msgspec
import pytest

from halod.assemble import Machine, Scanned, assemble
from halod.cli import sarif, table
from halod.cli.colour import Paint
from halod.harnesses import LOCATIONS
from halod.home import Home
from halod.policy.load import load
from halod.policy.scope import scope
from halod.roles.answer import Answer
from halod.roles.scan import Task, scan_home
from halod.roles.worker import Job
from halod.status import encode
from tests.support.guard import HANG

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT.parent / "shared" / "cases"
ASSETS = ROOT / "tests" / "assets"
DEMO = ROOT / "packaging" / "demo-home"
CANARY = b"CANARY"
TODAY = date(2026, 11, 30)
BROKEN = int(os.environ.get("HALOD_PRIVACY_MUTANTS", "25"))
"""Broken variants of each file; more of them for a longer search."""
NAMES = {"name", "displayname", "display_name", "id", "title", "servername"}
"""Keys whose value names a server: a name is reported, so no canary is put there."""


def homes():
    found = [DEMO, *sorted(CASES.glob("*/home"))]
    found += sorted(path for path in ASSETS.rglob("*") if path.is_dir() and path.name == "home")
    return found


def label(home):
    return home.parent.name if home.name == "home" else home.name


def policy_of(home):
    for path in (home.parent / "halos.yaml", ROOT / "packaging" / "halos.yaml"):
        if path.exists():
            return path
    return None


def task_of(home):
    path = policy_of(home)
    registry = None if path is None else scope(load(str(path)), "", (), TODAY)
    return Task.of(registry), registry


def copy(home, target):
    """Copy a home as a file system would hold it; links that git could not keep stay as they are."""
    shutil.copytree(home, target, symlinks=True)
    for path in [target, *target.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def everything_said(home, task, registry):
    """Scan in this process and give every byte that the three forms would print."""
    job = Job(uid=os.stat(home).st_uid, gid=0, home=str(home), payload=task)
    opened = Home.open(str(home), uid=job.uid)
    try:
        answer = scan_home(opened, job)
    finally:
        opened.close()
    data = msgspec.msgpack.encode(answer)
    status = assemble(
        [Scanned(user="dev", answer=msgspec.msgpack.decode(data, type=Answer))],
        Machine(time="2026-11-30T09:15:02Z"),
        registry=registry,
    )
    assert "worker-invalid" not in {skip.reason for skip in status.skipped}
    page = table.render(status, Paint(enabled=False), 100).encode()
    return data + encode(status) + page + msgspec.json.encode(sarif.document(status))


def config_files(home):
    names = {place.path.rsplit("/", 1)[-1] for place in LOCATIONS}
    files = [path for path in sorted(home.rglob("*")) if path.is_file() and not path.is_symlink()]
    # Files that no location names are read only where another one points to them; they are broken too.
    return sorted(files, key=lambda path: path.name not in names)[:12]


def mutants(data, suffix, chance):
    """Give broken variants: cut short, with bytes that are no text, with other types at each level."""
    for _ in range(BROKEN // 3):
        yield data[: chance.randrange(len(data) + 1)]
    for _ in range(BROKEN // 3):
        at = chance.randrange(len(data) + 1)
        junk = chance.choice(
            [
                b"\xff\xfe",
                b"\x00",
                b"\xed\xa0\x80",
                b'"',
                b"{",
                b"]",
                b"\\",
                b"\n- ",
                b"\n[",
                b"&a *a",
                b"\xef\xbb\xbf",
                b"\\ud83d",
            ]
        )
        yield data[:at] + junk + data[at:]
    if suffix in {".json", ".jsonc"}:
        try:
            document = json.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return
        places = list(walk(document))
        for path in chance.sample(places, min(len(places), BROKEN // 3 + 2)):
            other = chance.choice(
                [
                    None,
                    True,
                    7,
                    1e400,
                    "CANARYswap",
                    [],
                    {},
                    ["CANARYswap", 1],
                    [[{"k": "CANARYswap"}]],
                    {"k": "CANARYswap"},
                ]
            )
            yield json.dumps(replaced(document, path, other)).encode()


def walk(value, path=()):
    """Give the path of every value whose replacement is not itself a name."""
    if not path or str(path[-1]).lower() not in NAMES:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from walk(inner, (*path, at))


def replaced(value, path, other):
    if not path:
        return other
    head, *rest = path
    if isinstance(value, dict):
        return {key: replaced(inner, rest, other) if key == head else inner for key, inner in value.items()}
    return [replaced(inner, rest, other) if at == head else inner for at, inner in enumerate(value)]


def test_the_fixtures_hold_canaries():
    """A search that could find nothing would prove nothing."""
    holding = [
        home
        for home in homes()
        if any(
            CANARY in path.read_bytes()
            for path in home.rglob("*")
            if path.is_file() and not path.is_symlink()
        )
    ]
    assert DEMO in homes()
    assert len(holding) >= (50 if CASES.is_dir() else 1)


@pytest.mark.parametrize("home", homes(), ids=label)
def test_nothing_of_a_home_is_said(home, tmp_path, capfd, caplog):
    """As it is and broken in many ways: no canary in any form, on any stream, in any log."""
    caplog.set_level("DEBUG")
    place = copy(home, tmp_path / "home")
    task, registry = task_of(home)
    chance = random.Random(label(home))
    assert CANARY not in everything_said(place, task, registry)
    assert CANARY not in everything_said(place, Task(), None)
    for path in config_files(place):
        data = path.read_bytes()
        for mutant in mutants(data, path.suffix, chance):
            path.write_bytes(mutant)
            assert CANARY not in everything_said(place, task, registry), mutant
        path.write_bytes(data)
    out, err = capfd.readouterr()
    assert "CANARY" not in out + err + caplog.text


def homes_for_processes():
    every = homes()
    return every[:: max(len(every) // 8, 1)]


@pytest.mark.parametrize("home", homes_for_processes(), ids=label)
def test_the_command_says_nothing(home, tmp_path):
    """The real process, in each form, over the home and a broken copy of it."""
    place = copy(home, tmp_path / "home")
    policy = policy_of(home)
    words = ["--home", str(place), *(["--policy", str(policy)] if policy else [])]
    for state in ("whole", "broken"):
        if state == "broken":
            for path in config_files(place):
                path.write_bytes(path.read_bytes()[:-7] + b"\xff}")
        for form in ("table", "json", "sarif"):
            done = subprocess.run(
                [sys.executable, "-m", "halod", "scan", *words, "--format", form],
                cwd=ROOT,
                capture_output=True,
                check=False,
                env={**os.environ, "HALOD_DEBUG": "1", "PYTHONDEVMODE": "1"},
                timeout=HANG,
            )
            assert CANARY not in done.stdout + done.stderr
            assert b"Traceback" not in done.stderr
            assert done.returncode in {0, 1, 3}, done.stderr
