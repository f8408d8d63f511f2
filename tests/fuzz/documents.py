# SPDX-License-Identifier: Apache-2.0
"""Fuzz target for the documents of MCP registries: any bytes are refused in our words, or give an entry that is valid."""

import re

from halod.policy.importing import arguments, choose, entry, naming
from halod.policy.importing.document import read
from halod.policy.importing.model import ImportRefused
from halod.policy.load import examine

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


TARGETS = {"server-json": server_json}
