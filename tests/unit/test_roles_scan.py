# SPDX-License-Identifier: Apache-2.0
"""What a worker says of what it read: codes, folded rows and redacted names."""

import msgspec
import pytest

from halod.assemble import Machine, Scanned, assemble
from halod.definition import Definition, FileRef
from halod.harnesses import LOCATIONS
from halod.harnesses.model import Found, Reading, Unread
from halod.policy.model import Entry, Registry
from halod.roles.scan import Task, answer

CURSOR = next(n for n, place in enumerate(LOCATIONS) if place.path == "~/.cursor/mcp.json")
CLAUDE = next(n for n, place in enumerate(LOCATIONS) if place.path == "~/.claude.json")
PROFILE = next(n for n, place in enumerate(LOCATIONS) if place.path == "~/.codex/*.config.toml")
URL = "https://mcp.acme.example/mcp"
REGISTRY = Registry(entries=(Entry(id="wiki", url=URL, canonical_url=URL),))


def http(url="https://mcp.example.net/CANARYpath?key=CANARYquery", **fields):
    base = {
        "harness": "cursor",
        "file": FileRef(CURSOR),
        "name": "notes",
        "scope": "user",
        "transport": "http",
        "url": url,
    }
    return Definition(**{**base, **fields})


def stdio(*args, **fields):
    base = {
        "harness": "cursor",
        "file": FileRef(CURSOR),
        "name": "tool",
        "scope": "user",
        "transport": "stdio",
        "command": "/opt/x",
    }
    return Definition(**{**base, "args": args, **fields})


def said(*definitions, unread=(), registry=REGISTRY, reveal=False):
    reading = Reading()
    reading.found = [each if isinstance(each, Found) else Found(each) for each in definitions]
    reading.unread = list(unread)
    reading.files = 1
    reading.read = [FileRef(CURSOR)]
    return answer(reading, Task.of(registry, reveal=reveal))


def test_a_definition_becomes_a_row_of_codes():
    """Host, hash, kind and secret are told; the URL is not."""
    one = said(http(), http(URL, name="wiki"))
    found, wiki = one.rows
    assert (found.kind, found.host, found.secret) == ("unapproved", "mcp.example.net", True)
    assert found.sha256 == http().sha256
    assert (wiki.kind, wiki.entry) == ("approved", "wiki")
    assert one.files == 1
    assert one.definitions == 2
    assert one.read == ((CURSOR, ()),)
    assert b"CANARY" not in msgspec.msgpack.encode(one)


def test_without_a_registry_nothing_is_judged():
    """An inventory has hosts and hashes and no verdict."""
    (row,) = said(http(), registry=None).rows
    assert (row.kind, row.host, row.entry, row.note) == ("inventory", "mcp.example.net", "", "")


def test_the_worse_half_is_the_definition():
    """An approved URL does not hide an unapproved command, nor the other way round; equally bad: the command."""
    assert said(Found(http(URL), stdio("CANARY"))).rows[0].transport == "stdio"
    assert said(Found(stdio("CANARY"), http(URL))).rows[0].kind == "unapproved"
    assert said(Found(http(), stdio("CANARY")), registry=None).rows[0].transport == "stdio"
    assert said(Found(stdio("CANARY"), http()), registry=None).rows[0].transport == "stdio"


def test_projects_fold_and_other_twins_do_not():
    """Rows of project scope that differ only in the project are one; two equal user-level rows stay two."""
    project = {"scope": "project", "file": FileRef(CLAUDE), "harness": "claude-code"}
    rows = said(
        stdio("a", **project), stdio("a", **project), stdio("b", **project), stdio("a"), stdio("a")
    ).rows
    assert [(row.scope, row.projects) for row in rows] == [
        ("project", 2),
        ("project", 1),
        ("user", 1),
        ("user", 1),
    ]
    switched = said(stdio("a", **project), stdio("a", enabled=False, **project)).rows
    assert [(row.enabled, row.projects) for row in switched] == [(True, 1), (False, 1)]


@pytest.mark.parametrize("reveal", [False, True])
def test_whatever_a_user_writes_is_believed_by_the_reader(reveal):
    """Odd names, folders and URLs never cost the account its answer."""
    odd = [
        "",
        " ",
        "a\x1b[2J",
        "\u202e",
        "n" * 500,
        "https://x.example",
        ".\u200b",
        "..\u200b",
        "half \ud83d",
        "a/b",
        "ghp_x",
        "資" * 200,
    ]
    definitions = [
        http(url, name=name)
        for name in odd
        for url in (
            "",
            "x",
            "https://[::1",
            "https://\u202e/",
            "https://a b/",
            "http://${X}/",
            "HTTPS://B\u00dcCHER.example:443",
        )
    ]
    definitions += [stdio(name, name=name) for name in odd]
    definitions += [stdio(file=FileRef(PROFILE, (name.replace("/", "_") or "x",))) for name in odd]
    unread = [
        Unread(FileRef(PROFILE, (name.replace("/", "_") or "x",)), "malformed-entry", server=name)
        for name in odd
    ]
    unread.append(Unread(FileRef(PROFILE, ()), "unreadable"))
    for registry in (REGISTRY, None):
        one = said(*definitions, unread=unread, registry=registry, reveal=reveal)
        status = assemble(
            [Scanned(user="dev", answer=one)], Machine(time="t"), registry=registry, reveal=reveal
        )
        assert "worker-invalid" not in {skip.reason for skip in status.skipped}
        assert len(status.skipped) == len(unread)
        msgspec.json.encode(status)


def test_names_are_redacted_unless_revealed():
    """The person at the terminal sees what they wrote; a report does not."""
    definition = stdio(name="dev@mail.example", file=FileRef(PROFILE, ("ghp_CANARY.config.toml",)))
    (row,) = said(definition).rows
    assert row.name.startswith("sha256:")
    assert row.parts[0].startswith("sha256:")
    (row,) = said(definition, reveal=True).rows
    assert (row.name, row.parts) == ("dev@mail.example", ("ghp_CANARY.config.toml",))


def test_the_homes_own_path_is_redacted():
    """A home need not lie in a folder that everybody knows."""
    reading = Reading()
    reading.found = [Found(stdio(name="notes of /data/people/dev")), Found(stdio(name="notes"))]
    task = msgspec.structs.replace(Task.of(REGISTRY), home="/data/people/dev")
    first, second = answer(reading, task).rows
    assert first.name.startswith("sha256:")
    assert second.name == "notes"


class Broken:
    """A judge that fails on what it is given."""

    def judge(self, definition):
        raise RecursionError("CANARY")


def test_a_definition_that_cannot_be_judged_is_unapproved():
    """Nothing that a definition provokes costs the others, or makes it look approved."""
    reading = Reading()
    reading.found = [Found(stdio("x"))]
    (row,) = answer(reading, Task(judge=Broken())).rows
    assert (row.kind, row.note) == ("unapproved", "unidentifiable")


def test_a_url_or_hint_that_cannot_be_made_costs_nothing(monkeypatch):
    """A fault in what describes a definition leaves it listed, without that detail."""

    def fails(_text):
        raise ValueError("CANARY")

    monkeypatch.setattr("halod.roles.scan.whatwg_host", fails)
    monkeypatch.setattr("halod.roles.scan.secret_in_definition", fails)
    (row,) = said(http(), registry=None).rows
    assert (row.host, row.secret) == ("", False)
