# SPDX-License-Identifier: Apache-2.0
"""Which finding is which from one cycle to the next, and what happened to it (design 8). Pure.

A finding is (user, harness, file, scope, server, n-th of that name). Invariants:

1. Every finding known before is, after a cycle, known still, or resolved by a transition; or it was one of
   too many that nobody could look at (`STALE_LIMIT`), which is counted.
2. Resolved is only what a cycle vouches for (`halod.seen`), and what has left the scope for good
   (`departed`). Anything else that was not found stays, with `stale`. An inventory judges nothing, so it
   resolves nothing.
3. `changed` means another hash or another kind: what runs, or what the policy makes of it. Words, the switch
   of a server and `stale` change silently; the report has them.
4. Of several findings of one name, those that did not change keep their number: taking one of two away
   resolves that one, and is no change of the other.

An account that is not scanned in a cycle, because somebody else is at the console or its home is not mounted,
keeps its findings as stale: the machine still has them. One that settings exclude, or that exists no more, is
`departed` for the caller to say, and its findings are resolved: nobody will ever look again.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from halod.seen import Seen
from halod.status import Event, Finding, Status, Transition, finding_key

STALE_LIMIT: Final = 2000
"""Stale findings that are kept of one account: its owner could make them without end, hiding new folders."""

Name = tuple[str, str, str, str, str]
Slot = tuple[Name, int]
_Item = TypeVar("_Item")
_Key = TypeVar("_Key")


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A finding with its number among those of its name, from 0.

    `unseen_since` is the number of the cycle that first missed it, 0 for one that was found last time.
    """

    finding: Finding
    n: int = 0
    unseen_since: int = 0

    @property
    def slot(self) -> Slot:
        """The finding's identity."""
        return (name_of(self.finding), self.n)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A transition that has no number yet. `was` is the hash before, for `changed` only."""

    event: Event
    finding: Finding
    was: str = ""


class Reconciled(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle leaves: the findings and what happened, both in order of identity.

    `forgotten` counts the stale findings that were dropped because an account has too many.
    """

    known: tuple[Known, ...]
    changes: tuple[Change, ...]
    forgotten: int = 0


def name_of(finding: Finding) -> Name:
    """Give the identity of a finding but for its number."""
    return (finding.user, finding.harness, finding.file, finding.scope, finding.server)


def reconcile(
    previous: Sequence[Known],
    status: Status,
    seen: Sequence[Seen],
    *,
    cycle: int,
    departed: frozenset[str] = frozenset(),
) -> Reconciled:
    """Hold the findings of a cycle against those known before.

    Args:
        previous: what the last cycle left, in any order.
        status: what this cycle found.
        seen: what it can vouch for; an account without a Seen was not looked at.
        cycle: the number of this cycle, greater than those before.
        departed: accounts, by their name in a status, that no cycle will look at again.
    """
    if status.mode == "inventory":
        seen = ()
    before = _by_name(previous, key=lambda known: name_of(known.finding))
    now = _by_name(status.mcp_drift, key=name_of)
    known: list[Known] = []
    changes: list[Change] = []
    for name in sorted(before.keys() | now.keys()):
        group = _Group(before.get(name, []), now.get(name, []))
        group.pair()
        for old in group.left:
            if old.finding.user in departed or _vouched(old.finding, seen):
                changes.append(Change(event="resolved", finding=_fresh(old.finding)))
            else:
                group.kept.append(_stale(old, cycle))
        changes += group.changes
        known += sorted(group.kept, key=lambda one: one.n)
    kept = _bounded(known)
    return Reconciled(known=tuple(kept), changes=tuple(changes), forgotten=len(known) - len(kept))


def transitions(changes: Iterable[Change], *, prefix: str, after: int, time: str) -> list[Transition]:
    """Number changes from `after` + 1 on, and date them; ids are `prefix`, a hyphen and the number."""
    return [
        Transition(
            id=f"{prefix}-{number}",
            time=time,
            event=change.event,
            finding=change.finding,
            was=change.was or msgspec.UNSET,
        )
        for number, change in enumerate(changes, after + 1)
    ]


def with_known(status: Status, known: Iterable[Known]) -> Status:
    """Give the status with all known findings, the stale ones among them, in the order of the report."""
    rows = tuple(sorted([one.finding for one in known], key=finding_key))
    return msgspec.structs.replace(status, mcp_drift=rows, mcp_drift_total=len(rows))


class _Group:
    """The findings of one name: those of before (`left` until they are paired) and those of now."""

    def __init__(self, before: list[Known], now: list[Finding]) -> None:
        self.left = sorted(before, key=lambda known: known.n)
        self.now = sorted(now, key=finding_key)
        self.kept: list[Known] = []
        self.changes: list[Change] = []

    def pair(self) -> None:
        """Pair what is alike, then what has the same hash, then by order; number what is new."""
        self._pair(_judged)
        self._pair(lambda finding: finding.definition_sha256)
        self._pair(lambda _finding: "")
        taken = {known.n for known in (*self.kept, *self.left)}
        free = (n for n in range(len(taken) + len(self.now)) if n not in taken)
        for new, n in zip(self.now, free, strict=False):
            self.kept.append(Known(finding=_fresh(new), n=n))
            self.changes.append(Change(event="opened", finding=_fresh(new)))

    def _pair(self, key: Callable[[Finding], object]) -> None:
        waiting = _by_name(reversed(self.left), key=lambda known: key(known.finding))
        rest: list[Finding] = []
        paired: set[int] = set()
        for new in self.now:
            alike = waiting.get(key(new))
            if not alike:
                rest.append(new)
                continue
            old = alike.pop()
            paired.add(old.n)
            self.kept.append(Known(finding=_fresh(new), n=old.n))
            if _judged(old.finding) != _judged(new):
                was = old.finding.definition_sha256
                self.changes.append(Change(event="changed", finding=_fresh(new), was=was))
        self.left = [known for known in self.left if known.n not in paired]
        self.now = rest


def _by_name(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _judged(finding: Finding) -> tuple[str, str]:
    return (finding.definition_sha256, str(finding.kind))


def _vouched(finding: Finding, seen: Sequence[Seen]) -> bool:
    """Tell whether its account was looked at, and would have shown it."""
    of_account = [one for one in seen if one.user == finding.user]
    return bool(of_account) and all(one.vouches(finding) for one in of_account)


def _fresh(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, stale=False) if finding.stale else finding


def _stale(old: Known, cycle: int) -> Known:
    if old.unseen_since:
        return old
    finding = msgspec.structs.replace(old.finding, stale=True)
    return Known(finding=finding, n=old.n, unseen_since=cycle)


def _bounded(known: list[Known]) -> list[Known]:
    """Drop, of each account that has too many stale findings, those that were missed first."""
    stale = _by_name([one for one in known if one.unseen_since], key=lambda one: one.finding.user)
    dropped: set[Slot] = set()
    for rows in stale.values():
        if len(rows) > STALE_LIMIT:
            rows.sort(key=lambda one: one.unseen_since)
            dropped.update(one.slot for one in rows[: len(rows) - STALE_LIMIT])
    return [one for one in known if one.slot not in dropped] if dropped else known
