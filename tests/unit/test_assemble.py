# SPDX-License-Identifier: Apache-2.0
"""From answers to a status: what is believed, what is not, and how it is worded."""

from datetime import date

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.assemble import Machine, Scanned, assemble
from halod.harnesses import LOCATIONS
from halod.policy.model import Deny, Entry, Package, Policy, Registry
from halod.roles.answer import Answer, Gap, Row
from halod.status import clean, decode, encode, is_host, is_name

CURSOR = next(n for n, place in enumerate(LOCATIONS) if place.path == "~/.cursor/mcp.json")
PROFILE = next(n for n, place in enumerate(LOCATIONS) if place.path == "~/.codex/*.config.toml")
DEEP = next(n for n, place in enumerate(LOCATIONS) if "**" in place.path)
MACHINE = Machine(
    time="2026-11-30T09:15:02Z",
    device="d" * 64,
    hostname="mbp-417",
    os="macos",
    ring="ring1",
    units=("payments",),
)
PIN = Entry(
    id="tools", package=Package(type="npm", identifier="@acme/tools", version="1.2.0", version_text="1.2.0")
)
ELSEWHERE = Entry(
    id="other", url="https://x.acme.example/mcp", canonical_url="https://x.acme.example/mcp", rings=("ring0",)
)
POLICY = Policy(mode="warn", entries=(PIN, ELSEWHERE), digest="sha256:" + "0" * 64)
REGISTRY = Registry(
    entries=(PIN,),
    elsewhere=(ELSEWHERE,),
    expired=(Entry(id="old", definition_sha256="1" * 64, expires=date(2020, 1, 1)),),
    deny=(Deny(host="mcp.evil.example", reason="backdoored"),),
    mode="warn",
)


def row(**fields):
    base = {
        "location": CURSOR,
        "parts": (),
        "name": "notes",
        "transport": "stdio",
        "host": "",
        "sha256": "0123456789abcdef" * 4,
        "scope": "user",
        "enabled": True,
        "secret": False,
        "kind": "unapproved",
        "outcome": "identified",
        "note": "not-listed",
    }
    return Row(**{**base, **fields})


def gap(**fields):
    return Gap(**{"location": CURSOR, "parts": (), "reason": "malformed", **fields})


def made(*rows, gaps=(), reveal=False, inventory=False, **fields):
    answer = Answer(rows=rows, gaps=tuple(gaps), files=1, definitions=len(rows), **fields)
    policy = {} if inventory else {"policy": POLICY, "registry": REGISTRY}
    return assemble([Scanned(user="dev", answer=answer)], MACHINE, reveal=reveal, **policy)


def is_refused(status):
    return [(skip.user, skip.reason) for skip in status.skipped] == [("dev", "worker-invalid")] and not (
        status.mcp_drift or status.mcp_approved
    )


def test_a_finding_is_worded_here():
    """User, file, detail and fix come from the account, the table and the policy."""
    status = made(row(kind="version-drift", entry="tools", note="other-version", secret=True))
    (finding,) = status.mcp_drift
    assert (finding.user, finding.harness, finding.file) == ("dev", "cursor", "~/.cursor/mcp.json")
    assert (
        finding.detail
        == "defined as a stdio command (definition sha256 0123456789ab); the registry pins npx -y @acme/tools@1.2.0"
    )
    assert finding.fix.startswith('change "notes" to npx -y @acme/tools@1.2.0')
    assert finding.secret_in_definition
    assert finding.projects is msgspec.UNSET
    assert status.mode == "warn"
    assert status.mcp_drift_total == 1
    assert status.digest == POLICY.digest
    assert status.skipped == ()


def test_the_machine_is_told_as_given():
    """Time and device are handed in; other strings are cleaned."""
    machine = Machine(
        time="t",
        device="d",
        hostname="mbp\x1b[2J",
        user="d\u202eev",
        units=("a\nb",),
        last_error="x" * 2000,
        duration_ms=-3,
    )
    status = assemble([], machine)
    assert (status.time, status.device, status.hostname, status.user, status.units) == (
        "t",
        "d",
        "mbp[2J",
        "dev",
        ("a b",),
    )
    assert len(status.last_error) == 1024
    assert status.coverage.duration_ms == 0
    assert status.coverage.accounts == 0


def test_approved_definitions_are_counted_by_entry():
    """Rows of one harness and entry add up, projects included; they are no findings."""
    status = made(
        row(kind="approved", entry="tools", note=""),
        row(kind="approved", entry="tools", note="", scope="project", projects=3),
    )
    (approved,) = status.mcp_approved
    assert (approved.harness, approved.id, approved.user, approved.count) == ("cursor", "tools", "dev", 4)
    assert status.mcp_drift == ()
    assert status.coverage.definitions == 4


def test_projects_are_told():
    """A row that stands for several projects says how many."""
    assert made(row(scope="project", projects=3)).mcp_drift[0].projects == 3


def test_denied_names_the_organisations_reason():
    """A denied row points into the deny list."""
    status = made(
        row(
            kind="denied",
            entry="0",
            note="denied-host",
            transport="http",
            host="mcp.evil.example",
            outcome="",
        )
    )
    assert "backdoored" in status.mcp_drift[0].detail
    assert status.mcp_drift[0].host == "mcp.evil.example"


def test_an_inventory_has_no_verdicts():
    """Without a policy every definition is listed, and none is judged."""
    status = made(row(kind="inventory", note=""), inventory=True)
    assert status.mode == "inventory"
    assert status.mcp_drift == ()
    (found,) = status.inventory
    assert (found.kind, found.detail, found.fix) == (msgspec.UNSET,) * 3
    assert made(row()).inventory is msgspec.UNSET


def test_rows_are_sorted_whatever_the_answer_says():
    """User, harness, file, scope, server, hash."""
    status = made(row(name="b"), row(name="a", sha256="f" * 64), row(name="a"))
    assert [(f.server, f.definition_sha256[0]) for f in status.mcp_drift] == [
        ("a", "0"),
        ("a", "f"),
        ("b", "0"),
    ]


def test_gaps_become_skipped_rows():
    """With harness, file, and what is known of the place."""
    status = made(
        gaps=[
            gap(line=3, column=7),
            gap(reason="malformed-entry", server="odd"),
            gap(reason="error", errno="EIO"),
            gap(location=PROFILE, parts=("work.config.toml",), reason="symlink"),
            gap(location=-1, reason="home-unavailable"),
        ]
    )
    assert [(skip.harness, skip.file, skip.reason) for skip in status.skipped] == [
        ("", "", "home-unavailable"),
        ("codex", "~/.codex/work.config.toml", "symlink"),
        ("cursor", "~/.cursor/mcp.json", "error"),
        ("cursor", "~/.cursor/mcp.json", "malformed"),
        ("cursor", "~/.cursor/mcp.json", "malformed-entry"),
    ]
    assert (status.skipped[3].line, status.skipped[3].column) == (3, 7)
    assert status.skipped[4].server == "odd"
    assert status.skipped[2].errno == "EIO"


def test_coverage_adds_up():
    """Accounts, files and definitions of all answers; what no scan sees is always named."""
    answer = Answer(rows=(row(),), files=2, definitions=1, not_covered=("plugin-sources",))
    status = assemble(
        [
            Scanned(user="a", answer=answer),
            Scanned(user="b", answer=answer),
            Scanned(user="c", reason="worker-timeout"),
        ],
        MACHINE,
        policy=POLICY,
        registry=REGISTRY,
    )
    cover = status.coverage
    assert (cover.accounts, cover.files, cover.definitions) == (3, 4, 2)
    assert cover.not_covered == (
        "project-files",
        "cloud-connectors",
        "environment-overrides",
        "plugin-sources",
    )
    assert [(skip.user, skip.reason) for skip in status.skipped] == [("c", "worker-timeout")]


BAD_ROWS = {
    "name with a secret": {"name": "https://x.example/CANARY"},
    "name with a control character": {"name": "a\x1b"},
    "long name": {"name": "n" * 129},
    "hash": {"sha256": "x" * 64},
    "short hash": {"sha256": "0" * 63},
    "host of stdio": {"host": "mcp.example.com"},
    "host with a path": {"transport": "http", "host": "mcp.example.com/CANARY"},
    "location": {"location": len(LOCATIONS)},
    "negative location": {"location": -1},
    "step up": {"location": PROFILE, "parts": ("..",)},
    "part with a slash": {"location": PROFILE, "parts": ("a/b",)},
    "unredacted part": {"location": PROFILE, "parts": ("dev@mail.example.config.toml",)},
    "part too many": {"parts": ("a",)},
    "part missing": {"location": PROFILE},
    "unknown entry": {"entry": "CANARY"},
    "approved elsewhere": {"kind": "approved", "entry": "other", "note": ""},
    "approved by nothing": {"kind": "approved", "entry": "", "note": ""},
    "denied by nothing": {"kind": "denied", "entry": "1"},
    "denied by an id": {"kind": "denied", "entry": "tools"},
    "inventory with a policy": {"kind": "inventory"},
    "note": {"note": "CANARY"},
    "flag": {"flags": ("CANARY",)},
    "flags without end": {"flags": ("shell",) * 1000},
    "no project": {"projects": 0, "scope": "project"},
    "projects of a user": {"projects": 2},
    "projects beyond reason": {"projects": 2**40, "scope": "project"},
}


@pytest.mark.parametrize("fields", BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_row_outside_its_rules_costs_the_answer(fields):
    """One value that a worker may not say, and nothing of the answer is believed."""
    status = made(row(), row(**fields))
    assert is_refused(status)
    assert b"CANARY" not in msgspec.json.encode(status)


BAD_GAPS = {
    "location": {"location": len(LOCATIONS)},
    "no place but unread file": {"location": -1},
    "no place with parts": {"location": -1, "reason": "home-unavailable", "parts": ("a",)},
    "below no place": {"location": -2, "reason": "home-unavailable"},
    "errno": {"errno": "CANARY"},
    "server of a file": {"server": "notes"},
    "server with a secret": {"reason": "malformed-entry", "server": "ghp_CANARY"},
    "line": {"line": -1},
    "column": {"column": 2**40},
}


@pytest.mark.parametrize("fields", BAD_GAPS.values(), ids=BAD_GAPS)
def test_a_gap_outside_its_rules_costs_the_answer(fields):
    """The same holds for what was not read."""
    assert is_refused(made(gaps=[gap(**fields)]))


def test_the_list_of_read_files_is_checked_too():
    """It is what resolves findings."""
    assert is_refused(made(read=((CURSOR, ("x",)),)))
    assert is_refused(made(read=((len(LOCATIONS), ()),)))
    assert made(read=((CURSOR, ()), (PROFILE, ("a.config.toml",)))).skipped == ()


def test_a_judged_row_is_no_inventory():
    """Without a policy a verdict is rubbish."""
    assert is_refused(made(row(), inventory=True))
    assert is_refused(made(row(kind="inventory", entry="tools", note=""), inventory=True))


def test_another_account_is_not_harmed():
    """One lying worker costs its own account only."""
    good = Scanned(user="good", answer=Answer(rows=(row(),), files=1, definitions=1))
    bad = Scanned(user="bad", answer=Answer(rows=(row(sha256="x"),), files=1, definitions=1))
    status = assemble([bad, good], MACHINE, policy=POLICY, registry=REGISTRY)
    assert [finding.user for finding in status.mcp_drift] == ["good"]
    assert [(skip.user, skip.reason) for skip in status.skipped] == [("bad", "worker-invalid")]
    assert status.coverage.files == 1


def test_revealed_names_are_still_cleaned():
    """On one's own terminal real names are shown, and still nothing that is control, endless or a step in a path."""
    status = made(
        row(name="https://x.example/y", location=PROFILE, parts=("dev@mail.example.config.toml",)),
        reveal=True,
    )
    assert status.mcp_drift[0].server == "https://x.example/y"
    assert status.mcp_drift[0].file == "~/.codex/dev@mail.example.config.toml"
    for fields in (
        {"name": "a\x1b"},
        {"name": "n" * 129},
        {"location": PROFILE, "parts": ("..",)},
        {"location": PROFILE, "parts": ("a\x1b",)},
    ):
        assert is_refused(made(row(**fields), reveal=True))


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_any_answer_that_decodes_gives_a_status_or_is_refused(data):
    """Whatever a worker sends: a status that can be encoded and read again, or one skipped row."""
    try:
        answer = msgspec.msgpack.decode(data, type=Answer)
    except msgspec.MsgspecError:
        return
    status = assemble([Scanned(user="dev", answer=answer)], MACHINE, policy=POLICY, registry=REGISTRY)
    assert decode(encode(status)) == status


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["tools", "a", "0" * 64, "shell", "unpinned", "mcp.example.com"]
)


@given(
    st.lists(
        st.builds(
            row,
            name=TEXTS,
            host=TEXTS,
            sha256=TEXTS | st.just("0" * 64),
            entry=TEXTS,
            note=TEXTS | st.just(""),
            flags=st.lists(TEXTS, max_size=2).map(tuple),
            parts=st.lists(TEXTS, max_size=1).map(tuple),
            location=st.sampled_from([CURSOR, PROFILE, DEEP]),
            transport=st.sampled_from(["stdio", "http"]),
            kind=st.sampled_from(["approved", "denied", "unapproved", "version-drift", "inventory"]),
        ),
        max_size=3,
    )
)
@settings(max_examples=200, deadline=None)
def test_nothing_but_checked_strings_passes(rows):
    """What is believed holds every rule of design 8."""
    status = made(*rows)
    assert decode(encode(status)) == status
    for finding in status.mcp_drift:
        assert is_name(finding.server)
        assert finding.host is msgspec.UNSET or is_host(finding.host)
        assert clean(finding.file) == finding.file
