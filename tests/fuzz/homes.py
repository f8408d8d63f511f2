# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets for what a worker does with a home, and for what the other side believes of its answer."""

import functools

import msgspec

from halod.assemble import Machine, Scanned, assemble
from halod.harnesses import HARNESSES, LOCATIONS
from halod.policy.load import parse
from halod.policy.model import Registry
from halod.policy.scope import scope
from halod.roles.answer import Answer
from halod.roles.limits import MIB
from halod.roles.scan import Task, answer
from halod.status import Status, encode, shorten
from tests.fuzz.approval import POLICY, TODAY
from tests.fuzz.choices import Choices
from tests.support.homes import MemoryHome, read

MACHINE = Machine(time="2026-11-30T09:15:02Z", device="d", hostname="h", os="linux")
GOOD = b'{"mcpServers":{"still-found":{"command":"npx","args":["-y","@acme/tool@1.2.0"]}}}'
NEIGHBOURS = {".cursor/mcp.json": "cursor", ".gemini/settings.json": "gemini-cli"}
FOLDERS = sorted({location.folder for location in LOCATIONS})
IDS = [harness.id for harness in HARNESSES]


@functools.cache
def registry() -> Registry:
    return scope(parse(POLICY, "halos.yaml"), "", (), TODAY)


@functools.cache
def task(judged):
    return Task.of(registry() if judged else None)


def path_of(location, wildcards):
    """A path that the location's pattern matches: each wildcard stands for one of a few names."""
    names = []
    for name in location.path[2:].split("/"):
        if name == "**":
            names += ["a", "b"][: wildcards.number(3)]
        else:
            names.append(name.replace("*", wildcards.one(["a", "x@1.0", "sk-ant-x", "..a"])))
    return "/".join(names)


def reader(data):
    """Any content in any file of any harness: the other servers of the home stay, and the answer is believed.

    Two bytes choose the harness, one the file, one whether a policy is there; the rest is content, cut at the
    first `\\x1e` into one content for each file of the harness.
    """
    choices = Choices(data)
    harness = choices.one(IDS)
    places = [location for location in LOCATIONS if location.harness == harness]
    start, judged = choices.number(len(places)), choices.chance(50)
    files = {}
    contents = choices.rest().split(b"\x1e")[:8]
    for number, content in enumerate(contents):
        files[path_of(places[(start + number) % len(places)], Choices(content[-4:]))] = content
    good = {path: GOOD for path, owner in NEIGHBOURS.items() if owner != harness and path not in files}
    check_home(files | good, len(good), task(judged), registry() if judged else None)


def check_home(files, still, task_, registry_):
    reading = read(files)
    neighbours = [found for found in reading.found if found.definition.name == "still-found"]
    assert len(neighbours) >= still, "a bad file cost another"
    said = answer(reading, task_)
    wire = msgspec.msgpack.encode(said)
    if len(wire) > MIB:
        return  # more than a worker may answer: the supervisor ends it
    back = msgspec.msgpack.decode(wire, type=Answer)
    assert back == said
    status = assemble([Scanned(user="dev", answer=back)], MACHINE, registry=registry_)
    assert all(row.reason != "worker-invalid" for row in status.skipped)
    document = encode(status)
    assert b"npx" not in document or registry_ is not None
    assert len(status.mcp_drift) == status.mcp_drift_total
    again = answer(read(files), task_)
    assert again == said


def home_names(data):
    """Any names of files and folders in any home: nothing raises, nothing is read twice."""
    choices = Choices(data)
    files = {}
    while choices.left and len(files) < 12:
        folder = choices.one(FOLDERS)
        steps = [choices.text(8).replace("/", "").replace("\0", "") or "x" for _ in range(choices.number(3))]
        files[
            "/".join(
                [part for part in (folder, *steps, choices.one(["mcp.json", "SKILL.md", "a.yaml"])) if part]
            )
        ] = GOOD
    memory = MemoryHome(files)
    for location in LOCATIONS:
        for match in memory.match(location.path[2:]) if "*" in location.path else ():
            assert match.refused or memory.exists(match.path.rpartition("/")[0])
    check_home(files, 0, task(False), None)


_DECODER = msgspec.msgpack.Decoder(Answer)


def wire(data):
    """Any bytes as a worker's answer: refused, or made into a document that holds to the rules of design 8."""
    judged = bool(data[:1] > b"\x7f")
    try:
        said = _DECODER.decode(data[1:])
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return
    registry_ = registry() if judged else None
    status = assemble([Scanned(user="dev", answer=said)], MACHINE, registry=registry_)
    document = encode(status)
    assert msgspec.json.decode(document, type=Status) == status
    short = shorten(status)
    assert len(encode(short)) <= 62 * 1024
    for row in (*status.mcp_drift, *(status.inventory or ())):
        assert "\x1b" not in row.server + row.file + row.detail if row.kind else True
    assert assemble([Scanned(user="dev", answer=said)], MACHINE, registry=registry_) == status


TARGETS = {"reader": reader, "home-names": home_names, "answer": wire}
