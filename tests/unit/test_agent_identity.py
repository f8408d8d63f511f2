# SPDX-License-Identifier: Apache-2.0
"""Which finding is which from one cycle to the next, and when one is resolved, stale or changed (design 8)."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.agent.identity import STALE_LIMIT, Known, reconcile, transitions, with_known
from halod.assemble import Machine, Scanned, assemble_seen
from halod.harnesses import LOCATIONS, display
from halod.roles.answer import Answer, Gap
from halod.seen import Seen
from tests.support.state import FILES, all_seen, finding, status

MACHINE = Machine(time="2026-11-30T09:15:02Z")


def events(outcome):
    return [
        (change.event, change.finding.server, change.finding.definition_sha256[0])
        for change in outcome.changes
    ]


def after(*cycles, seen=None, **more):
    """Run cycles of findings one after the other, and give what the last one came to."""
    known, outcome = (), None
    for number, found in enumerate(cycles, 1):
        outcome = reconcile(known, status(*found), all_seen() if seen is None else seen, cycle=number, **more)
        known = outcome.known
    return outcome


def test_a_first_finding_is_opened():
    """And counts from nought."""
    outcome = after([finding()])
    assert events(outcome) == [("opened", "notes", "0")]
    assert outcome.known == (Known(finding=finding(), n=0),)


def test_the_same_again_is_silent():
    """So are other words, another switch, and a finding that was stale."""
    outcome = after([finding()], [finding(detail="other words", enabled=False)])
    assert events(outcome) == []
    assert outcome.known[0].finding.detail == "other words"


def test_another_hash_is_a_change_that_names_the_old_one():
    """The finding is the new one; `was` is the hash before."""
    outcome = after([finding(sha="1")], [finding(sha="2")])
    (change,) = outcome.changes
    assert (change.event, change.was, change.finding.definition_sha256) == ("changed", "1" * 64, "2" * 64)


def test_another_kind_is_a_change():
    """A policy that denies what was unapproved changes the finding, though the definition is the same."""
    outcome = after([finding()], [finding(kind="denied")])
    (change,) = outcome.changes
    assert (change.event, change.was, change.finding.kind) == ("changed", "0" * 64, "denied")


def test_what_is_gone_from_a_read_file_is_resolved():
    """Read or absent, by a worker that ended well."""
    for seen in ([Seen(user="dev", well=True, read=frozenset({("cursor", FILES[0])}))], all_seen()):
        outcome = after([finding()], [], seen=seen)
        assert events(outcome) == [("resolved", "notes", "0")]
        assert outcome.known == ()


UNSEEN = {
    "no worker": [],
    "a worker that died": [Seen(user="dev", well=False)],
    "another account": all_seen("other"),
    "its file unread": [Seen(user="dev", well=True, unread=frozenset({("cursor", FILES[0], "")}))],
    "read in part": [
        Seen(
            user="dev",
            well=True,
            read=frozenset({("cursor", FILES[0])}),
            unread=frozenset({("cursor", FILES[0], "")}),
        )
    ],
    "its entry malformed": [Seen(user="dev", well=True, unread=frozenset({("cursor", FILES[0], "notes")}))],
    "its folder refused": [Seen(user="dev", well=True, hidden=frozenset({("cursor", "~/.cursor")}))],
    "the home refused": [Seen(user="dev", well=True, hidden=frozenset({("cursor", "~")}))],
    "another harness only": [Seen(user="dev", well=True, harnesses=frozenset({"codex"}))],
    "one of two of that name": [*all_seen(), Seen(user="dev", well=False)],
}


@pytest.mark.parametrize("seen", UNSEEN.values(), ids=UNSEEN)
def test_what_nobody_looked_at_is_stale(seen):
    """It stays, says so, and comes back without a word."""
    outcome = after([finding()], [], seen=seen)
    assert events(outcome) == []
    (known,) = outcome.known
    assert known.finding.stale
    assert known.unseen_since == 2
    again = reconcile(outcome.known, status(), seen, cycle=3)
    assert again.known == outcome.known
    back = reconcile(again.known, status(finding()), all_seen(), cycle=4)
    assert events(back) == []
    assert back.known == (Known(finding=finding()),)
    gone = reconcile(again.known, status(), all_seen(), cycle=4)
    assert events(gone) == [("resolved", "notes", "0")]
    assert not gone.changes[0].finding.stale


SEEN_ALL_THE_SAME = {
    "another file unread": Seen(user="dev", well=True, unread=frozenset({("cursor", "~/.cursor/x", "")})),
    "another entry": Seen(user="dev", well=True, unread=frozenset({("cursor", FILES[0], "other")})),
    "the folder of another harness": Seen(user="dev", well=True, hidden=frozenset({("codex", "~/.cursor")})),
    "a folder of a like name": Seen(user="dev", well=True, hidden=frozenset({("cursor", "~/.cur")})),
    "read in a folder that cannot be listed": Seen(
        user="dev",
        well=True,
        read=frozenset({("cursor", FILES[0])}),
        hidden=frozenset({("cursor", "~/.cursor")}),
    ),
    "its harness": Seen(user="dev", well=True, harnesses=frozenset({"cursor"})),
    "plugins unknown": Seen(user="dev", well=True, plugins=frozenset({"cursor"})),
}


@pytest.mark.parametrize("seen", SEEN_ALL_THE_SAME.values(), ids=SEEN_ALL_THE_SAME)
def test_gaps_elsewhere_keep_nothing(seen):
    """Only what could hold the finding counts."""
    assert events(after([finding()], [], seen=[seen])) == [("resolved", "notes", "0")]


def test_plugins_whose_record_is_unread_stay():
    """Nobody knows then which plugins are installed."""
    seen = [
        Seen(user="dev", well=True, read=frozenset({("cursor", FILES[0])}), plugins=frozenset({"cursor"}))
    ]
    outcome = after([finding(scope="plugin"), finding()], [], seen=seen)
    assert events(outcome) == [("resolved", "notes", "0")]
    assert [known.finding.scope for known in outcome.known] == ["plugin"]


def test_of_two_of_a_name_the_one_that_is_gone_is_resolved():
    """The other one did not change, whichever of the two stood first."""
    one, two = finding(sha="1"), finding(sha="2")
    for gone, left in ((one, two), (two, one)):
        outcome = after([one, two], [left])
        assert [change.finding for change in outcome.changes] == [gone]
        assert [change.event for change in outcome.changes] == ["resolved"]
        assert [known.finding for known in outcome.known] == [left]


def test_a_new_one_takes_a_free_number():
    """Identities are never shared."""
    outcome = after(
        [finding(sha="1"), finding(sha="2")], [finding(sha="2")], [finding(sha="2"), finding(sha="3")]
    )
    assert sorted((known.n, known.finding.definition_sha256[0]) for known in outcome.known) == [
        (0, "3"),
        (1, "2"),
    ]


def test_equal_twins_are_two():
    """A file may hold the same entry twice over (two agents' tables, two projects)."""
    outcome = after([finding(), finding()], [finding(), finding(kind="denied")])
    assert [(change.event, change.finding.kind) for change in outcome.changes] == [("changed", "denied")]
    assert len(outcome.known) == 2


def test_user_harness_file_and_scope_tell_findings_apart():
    """A name alone is nobody's."""
    rows = [
        finding(),
        finding(user="eve"),
        finding(harness="codex"),
        finding(file=FILES[1]),
        finding(scope="project"),
        finding(server="other"),
    ]
    outcome = after(rows)
    assert len(outcome.changes) == 6
    assert {known.n for known in outcome.known} == {0}


def test_accounts_that_left_are_resolved():
    """Excluded or gone: the caller says so. Others that were not looked at stay."""
    rows = [finding(), finding(user="eve")]
    outcome = after(rows, [], seen=[], departed=frozenset({"eve"}))
    assert [change.finding.user for change in outcome.changes] == ["eve"]
    assert [known.finding.user for known in outcome.known] == ["dev"]


def test_an_inventory_resolves_nothing():
    """Without a policy nothing was judged."""
    outcome = after([finding()])
    outcome = reconcile(outcome.known, status(mode="inventory"), all_seen(), cycle=2)
    assert events(outcome) == []
    assert outcome.known[0].finding.stale


def test_stale_findings_of_an_account_are_bounded():
    """The oldest go, and are counted; another account keeps its own."""
    mine = [finding(server=f"s{at}") for at in range(STALE_LIMIT)]
    outcome = after([*mine, finding(user="eve")], [], seen=[])
    assert outcome.forgotten == 0
    known = [*outcome.known, Known(finding=finding(server="new"))]
    outcome = reconcile(known, status(), [], cycle=9)
    assert outcome.forgotten == 1
    names = {one.finding.server for one in outcome.known if one.finding.user == "dev"}
    assert "new" in names
    assert len(names) == STALE_LIMIT
    assert sum(one.finding.user == "eve" for one in outcome.known) == 1


def test_transitions_are_numbered_on():
    """One number each, in the order of the changes, with the time that is handed in."""
    outcome = after([finding(server="b"), finding(server="a")])
    first, second = transitions(outcome.changes, prefix="p", after=6, time="t")
    assert (first.id, first.finding.server, first.time, first.was) == ("p-7", "a", "t", msgspec.UNSET)
    assert (second.id, second.finding.server) == ("p-8", "b")


def test_the_status_lists_stale_findings_too():
    """In the order of a report, counted."""
    outcome = after([finding(server="b")], [finding(server="a")], seen=[])
    full = with_known(status(finding(server="a")), outcome.known)
    assert [(row.server, row.stale) for row in full.mcp_drift] == [("a", False), ("b", True)]
    assert full.mcp_drift_total == 2


def test_many_of_one_name_take_no_quadratic_time():
    """An answer of 1 MiB can hold thousands."""
    rows = [finding(definition_sha256=f"{at:064x}") for at in range(8000)]
    moved = [finding(definition_sha256=f"{at + 4000:064x}") for at in range(8000)]
    outcome = after(rows, moved)
    assert len(outcome.changes) == 4000
    assert {change.event for change in outcome.changes} == {"changed"}


FEW = st.lists(
    st.builds(
        finding,
        server=st.sampled_from("ab"),
        sha=st.sampled_from("012"),
        kind=st.sampled_from(["denied", "unapproved"]),
        file=st.sampled_from(FILES[:2]),
    ),
    max_size=5,
)
LOOKED = st.lists(
    st.builds(
        Seen,
        user=st.sampled_from(["dev", "eve"]),
        well=st.booleans(),
        hidden=st.sampled_from([frozenset(), frozenset({("cursor", "~/.cursor")})]),
    ),
    max_size=2,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(FEW, LOOKED), max_size=6))
def test_the_books_balance(cycles):
    """Opened minus resolved is known; identities are unique; what was found is known; nothing vouched for is stale."""
    known, opened, resolved = (), 0, 0
    for number, (found, seen) in enumerate(cycles, 1):
        before = {one.slot: one for one in known}
        outcome = reconcile(known, status(*found), seen, cycle=number)
        known = outcome.known
        opened += sum(change.event == "opened" for change in outcome.changes)
        resolved += sum(change.event == "resolved" for change in outcome.changes)
        assert opened - resolved == len(known)
        assert len({one.slot for one in known}) == len(known)
        live = [one.finding for one in known if not one.finding.stale]
        assert sorted(map(msgspec.json.encode, live)) == sorted(map(msgspec.json.encode, found))
        for one in known:
            old = before.get(one.slot)
            changed = old is not None and old.finding.definition_sha256 != one.finding.definition_sha256
            said = [
                change
                for change in outcome.changes
                if change.event == "changed" and change.finding is one.finding
            ]
            assert not changed or any(change.was == old.finding.definition_sha256 for change in said)
            assert not (
                one.finding.stale
                and any(s.user == "dev" for s in seen)
                and all(s.vouches(one.finding) for s in seen if s.user == "dev")
            )


# What an answer vouches for


def place(path):
    return next(at for at, location in enumerate(LOCATIONS) if location.path == path)


def seen_of(*gaps, read=()):
    answer = Answer(gaps=tuple(gaps), read=tuple(read))
    (seen,) = assemble_seen([Scanned(user="dev", answer=answer)], MACHINE)[1]
    return seen


CURSOR = place("~/.cursor/mcp.json")
CODEX = place("~/.codex/*.config.toml")


def test_an_answer_says_what_was_read():
    """By harness and the name that findings have."""
    seen = seen_of(read=[(CURSOR, ()), (CODEX, ("work.config.toml",))])
    assert seen.well
    assert seen.read == {("cursor", "~/.cursor/mcp.json"), ("codex", "~/.codex/work.config.toml")}


def test_a_gap_hides_its_file_and_no_other():
    """A file alone, an entry alone."""
    seen = seen_of(Gap(CURSOR, (), "malformed"), Gap(CODEX, ("a.config.toml",), "malformed-entry", "odd"))
    assert seen.unread == {("cursor", "~/.cursor/mcp.json", ""), ("codex", "~/.codex/a.config.toml", "odd")}
    assert seen.hidden == set()


def test_a_folder_that_cannot_be_walked_hides_what_lies_in_it():
    """Told by depth, or by wildcards without a part."""
    assert seen_of(Gap(CURSOR, (), "unreadable", depth=1)).hidden == {("cursor", "~/.cursor")}
    assert seen_of(Gap(CODEX, (), "too-many-entries")).hidden == {("codex", "~/.codex")}


def test_a_home_that_cannot_be_reached_vouches_for_nothing():
    """Nor does a worker that failed, or lied."""
    assert not seen_of(Gap(-1, (), "home-unavailable")).well
    (failed,) = assemble_seen([Scanned(user="dev", reason="worker-timeout")], MACHINE)[1]
    assert not failed.well
    assert not seen_of(Gap(CURSOR, (), "malformed", depth=-1)).well


def test_an_unread_manifest_hides_its_plugin():
    """Files it may point to are not absent; another plugin's are."""
    at = next(
        number
        for number, location in enumerate(LOCATIONS)
        if location.role == "plugin" and location.path.count("*") == 1 and not location.path.endswith("*")
    )
    shown = display(LOCATIONS[at], ("alpha",))
    folder = shown[: shown.index("alpha") + 5]
    hidden = {name for _, name in seen_of(Gap(at, ("alpha",), "malformed")).hidden}
    assert hidden == {folder}
    assert not {name for _, name in seen_of(Gap(at, ("alpha",), "malformed-entry", "odd")).hidden}


def test_an_unread_record_of_plugins_hides_what_they_bring():
    """A file of role `state` says which plugins are there."""
    at = next(
        number
        for number, location in enumerate(LOCATIONS)
        if location.role == "state" and "*" not in location.path
    )
    assert seen_of(Gap(at, (), "malformed")).plugins == {LOCATIONS[at].harness}
