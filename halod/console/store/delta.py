# SPDX-License-Identifier: Apache-2.0
"""How one report changes what is known of a device, and how that changes the counts over the fleet. Pure.

Invariant, tested with random histories: a count that was changed by `difference` for every report equals the count
made anew from what is known of all devices (`counts`).
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Final, TypeVar

import msgspec

from halod.console.store.places import places
from halod.console.store.report import Approved, Finding, Report, Skipped

_Key = TypeVar("_Key")

MOST_KNOWN: Final = 1024
"""Findings that are kept of one device: shortened reports resolve nothing, so what they add up to has an end. An agent
sends 256 at most. Each is counted at up to 36 places, anew when ring or units change: four times as many held
the lock of all changes for half a minute."""
MOST_SKIPPED: Final = 1024

Tally = tuple[str, str, str]
"""dim, value, kind: the key of `tallies`."""
Group = tuple[int, tuple[str, str, str]]
"""place, thing: the key of `group_counts` before the thing has its number."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that is known. `id` 0: not in the database yet."""

    id: int
    thing: int = 0
    """The number of its thing; 0: what it is about has to be looked up."""
    nth: int
    first_seen: int
    last_seen: int
    finding: Finding


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a device and counts."""

    ring: str = ""
    units: tuple[str, ...] = ()
    digest: str = ""
    findings: tuple[Known, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    approved: tuple[Approved, ...] = ()


NOTHING: Final = State()


def step(state: State, report: Report, now: int) -> State:
    """Give what is known after a report.

    The report replaces what was known before. A shortened one (`truncated`) takes nothing away: what is missing from
    it stays, up to `MOST_KNOWN` findings, the ones that were said last.
    """
    skipped, approved = report.skipped, report.approved
    if report.truncated:
        skipped = tuple(dict.fromkeys((*skipped, *state.skipped)))[:MOST_SKIPPED]
        approved = tuple({row.name: row for row in (*state.approved, *approved)}.values())[:MOST_SKIPPED]
    return State(
        ring=report.ring,
        units=report.units,
        digest=report.digest,
        findings=_merge(state, report, now),
        skipped=skipped,
        approved=tuple(sorted(approved, key=lambda row: row.name)),
    )


def _merge(state: State, report: Report, now: int) -> tuple[Known, ...]:
    known: dict[tuple[str, ...], list[Known]] = defaultdict(list)
    for old in state.findings:
        known[old.finding.name].append(old)
    said: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
    for finding in report.findings:
        said[finding.name].append(finding)
    anew = state.ring != report.ring
    merged: list[Known] = []
    missing: list[Known] = []
    for name, findings in said.items():
        paired, left = _pair(known.pop(name, []), findings, now, anew=anew)
        merged += paired
        missing += left
    if report.truncated:
        missing += [old for olds in known.values() for old in olds]
        missing.sort(key=lambda old: (-old.last_seen, old.id))
        kept = missing[: max(MOST_KNOWN - len(merged), 0)]
        merged += [_renewed(old, old.finding, now, anew=anew) for old in kept]
    return tuple(merged)


def _pair(
    olds: Sequence[Known], findings: Sequence[Finding], now: int, *, anew: bool
) -> tuple[list[Known], list[Known]]:
    """Pair findings of one name with what is known of it: what is said word for word first, then the same hash, then
    one after the other.

    Gives what is known now, and what of the old was not said.
    """
    left = sorted(olds, key=_nth)
    if len(left) == len(findings) == 1:
        return [_renewed(left[0], findings[0], now, anew=anew)], []
    merged: list[Known] = []
    unpaired = list(findings)
    for alike in (_itself, _hash, _nothing):
        olds_by: dict[object, deque[Known]] = defaultdict(deque)
        for old in left:
            olds_by[alike(old.finding)].append(old)
        saying, unpaired = unpaired, []
        for finding in saying:
            if those := olds_by[alike(finding)]:
                merged.append(_renewed(those.popleft(), finding, now, anew=anew))
            else:
                unpaired.append(finding)
        left = [old for those in olds_by.values() for old in those]
        left.sort(key=_nth)
    taken = {one.nth for one in (*merged, *left)}
    free = (nth for nth in range(len(taken) + len(unpaired)) if nth not in taken)
    merged += [
        Known(id=0, nth=nth, first_seen=now, last_seen=now, finding=finding)
        for nth, finding in zip(free, unpaired, strict=False)
    ]
    return merged, left


def _itself(finding: Finding) -> object:
    return finding


def _hash(finding: Finding) -> object:
    return finding.sha256


def _nothing(_finding: Finding) -> object:
    return None


def _nth(known: Known) -> int:
    return known.nth


def _renewed(old: Known, finding: Finding, now: int, *, anew: bool) -> Known:
    """Give what is known of a finding that was said again; `anew`: its row changes though the finding does not."""
    if finding != old.finding:
        return Known(id=old.id, nth=old.nth, first_seen=old.first_seen, last_seen=now, finding=finding)
    return msgspec.structs.replace(old) if anew else old


# --- what happened -----------------------------------------------------------------------------------------


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of `findings` that differ between two states of one device."""

    inserted: tuple[Known, ...] = ()
    updated: tuple[Known, ...] = ()
    removed: tuple[Known, ...] = ()
    replaced: tuple[Known, ...] = ()
    """Of `updated`, those that are another definition or of another kind than before."""


def changes(before: State, after: State) -> Changes:
    """Compare two states by the numbers of their rows."""
    olds = {old.id: old for old in before.findings}
    kept = {known.id for known in after.findings}
    updated = [known for known in after.findings if known.id and known is not olds[known.id]]
    return Changes(
        inserted=tuple(known for known in after.findings if not known.id),
        updated=tuple(updated),
        removed=tuple(old for old in before.findings if old.id not in kept),
        replaced=tuple(
            known
            for known in updated
            if (known.finding.sha256, known.finding.kind)
            != (olds[known.id].finding.sha256, olds[known.id].finding.kind)
        ),
    )


def weight(before: State, after: State) -> int:
    """Give about how many rows a change writes: those of findings and lists, and of every count of a finding."""
    gone, come = _apart(before, after)
    if (before.ring, before.units) != (after.ring, after.units):
        gone, come = [*before.findings], [*after.findings]
    rows = 0
    for state, differ in ((before, gone), (after, come)):
        keys = 4 * (len(state.units) + 1)  # harness, ring and unit, each or none (`places`)
        rows += len(differ) * (keys + 1)
    for old, new in ((before.skipped, after.skipped), (before.approved, after.approved)):
        if old != new:
            rows += len(old) + len(new)
    return rows


# --- counts ------------------------------------------------------------------------------------------------


def tallies_of(state: State) -> dict[Tally, int]:
    """Give what a device adds to `tallies`: rows by key; every key is one device more."""
    found: dict[Tally, int] = defaultdict(int)
    for known in state.findings:
        for key in _tally_keys(known.finding, state):
            found[key] += 1
    for skipped in state.skipped:
        found["reason", skipped.reason, ""] += 1
    for approved in state.approved:
        found["approved", approved.entry, ""] += approved.count
    if state.digest:
        found["digest", state.digest, ""] += 0
    return found


_OF_ONE: Final = {
    "kind": attrgetter("kind"),
    "harness": attrgetter("harness"),
    "server": attrgetter("server"),
    "definition": attrgetter("sha256"),
}
"""The dimensions of a tally that are a finding's own, and what of it is the value; ring and units are the device's."""


def _tally_keys(one: Finding, state: State) -> Iterator[Tally]:
    """Give the keys that a finding adds to."""
    kind = one.kind
    for dim, of in _OF_ONE.items():
        if value := of(one):
            yield dim, value, kind
    if state.ring:
        yield "ring", state.ring, kind
    for unit in state.units:
        yield "unit", unit, kind


def groups_of(state: State) -> dict[Group, int]:
    """Give what a device adds to `group_counts`: findings by key; every key is one device more."""
    things: dict[tuple[str, tuple[str, str, str]], int] = defaultdict(int)
    for known in state.findings:
        things[known.finding.harness, known.finding.thing] += 1
    found: dict[Group, int] = defaultdict(int)
    for (harness, thing), count in things.items():
        for place in places(harness, state.ring, state.units):
            found[place, thing] += count
    return found


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch of reports adds to the counts; (rows, devices) by key, which may be (0, 0) in `groups`."""

    tallies: dict[Tally, tuple[int, int]]
    groups: dict[Group, tuple[int, int]]
    seen: dict[Group, int]
    """Of keys of `groups`, when a finding under them was last said anew; those without one are not here."""


def difference(pairs: Iterable[tuple[State, State]]) -> Difference:
    """Add up what the changes of several devices, before and after, do to the counts."""
    tallies: dict[Tally, list[int]] = {}
    groups: dict[Group, list[int]] = {}
    seen: dict[Group, int] = {}
    moved: set[Group] = set()
    for before, after in pairs:
        gone, come = _apart(before, after)
        if _context(before) == _context(after):
            _add_changed(tallies, before, gone, come)
        else:
            _add(tallies, tallies_of(before), tallies_of(after))
        left, right = _where_they_differ(before, after, (*gone, *come))
        _add(groups, groups_of(left), groups_of(right))
        times = {known.id: known.last_seen for known in left.findings}
        for known in right.findings:
            thing, last = known.finding.thing, known.last_seen
            keys = [(place, thing) for place in places(known.finding.harness, after.ring, after.units)]
            for key in keys:
                if seen.get(key, 0) < last:
                    seen[key] = last
            if times.get(known.id) != last:
                moved.update(keys)
    return Difference(
        tallies={key: (rows, devices) for key, (rows, devices) in tallies.items() if rows or devices},
        groups={
            key: (rows, devices) for key, (rows, devices) in groups.items() if rows or devices or key in moved
        },
        seen=seen,
    )


def _context(state: State) -> tuple[object, ...]:
    """Give what counts of a device beside its findings."""
    return state.ring, state.units, state.digest, state.skipped, state.approved


def _apart(before: State, after: State) -> tuple[list[Known], list[Known]]:
    """Give the findings that are in one of two states alone."""
    olds, news = ({id(known) for known in state.findings} for state in (before, after))
    return (
        [known for known in before.findings if id(known) not in news],
        [known for known in after.findings if id(known) not in olds],
    )


def _add_changed(
    total: dict[Tally, list[int]], before: State, gone: Sequence[Known], come: Sequence[Known]
) -> None:
    """Do what `_add` of two `tallies_of` does, for states that differ in few of many findings.

    Rows differ by the findings that went and came. A device counts anew under a key, or no more, when it is one of
    either alone and no finding that stays has it.
    """
    old, new = (
        tallies_of(State(ring=before.ring, units=before.units, findings=tuple(part))) for part in (gone, come)
    )
    alone = old.keys() ^ new.keys()
    stays = _staying(before, {id(known) for known in gone}, alone) if alone else set()
    for key in old.keys() | new.keys():
        entry = total.setdefault(key, [0, 0])
        entry[0] += new.get(key, 0) - old.get(key, 0)
        if key in alone and key not in stays:
            entry[1] += 1 if key in new else -1


def _staying(state: State, gone: set[int], keys: AbstractSet[Tally]) -> set[Tally]:
    """Give those of `keys` that a finding adds to which is not `gone`."""
    kinds = {kind for _, _, kind in keys}
    stay = [
        known.finding for known in state.findings if known.finding.kind in kinds and id(known) not in gone
    ]
    found: set[Tally] = set()
    for dim in {dim for dim, _, _ in keys}:
        if of := _OF_ONE.get(dim):
            found.update((dim, of(one), one.kind) for one in stay)
        else:  # ring and unit are the device's: each finding adds to them
            found.update(key for one in stay for key in keys if key[0] == dim and key[2] == one.kind)
    return found & keys


def _where_they_differ(before: State, after: State, differ: Iterable[Known]) -> tuple[State, State]:
    """Leave out the findings about things of which nothing has changed: they add as much before as after."""
    if (before.ring, before.units) != (after.ring, after.units):
        return before, after
    things = {known.finding.thing for known in differ}
    servers = {server for _, server, _ in things}  # told first: to make a thing of each finding takes longer
    left, right = (
        State(
            ring=state.ring,
            units=state.units,
            findings=tuple(
                known
                for known in state.findings
                if known.finding.server in servers and known.finding.thing in things
            ),
        )
        for state in (before, after)
    )
    return left, right


def _add(total: dict[_Key, list[int]], before: dict[_Key, int], after: dict[_Key, int]) -> None:
    for key, rows in after.items():
        old = before.get(key)
        entry = total.setdefault(key, [0, 0])
        entry[0] += rows - (old or 0)
        entry[1] += old is None
    for key in before.keys() - after.keys():
        entry = total.setdefault(key, [0, 0])
        entry[0] -= before[key]
        entry[1] -= 1
