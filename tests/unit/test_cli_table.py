# SPDX-License-Identifier: Apache-2.0
"""The page a person reads."""

from typing import get_args

import msgspec
import pytest

from halod import status
from halod.cli import table
from halod.cli.colour import Paint, columns
from halod.status import Approved, Coverage, Finding, Skipped, Status

PLAIN = Paint(enabled=False)


def finding(**fields):
    return Finding(
        **{
            "harness": "cursor",
            "file": "~/.cursor/mcp.json",
            "server": "notes",
            "kind": "unapproved",
            "transport": "http",
            "host": "mcp.example.com",
            "definition_sha256": "0123456789abcdef" * 4,
            "detail": "the detail",
            "fix": "the fix",
            "user": "dev",
            "scope": "user",
            "enabled": True,
            **fields,
        }
    )


def page(drift=(), skipped=(), approved=(), paint=PLAIN, room=100, **fields):
    whole = Status(
        **{
            "time": "2026-11-30T09:15:02Z",
            "device": "",
            "hostname": "",
            "os": "linux",
            "halod": "0.1.0",
            "user": "",
            "ring": "",
            "units": (),
            "digest": "",
            "mode": "allowlist",
            "mcp_drift": tuple(drift),
            "mcp_approved": tuple(approved),
            "skipped": tuple(skipped),
            "coverage": Coverage(accounts=1, files=7, definitions=12, duration_ms=84),
            "mcp_drift_total": len(drift),
            **fields,
        }
    )
    return table.render(whole, paint, room)


def test_findings_stand_below_their_file():
    """One heading a file, then each finding with kind, name, detail and fix."""
    text = page([finding(), finding(server="wiki", kind="version-drift")])
    assert text.count("~/.cursor/mcp.json") == 1
    assert "UNAPPROVED     notes  (http mcp.example.com)" in text
    assert "VERSION DRIFT  wiki" in text
    assert "      the detail\n      fix: the fix\n" in text
    assert "2 findings: 12 definitions in 7 files." in text


def test_marks_of_a_finding():
    """Scope, projects, switched off, stale and a credential in clear text are told."""
    text = page([finding(scope="project", projects=3, enabled=False, stale=True, secret_in_definition=True)])
    assert "(http mcp.example.com, project, in 3 projects, switched off, not read this time)" in " ".join(
        text.split()
    )
    assert "carries a credential in clear text" in text


@pytest.mark.parametrize("reason", get_args(status.Reason))
def test_every_reason_has_words_and_advice(reason):
    """A file that was not read is shown with the reason and what to do."""
    text = page(skipped=[Skipped(user="dev", harness="codex", file="~/.codex/config.toml", reason=reason)])
    words, advice = table.REASONS[reason]
    flat = " ".join(text.split())
    assert words in flat
    assert advice in flat
    assert "Not read: 1" in text
    assert "0 findings: 12 definitions in 7 files, 1 not read." in text


def test_privacy_protection_is_named():
    """EPERM on macOS has a cause that people cannot guess."""
    assert "macOS privacy protection" in table.REASONS["denied-by-system"][0]
    assert "Full Disk Access" in table.REASONS["denied-by-system"][1]


def test_where_something_was_not_read():
    """Line and column, the errno's name, the entry, or the whole account."""
    text = page(
        skipped=[
            Skipped(user="dev", harness="codex", file="~/a", reason="malformed", line=3, column=7),
            Skipped(user="dev", harness="codex", file="~/b", reason="malformed", line=3),
            Skipped(user="dev", harness="codex", file="~/c", reason="error", errno="EIO"),
            Skipped(user="dev", harness="codex", file="~/d", reason="malformed-entry", server="odd"),
            Skipped(user="dev", reason="worker-timeout"),
        ]
    )
    flat = " ".join(text.split())
    for piece in ("(line 3, column 7)", "(line 3)", "(EIO)", 'entry "odd"', "dev: the whole account"):
        assert piece in flat


def test_approved_servers_are_counted():
    """How many definitions, by harness and id."""
    text = page(
        approved=[
            Approved(harness="codex", id="wiki", user="dev", count=2),
            Approved(harness="codex", id="b", user="dev", count=1),
        ]
    )
    assert "Approved: 3 definitions\n  codex: wiki x2, b\n" in text


def test_nothing_configured_is_said():
    """An empty home is told apart from a clean one."""
    assert "No MCP server is configured" in page()
    empty = page(coverage=Coverage(accounts=0, files=0, definitions=0, duration_ms=0))
    assert "No person's account was found" in empty
    assert "No MCP server is configured" not in page(skipped=[Skipped(user="dev", reason="worker-timeout")])


def test_an_inventory_lists_without_judging():
    """Hash and host, no kind, and a closing line that says so."""
    row = finding(kind=msgspec.UNSET, detail=msgspec.UNSET, fix=msgspec.UNSET)
    text = page(mode="inventory", inventory=(row,), room=200)
    assert "notes  (http mcp.example.com, 0123456789ab)" in text
    assert "Inventory: 12 definitions in 7 files. Nothing was judged, as no policy was given." in text
    assert "UNAPPROVED" not in text


def test_accounts_are_named_when_there_are_several():
    """One account's page does not repeat its name; several accounts' page tells them apart."""
    assert "dev" not in page([finding()])
    text = page(
        [finding(), finding(user="ops")], coverage=Coverage(accounts=2, files=1, definitions=1, duration_ms=0)
    )
    assert "dev  ~/.cursor/mcp.json" in text
    assert "ops  ~/.cursor/mcp.json" in text
    assert "1 definition in 1 file of 2 accounts" in text


def test_what_steers_a_terminal_is_escaped_everywhere():
    """Names, files, hosts and words of a status are shown, not obeyed."""
    odd = "a\x1b[2J\u202eb"
    text = page(
        [finding(server=odd, file=odd, host=odd, detail=odd, fix=odd, user=odd, harness=odd), finding()],
        [Skipped(user=odd, harness=odd, file=odd, reason="malformed-entry", server=odd)],
        [Approved(harness=odd, id=odd, user=odd, count=1)],
    )
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("\\x1b[2J\\u202eb") >= 12


@pytest.mark.parametrize("room", [40, 80, 120])
def test_lines_fit_the_terminal(room):
    """Only a word that is longer than the line stands out."""
    text = page(
        [
            finding(
                detail="a long detail " * 20,
                fix="a long fix " * 20,
                scope="project",
                projects=3,
                enabled=False,
            )
        ],
        [
            Skipped(user="dev", harness="codex", file="~/.codex/config.toml", reason=reason)
            for reason in get_args(status.Reason)
        ],
        [Approved(harness="codex", id=f"server-{n}", user="dev", count=1) for n in range(30)],
        room=room,
    )
    assert all(columns(line) <= room for line in text.split("\n"))


def test_colour_changes_nothing_but_colour():
    """Without its escapes the coloured page is the plain one."""
    import re

    rows = [finding(), finding(kind="denied"), finding(kind="version-drift", secret_in_definition=True)]
    skips = [Skipped(user="dev", reason="worker-timeout")]
    coloured = page(rows, skips, paint=Paint(enabled=True))
    assert "\x1b[31m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == page(rows, skips)


def test_grid():
    """Columns line up, wide characters included, and no line ends in blanks."""
    assert table.grid([("a", "b", ""), ("资料", "c", "")]) == "a     b\n资料  c\n"
    assert table.grid([]) == ""


def test_a_flag_in_the_detail_is_explained():
    """A person who never saw the docs learns what stands in the way."""
    text = page(
        [finding(detail="x; runs the approved package with args-differ and env-unknown; the registry pins y")]
    )
    assert "args-differ: other arguments than the registry entry lists" in text
    assert "env-unknown: an environment key that the registry entry does not list" in text


def test_a_word_of_the_registry_is_no_flag():
    """What is explained is the list of flags and nothing else of the detail."""
    assert table.meanings("the registry pins npx -y alias; with privileged") == []


def test_a_forgotten_ring_is_said():
    """Where an approval is for other rings and no ring was given, that is the likely cause."""
    elsewhere = finding(detail="approved as a for ring b, not for this device")
    assert "No ring or unit was given" in page([elsewhere], ring="", units=())
    assert "No ring or unit was given" not in page([elsewhere], ring="c", units=())
