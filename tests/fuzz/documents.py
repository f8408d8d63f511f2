# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets for documents that are fetched or checked as a whole: server.json, a signed policy, a repository.

Any bytes are refused in our words, or give an entry that is valid, the policy that was signed, or a checked one.
"""

import base64
import functools
import json
import os
import re
from hashlib import sha256
from pathlib import Path

from halod.cli.policy_files import printable
from halod.errors import HalodError
from halod.policy import signed
from halod.policy.importing import arguments, choose, entry, naming
from halod.policy.importing.document import read
from halod.policy.importing.model import ImportRefused
from halod.policy.load import PolicyError, examine
from halod.policy.repository import examine_all
from tests.fuzz.approval import TODAY
from tests.support.signing import KEY, NEW_KEY, public

DIGEST = "0123456789abcdef" * 4


def server_json(data):
    """Any bytes as a server.json; each of its packages and endpoints by itself, and all at once."""
    try:
        server = read(data)
    except ImportRefused as refused:
        assert refused.__cause__ is None
        return
    calls = [lambda: choose.choose_package(server), lambda: choose.choose_remote(server)]
    for one in server.packages:
        calls.append(lambda one=one: choose.choose_package(server, f"{one.type}={one.identifier}"))
        calls.append(lambda one=one: choose.choose_package(server, str(one.number), DIGEST))
    for one in server.remotes:
        calls.append(lambda one=one: choose.choose_remote(server, str(one.number)))
        calls.append(lambda one=one: choose.choose_remote(server, one.url))
    for one, option in naming.options(server.packages).items():
        assert naming.fitting(server.packages, option.removeprefix("--package ")) == [one]
    for call in calls:
        try:
            pin = call()
        except ImportRefused as refused:
            assert refused.__cause__ is None
        else:
            check(server, pin)


def check(server, pin):
    """What is pinned can be pasted, and its arguments have a reading."""
    text = entry.to_yaml({"id": entry.entry_id(server.name), **pin.fields}, [server.version, *pin.notes])
    assert re.fullmatch("[ -~\n]*", text)
    policy, _, problems = examine(f"mcp:\n  servers:\n{text}".encode())
    assert not problems
    assert len(policy.entries) == 1
    package = pin.fields.get("package")
    if package is not None:
        launch = arguments.documented(pin.candidate, package)
        arguments.unsafe_variables(pin.candidate)
        if launch is not None:
            arguments.runs_another(launch, package)


def envelope(data):
    """Any bytes as what policy.url gives: the policy of a seed, or a refusal without a word of theirs."""
    for given in (data, signed._sealed(data[:100_000], [], [KEY])):
        try:
            payload = signed.read_payload(given)
            got = signed.verify(given, public(KEY), org="acme", seen=signed.Seen(), now=0.0)
        except HalodError as refused:
            assert refused.__cause__ is None
            assert "CANARY" not in refused.message or isinstance(refused, PolicyError)
            continue
        assert (got.org, got.version) == (payload.org, payload.version)
        assert got.policy.org == "acme"
        assert 0 < got.version < signed.VERSION_LIMIT
        if given is data:
            assert got.sha256 in known()
        again = signed.countersign(given, [NEW_KEY]) if got.expires > got.issued else given
        assert signed.verify_kept(again, public(KEY), org="", seen=got.seen) == got


@functools.cache
def known():
    """The payloads of the seeds: without the key no other one is ever taken."""
    folder = Path(__file__).parent / "corpus" / "envelope"
    seeds = [json.loads((folder / name).read_bytes()) for name in ("one", "two", "spaced")]
    return {sha256(base64.b64decode(one["payload"])).hexdigest() for one in seeds}


def repository(data):
    """Any bytes as the files of `halo validate DIR`, cut at `\\x1e`; the first line of each is its name."""
    files = {}
    for part in data.split(b"\x1e")[:8]:
        name, _, content = part.partition(b"\n")
        files[printable(os.fsdecode(name[:40]))] = content
    found = examine_all(files.items(), TODAY)
    assert (found.policy is None) == bool(found.faults)
    for one in (*found.faults, *found.warnings):
        assert one.file in {"", *files}
        assert min(one.line, one.column) >= 1
        assert "\n" not in one.message
    if found.policy is not None:
        assert found.file in files
    assert examine_all(files.items(), TODAY) == found


TARGETS = {"server-json": server_json, "envelope": envelope, "repository": repository}
