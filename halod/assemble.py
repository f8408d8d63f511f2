# SPDX-License-Identifier: Apache-2.0
"""From the workers' answers to the status: checks every string, then makes the words (design 3 and 8).

Invariants:

1. An answer is hostile. Each value is held to its vocabulary, its form, or what the redaction would give. One
   outside these costs the whole answer, which becomes one skipped row `worker-invalid`; other accounts go on.
2. `user`, `file`, `detail` and `fix` are made here, from the account, the table of locations and the policy:
   a worker cannot word them.
3. Pure: no clock, no host name, no file. The caller hands all of it in as a Machine.
"""

import errno
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from halod import __version__
from halod.drift import FLAGS, NOTES, Kind, Note, Verdict, words
from halod.harnesses import LOCATIONS, display
from halod.harnesses.dialect import Location
from halod.policy.model import Policy, Registry
from halod.roles.answer import Answer, Gap, Row
from halod.seen import Seen
from halod.status import (
    FILE_LIMIT,
    NAME_LIMIT,
    Approved,
    Coverage,
    Finding,
    NotCovered,
    Reason,
    Skipped,
    Status,
    approved_key,
    check_file_parts,
    clean,
    finding_key,
    is_host,
    is_name,
    is_sha256,
    skipped_key,
)

_ERRNO_NAMES: Final = frozenset(errno.errorcode.values())
_MOST: Final = 2**31
"""A count, line or column beyond this is rubbish."""
_ALWAYS_NOT_COVERED: Final[tuple[NotCovered, ...]] = (
    "project-files",
    "cloud-connectors",
    "environment-overrides",
)


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What a status says of the machine and the cycle; strings are cleaned here, whatever they hold.

    `time` is RFC 3339 in UTC; `user` the console user or ""; `duration_ms` wall time.
    """

    time: str
    device: str = ""
    hostname: str = ""
    os: str = ""
    user: str = ""
    ring: str = ""
    units: tuple[str, ...] = ()
    duration_ms: int = 0
    last_error: str = ""
    error_code: str = ""


class Scanned(msgspec.Struct, frozen=True, kw_only=True):
    """One account's scan: its answer, or why there is none. `user` is the account's name."""

    user: str
    answer: Answer | None = None
    reason: Reason = "worker-crashed"


class _Rubbish(Exception):
    """A value outside its rules. Carries nothing of it."""


class _Rules:
    """What an answer may say, for one policy and one way of showing names."""

    def __init__(self, registry: Registry | None, locations: tuple[Location, ...], *, reveal: bool) -> None:
        self.registry = registry
        self.locations = locations
        self.reveal = reveal
        self.ids: frozenset[str] = frozenset()
        self.approving: frozenset[str] = frozenset()
        if registry is not None:
            self.approving = frozenset([entry.id for entry in registry.entries])
            every = (*registry.entries, *registry.elsewhere, *registry.expired)
            self.ids = frozenset([entry.id for entry in every])

    def check(self, answer: Answer) -> None:
        """Raise _Rubbish when anything in the answer is not what a worker may say."""
        for row in answer.rows:
            self._row(row)
        for gap in answer.gaps:
            self._gap(gap)
        for location, parts in answer.read:
            self._place(location, parts, whole=True)
        _require(0 <= answer.files <= _MOST)

    def _row(self, row: Row) -> None:
        self._place(row.location, row.parts, whole=True)
        _require(self._is_name(row.name))
        _require(is_sha256(row.sha256))
        _require(is_host(row.host) if row.transport == "http" else not row.host)
        _require(1 <= row.projects <= _MOST and (row.projects == 1 or row.scope == "project"))
        _require(row.note in NOTES and FLAGS.issuperset(row.flags) and len(row.flags) <= len(FLAGS))
        if self.registry is None:
            _require(row.kind == "inventory" and not row.entry)
        elif row.kind == "approved":
            _require(row.entry in self.approving)
        elif row.kind == "denied":
            _require(row.entry in {str(at) for at in range(len(self.registry.deny))})
        else:
            _require(row.kind != "inventory" and (not row.entry or row.entry in self.ids))

    def _gap(self, gap: Gap) -> None:
        if gap.location >= 0:
            self._place(gap.location, gap.parts, whole=False)
        else:
            _require(gap.location == -1 and not gap.parts and gap.reason == "home-unavailable")
        _require(not gap.server or (gap.reason == "malformed-entry" and self._is_name(gap.server)))
        _require(0 <= gap.line <= _MOST and 0 <= gap.column <= _MOST and 0 <= gap.depth <= _MOST)
        _require(not gap.errno or gap.errno in _ERRNO_NAMES)

    def _place(self, location: int, parts: tuple[str, ...], *, whole: bool) -> None:
        """A part for each wildcard; of a folder that could not be listed, those known until then."""
        _require(0 <= location < len(self.locations))
        wild = [name for name in self.locations[location].path.split("/") if "*" in name]
        _require(len(parts) == len(wild) if whole else len(parts) <= len(wild))
        _require(
            all(name == "**" or (part and "/" not in part) for name, part in zip(wild, parts, strict=False))
        )
        if self.reveal:
            pieces = [piece for part in parts if part for piece in part.split("/")]
            _require(all(piece not in {"", ".", ".."} and clean(piece) == piece for piece in pieces))
        else:
            _require(check_file_parts(parts))

    def _is_name(self, name: str) -> bool:
        return clean(name, NAME_LIMIT) == name if self.reveal else is_name(name)


def _require(holds: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise _Rubbish


def assemble(
    accounts: Sequence[Scanned],
    machine: Machine,
    *,
    policy: Policy | None = None,
    registry: Registry | None = None,
    extra: tuple[Location, ...] = (),
    reveal: bool = False,
) -> Status:
    """Make the status of one cycle.

    Without a registry the status is an inventory. `extra` are the locations that settings add, numbered after
    `LOCATIONS`, as the workers had them. `reveal` says that the workers did not redact names: only
    for an account that looks at its own files on its own terminal.
    """
    return assemble_seen(accounts, machine, policy=policy, registry=registry, extra=extra, reveal=reveal)[0]


def assemble_seen(
    accounts: Sequence[Scanned],
    machine: Machine,
    *,
    policy: Policy | None = None,
    registry: Registry | None = None,
    extra: tuple[Location, ...] = (),
    reveal: bool = False,
) -> tuple[Status, tuple[Seen, ...]]:
    """Make the status of one cycle, and what it can vouch for: one Seen for each account (`halod.seen`)."""
    locations = LOCATIONS + extra
    rules = _Rules(registry, locations, reveal=reveal)
    made = _Rows(registry, locations)
    for account in accounts:
        made.add(account, rules)
    return _status(made, machine, policy, len(accounts)), tuple(made.seen)


def _status(made: "_Rows", machine: Machine, policy: Policy | None, accounts: int) -> Status:
    registry = made.registry
    inventory = registry is None
    findings = tuple(sorted(made.findings, key=finding_key))
    return Status(
        time=clean(machine.time),
        device=clean(machine.device),
        hostname=clean(machine.hostname, 255),
        os=machine.os,
        halod=__version__,
        user=clean(machine.user, 255),
        ring=clean(machine.ring, 255),
        units=tuple([clean(unit, 255) for unit in machine.units]),
        digest="" if inventory or policy is None else policy.digest,
        mode="inventory" if registry is None else registry.mode,
        mcp_drift=() if inventory else findings,
        mcp_approved=tuple(sorted(made.approved(), key=approved_key)),
        inventory=findings if inventory else msgspec.UNSET,
        skipped=tuple(sorted(made.skipped, key=skipped_key)),
        coverage=Coverage(
            accounts=accounts,
            files=made.files,
            definitions=made.definitions,
            duration_ms=max(machine.duration_ms, 0),
            not_covered=(*_ALWAYS_NOT_COVERED, *sorted(made.not_covered.difference(_ALWAYS_NOT_COVERED))),
        ),
        mcp_drift_total=0 if inventory else len(findings),
        last_error=clean(machine.last_error),
        error_code=clean(machine.error_code, NAME_LIMIT),
    )


class _Rows:
    """The rows of the status while they are gathered."""

    def __init__(self, registry: Registry | None, locations: tuple[Location, ...]) -> None:
        self.registry = registry
        self.locations = locations
        self.findings: list[Finding] = []
        self.skipped: list[Skipped] = []
        self.counts: dict[tuple[str, str, str], int] = {}
        self.not_covered: set[NotCovered] = set()
        self.seen: list[Seen] = []
        self.files = 0
        self.definitions = 0

    def add(self, account: Scanned, rules: _Rules) -> None:
        user = clean(account.user, 255)
        reason: Reason = account.reason
        if account.answer is not None:
            try:
                rules.check(account.answer)
            except _Rubbish:
                reason = "worker-invalid"
            else:
                self._add_answer(user, account.answer)
                return
        self.skipped.append(Skipped(user=user, reason=reason))
        self.seen.append(Seen(user=user, well=False))

    def _add_answer(self, user: str, answer: Answer) -> None:
        self.files += answer.files
        self.not_covered.update(answer.not_covered)
        for row in answer.rows:
            self.definitions += row.projects
            if row.kind == "approved":
                key = (self.locations[row.location].harness, row.entry, user)
                self.counts[key] = self.counts.get(key, 0) + row.projects
            else:
                self.findings.append(_finding(user, row, self.locations[row.location], self.registry))
        for gap in answer.gaps:
            location = self.locations[gap.location] if gap.location >= 0 else None
            self.skipped.append(_skipped(user, gap, location))
        self.seen.append(_seen(user, answer, self.locations))

    def approved(self) -> Iterable[Approved]:
        for (harness, entry, user), count in self.counts.items():
            yield Approved(harness=harness, id=entry, user=user, count=count)


def _finding(user: str, row: Row, location: Location, registry: Registry | None) -> Finding:
    """Make a finding, or an inventory row when there is no registry."""
    judged: dict[str, Any] = {}
    if registry is not None and row.kind not in {"approved", "inventory"}:
        verdict = Verdict(
            kind=cast("Kind", row.kind),
            entry=row.entry,
            note=cast("Note", row.note),
            flags=row.flags,
            outcome=row.outcome,
            host=row.host,
        )
        detail, fix = words(
            verdict, server=row.name, transport=row.transport, sha256=row.sha256, registry=registry
        )
        judged = {"kind": row.kind, "detail": clean(detail), "fix": clean(fix)}
    return Finding(
        harness=location.harness,
        file=_file(location, row.parts),
        server=row.name,
        transport=row.transport,
        host=row.host if row.transport == "http" else msgspec.UNSET,
        definition_sha256=row.sha256,
        user=user,
        scope=row.scope,
        enabled=row.enabled,
        secret_in_definition=row.secret,
        projects=row.projects if row.projects > 1 else msgspec.UNSET,
        **judged,
    )


def _seen(user: str, answer: Answer, locations: tuple[Location, ...]) -> Seen:
    """Say what an account's findings can be held against."""
    places = [(gap, locations[gap.location]) for gap in answer.gaps if gap.location >= 0]
    return Seen(
        user=user,
        well=len(places) == len(answer.gaps),
        read=frozenset([(locations[at].harness, _file(locations[at], parts)) for at, parts in answer.read]),
        unread=frozenset(
            [(location.harness, _file(location, gap.parts), gap.server) for gap, location in places]
        ),
        hidden=frozenset(
            [(location.harness, folder) for gap, location in places for folder in _hidden(gap, location)]
        ),
        plugins=frozenset([location.harness for _, location in places if location.role == "state"]),
    )


def _hidden(gap: Gap, location: Location) -> Iterable[str]:
    """Give the folders, as shown, whose files a gap hides: what cannot be looked into is not absent."""
    shown = display(location, gap.parts)
    names = shown.split("/")
    pattern = location.path.split("/")
    wild = [at for at, name in enumerate(pattern) if "*" in name]
    whole = len(gap.parts) == len(wild)
    if gap.depth or not whole:
        yield clean("/".join(names[: gap.depth + 1]) if gap.depth else shown, FILE_LIMIT)
    if location.role == "plugin" and wild and whole and not gap.server:
        # An unread manifest names no other file of its plugin.
        yield clean("/".join(names[: len(names) - (len(pattern) - 1 - wild[-1])]), FILE_LIMIT)


def _file(location: Location, parts: tuple[str, ...]) -> str:
    return clean(display(location, parts), FILE_LIMIT)


def _skipped(user: str, gap: Gap, location: Location | None) -> Skipped:
    return Skipped(
        user=user,
        harness=location.harness if location is not None else "",
        file=_file(location, gap.parts) if location is not None else "",
        reason=gap.reason,
        server=gap.server or msgspec.UNSET,
        line=gap.line or msgspec.UNSET,
        column=gap.column or msgspec.UNSET,
        errno=gap.errno or msgspec.UNSET,
    )
