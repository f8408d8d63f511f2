# SPDX-License-Identifier: Apache-2.0
"""An answer that fits its pipe, and how much text of one home is looked at."""

import hashlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.assemble import Machine, Scanned, assemble
from halod.definition import Definition, FileRef
from halod.harnesses import LOCATIONS
from halod.harnesses.model import Found, Reading
from halod.policy.model import Entry, Registry
from halod.roles import effort, fit
from halod.roles.answer import Answer, Gap, Row
from halod.roles.limits import Limits
from halod.roles.scan import Task, answer

CURSOR = next(n for n, place in enumerate(LOCATIONS) if place.path == "~/.cursor/mcp.json")
CLAUDE = next(n for n, place in enumerate(LOCATIONS) if place.path == "~/.claude.json")
PROFILE = next(n for n, place in enumerate(LOCATIONS) if place.path == "~/.codex/*.config.toml")
CUT = "too-many-entries"


def row(location=CURSOR, parts=(), name="a", kind="inventory"):
    return Row(location, parts, name, "stdio", "", "0" * 64, "user", True, False, kind)


def size(value):
    return len(msgspec.msgpack.encode(value))


def told(one):
    return [(gap.location, gap.parts, gap.reason) for gap in one.gaps]


def test_what_fits_is_left_alone():
    one = Answer(rows=(row(),) * 100)
    assert fit.fitted(one) is one


def test_the_room_is_less_than_what_a_supervisor_takes():
    assert Limits().answer > fit.ROOM


def test_a_flood_in_one_file_is_cut_and_the_others_stay_whole():
    """The file is told; every other row and gap is there."""
    flood = [row(CLAUDE, name=str(number)) for number in range(20_000)]
    other = Gap(PROFILE, ("x.config.toml",), "malformed")
    one = fit.fitted(
        Answer(rows=(*flood, row(name="fine")), gaps=(other,), read=((CLAUDE, ()), (CURSOR, ())))
    )
    assert size(one) <= fit.ROOM
    assert row(name="fine") in one.rows
    assert sorted(told(one)) == sorted([(PROFILE, ("x.config.toml",), "malformed"), (CLAUDE, (), CUT)])
    assert sorted(one.read) == sorted([(CLAUDE, ()), (CURSOR, ())])
    assert len(one.rows) > 8_000


def test_the_gravest_rows_of_a_cut_file_stay():
    kinds = ["approved"] * 5_000 + ["version-drift"] * 5_000 + ["unapproved"] * 5_000 + ["denied"]
    one = fit.fitted(Answer(rows=tuple([row(name=f"{at}", kind=kind) for at, kind in enumerate(kinds)])))
    kept = [each.kind for each in one.rows]
    assert (kept.count("denied"), kept.count("unapproved"), kept.count("approved")) == (1, 5_000, 0)


def test_a_flood_of_files_is_told_at_their_folder():
    """Small files go first; that some are missing is told once."""
    rows = [row(PROFILE, (f"{number}",)) for number in range(20_000)]
    big = [row(PROFILE, ("big",), name=f"{number}") for number in range(3_000)]
    one = fit.fitted(Answer(rows=(*rows, *big, row()), gaps=(Gap(PROFILE, (), CUT),)))
    assert size(one) <= fit.ROOM
    assert row() in one.rows
    assert told(one) == [(PROFILE, (), CUT)]
    assert ("big",) not in {each.parts for each in one.rows}


def test_two_floods_share_the_room():
    rows = [row(place, name=f"{at}") for place in (CLAUDE, CURSOR) for at in range(20_000)]
    one = fit.fitted(Answer(rows=tuple(rows)))
    kept = [each.location for each in one.rows]
    assert abs(kept.count(CLAUDE) - kept.count(CURSOR)) < 10
    assert sorted(told(one)) == sorted([(CLAUDE, (), CUT), (CURSOR, (), CUT)])


def test_a_flood_of_gaps_is_cut_too():
    gaps = [Gap(CLAUDE, (), "malformed-entry", server=str(at)) for at in range(50_000)]
    one = fit.fitted(Answer(rows=(row(),), gaps=tuple(gaps)))
    assert size(one) <= fit.ROOM
    assert one.rows == (row(),)
    assert (CLAUDE, (), CUT) in told(one)


PLACES = st.sampled_from(
    [(CURSOR, ()), (CLAUDE, ()), (PROFILE, ("a",)), (PROFILE, ("b" * 100,)), (PROFILE, ())]
)


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(PLACES, st.text("ab", max_size=40)), max_size=60),
    gaps=st.lists(st.tuples(PLACES, st.sampled_from(["malformed", "malformed-entry"])), max_size=40),
    room=st.integers(1_500, 8_000),
)
def test_any_answer_fits_and_nothing_is_lost_silently(rows, gaps, room):
    """A file of which something is missing has a gap, or its location's folder has."""
    whole = Answer(
        rows=tuple([row(*place, name=name) for (place, name) in rows]),
        gaps=tuple([Gap(*place, reason=reason) for place, reason in gaps]),
        read=tuple([place for place, _ in rows]),
    )
    one = fit.fitted(whole, room)
    assert size(one) <= room
    cut = {(gap.location, gap.parts) for gap in one.gaps if gap.reason == CUT}
    for kept, before in ((one.rows, whole.rows), (one.gaps, whole.gaps)):
        for lost in before:
            if kept.count(lost) < before.count(lost):
                assert cut & {(lost.location, lost.parts), (lost.location, ())}


# --- effort


def definition(**fields):
    base = {"harness": "cursor", "file": FileRef(CURSOR), "name": "a", "scope": "user", "transport": "stdio"}
    return Definition(**{**base, **fields})


def said(*definitions, registry=None, reveal=False):
    reading = Reading()
    reading.found = [Found(each) for each in definitions]
    return answer(reading, Task.of(registry, reveal=reveal))


def test_small_definitions_are_always_judged_and_large_ones_while_there_is_room(monkeypatch):
    """What is not looked at is never approved, whatever it begins with."""
    monkeypatch.setattr(effort, "DEFINITIONS", 5_000)
    small = definition(command="/opt/house")
    registry = Registry(entries=(Entry(id="house", definition_sha256=small.sha256),))
    large = definition(command="/opt/house", name="b", env=[("A", "x" * 4_000)])
    rows = said(large, large, small, registry=registry).rows
    assert [each.kind for each in rows] == ["approved", "unapproved", "approved"]
    assert rows[1].note == "unidentifiable"


def test_a_definition_longer_than_a_system_starts_is_unapproved():
    """It is hashed and listed like any other."""
    words = ["x"] * (1 << 17)
    one = said(definition(command="/opt/x", args=words), registry=Registry(entries=())).rows[0]
    assert (one.kind, one.note, one.secret) == ("unapproved", "unidentifiable", False)
    assert one.sha256 == definition(command="/opt/x", args=words).sha256


def test_a_half_that_is_not_looked_at_hides_the_other_from_approval():
    """Of two halves the command is shown."""
    url = "https://mcp.acme.example/mcp"
    registry = Registry(entries=(Entry(id="wiki", url=url, canonical_url=url),))
    http = definition(transport="http", url=url)
    reading = Reading()
    reading.found = [Found(http, definition(command="/opt/x", args=["y" * (2 << 20)]))]
    one = answer(reading, Task.of(registry)).rows[0]
    assert (one.kind, one.transport, one.host) == ("unapproved", "stdio", "")


@pytest.mark.parametrize("reveal", [False, True])
def test_long_names_are_hashed_when_the_room_for_them_is_used_up(monkeypatch, reveal):
    """A name is cut after it was looked at as a whole, so a name that is not looked at is not shown."""
    monkeypatch.setattr(effort, "NAMES", 5_000)
    long = "n" * 3_000
    rows = said(
        *[definition(command="/opt/x", name=name) for name in (long, long, "short")], reveal=reveal
    ).rows
    assert [each.name[:7] for each in rows] == ["nnnnnnn", "sha256:", "short"]
    status = assemble(
        [Scanned(user="dev", answer=Answer(rows=rows))], Machine(time="2026-11-30T09:15:02Z"), reveal=reveal
    )
    assert status.skipped == ()


@given(st.lists(st.text(), max_size=5), st.text())
def test_the_hash_is_that_of_each_word_followed_by_nul(args, command):
    """Design 4, whatever the words hold."""
    digest = hashlib.sha256()
    for word in (command, *args):
        digest.update(word.encode("utf-8", "surrogatepass") + b"\0")
    assert definition(command=command, args=args).sha256 == digest.hexdigest()
